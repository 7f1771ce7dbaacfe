"""Circuits from files in Bristol Fashion (https://nigelsmart.github.io/MPC-Circuits): lines of gates after the numbers of gates, wires, inputs and
outputs. An AND costs the same as ``&`` of sbits; XOR and INV are local."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..context import Dynamic, current
from ..control.outside import note_unrepeatable
from ..errors import CompilerError, VectorMismatch
from ..values.binary import sbits
from ..values.bitvectors import sbitvec

_GATES: dict[str, tuple[int, Callable[..., Dynamic]]] = {
    "XOR": (2, lambda a, b: a ^ b),
    "AND": (2, lambda a, b: a & b),
    "INV": (1, lambda a: ~a),
    "EQW": (1, lambda a: a),
}


class Circuit:
    """The circuit ``Programs/Circuits/<name>.txt`` of the working folder. A call takes one sbitvec for each input, with one row for each wire,
    all rows of one length. It returns an sbitvec for each output (a list, if there are several)."""

    def __init__(self, name: str) -> None:
        self.name = name
        run = current()
        note_unrepeatable("a circuit from a file")
        folders = [(run.io.folder or Path()) / "Programs", Path(run.program.infile).parent.parent]
        files = [folder / "Circuits" / f"{name}.txt" for folder in folders]
        file = next((f for f in files if f.is_file()), None)
        if file is None:
            raise CompilerError(f"no circuit {files[0]}: put a file in Bristol Fashion there (MP-SPDZ's make Programs/Circuits gets some)")
        lines = [words for words in (line.split() for line in file.read_text().splitlines()) if words]
        try:
            self._wires = int(lines[0][1])
            self._inputs, self._outputs = ([int(n) for n in lines[i][1:]] for i in (1, 2))
            self._gates = [self._gate(words) for words in lines[3 : 3 + int(lines[0][0])]]
        except (ValueError, IndexError, KeyError):
            raise CompilerError(f"{file} is no circuit in Bristol Fashion with XOR, AND, INV and EQW gates of one output") from None

    @staticmethod
    def _gate(words: list[str]) -> tuple[str, list[int], int]:
        count, _ = _GATES[words[-1]]
        if [int(w) for w in words[:2]] != [count, 1] or len(words) != count + 4:
            raise ValueError
        wires = [int(w) for w in words[2:-1]]
        return words[-1], wires[:-1], wires[-1]

    def __call__(self, *inputs: object) -> Dynamic:
        """Runs the circuit."""
        given = [sbitvec.from_vec(x).v for x in inputs]
        if [len(rows) for rows in given] != self._inputs:
            raise VectorMismatch(f"the circuit {self.name} has inputs of {self._inputs} rows, not {[len(rows) for rows in given]}")
        size = max((row.n for rows in given for row in rows if isinstance(row, sbits)), default=1)
        wires: list[Dynamic] = [sbits.get_type(size).conv(row) for rows in given for row in rows]
        wires += [None] * (self._wires - len(wires))
        for kind, sources, target in self._gates:
            wires[target] = _GATES[kind][1](*(wires[i] for i in sources))
        results, at = [], self._wires - sum(self._outputs)
        for length in self._outputs:
            results.append(sbitvec.from_vec(wires[at : at + length]))
            at += length
        return results[0] if len(results) == 1 else results

    run = __call__
