"""Boolean circuits as lists of gates, and that of AES-128 from `Programs/Library/aes.py`, in layers of ANDs.

A gate makes the next wire. Gates are XOR, AND and NOT; a layer has the ANDs whose inputs depend on the ANDs of earlier layers alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.errors import ParameterError
from keyquorum.model.resources import resource_folder

XOR, AND, NOT = range(3)
Indices = NDArray[np.int64]
Half = NDArray[np.uint32]
Function = Callable[..., Sequence["Wire"]]


class Wire:
    """A bit while a circuit is made: its operators add gates."""

    __slots__ = ("_circuit", "number")

    def __init__(self, circuit: Circuit, number: int) -> None:
        self._circuit, self.number = circuit, number

    def __xor__(self, other: Wire) -> Wire:
        return self._circuit.add(XOR, self, other)

    def __and__(self, other: Wire) -> Wire:
        return self._circuit.add(AND, self, other)

    def __invert__(self) -> Wire:
        return self._circuit.add(NOT, self, self)


@dataclass
class Circuit:
    """``inputs``: number of its inputs, which are the first wires. ``gates``: (kind, a, b) of the following wires. ``outputs``: numbers of wires."""

    inputs: int
    gates: list[tuple[int, int, int]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    @staticmethod
    def of(function: Callable[[list[Wire]], Sequence[Wire]], inputs: int) -> Circuit:
        """The circuit of a function of a list of wires that returns wires."""
        circuit = Circuit(inputs)
        circuit.outputs = [wire.number for wire in function([Wire(circuit, i) for i in range(inputs)])]
        return circuit

    def add(self, kind: int, a: Wire, b: Wire) -> Wire:
        """A gate; the result is its wire."""
        self.gates.append((kind, a.number, b.number))
        return Wire(self, self.inputs + len(self.gates) - 1)

    def layers(self) -> list[list[int]]:
        """For each layer of ANDs the numbers of their wires."""
        depth, found = [0] * self.inputs, list[list[int]]()
        for wire, (kind, a, b) in enumerate(self.gates, self.inputs):
            depth.append(max(depth[a], depth[b]) + (kind == AND))
            if kind == AND:
                if depth[wire] > len(found):
                    found.append([])
                found[depth[wire] - 1].append(wire)
        return found

    def forms(self) -> Forms:
        """The inputs of the ANDs, and the outputs, as sums modulo 2 of the circuit's inputs and the results of ANDs."""
        layers, made = self.layers(), 0
        variables: dict[int, int] = {}
        for layer in layers:
            for wire in layer:
                variables[wire] = self.inputs + made
                made += 1
        one = self.inputs + made
        value = [1 << i for i in range(self.inputs)]
        for wire, (kind, a, b) in enumerate(self.gates, self.inputs):
            value.append(1 << variables[wire] if kind == AND else value[a] ^ (1 << one) if kind == NOT else value[a] ^ value[b])

        def operands(wire: int) -> tuple[int, int]:
            return self.gates[wire - self.inputs][1:]

        sides = [[value[operands(wire)[side]] for side in (0, 1) for wire in layer] for layer in layers]
        return Forms(self.inputs, [Sums.of(rows, one) for rows in sides], Sums.of([value[wire] for wire in self.outputs], one))


@dataclass(frozen=True)
class Sums:
    """Sums modulo 2 of variables. ``indices``: those of the first sum, then of the second, ..; ``starts``: where each begins; ``constants``: 1 is added."""

    indices: Indices
    starts: Indices
    constants: Indices

    @staticmethod
    def of(rows: Sequence[int], one: int) -> Sums:
        """From bit masks of the variables; bit ``one`` is the constant."""
        bits = np.stack([np.unpackbits(np.frombuffer(row.to_bytes(one // 8 + 1, "little"), np.uint8), bitorder="little") for row in rows])
        which, indices = np.nonzero(bits[:, :one])
        counts = np.bincount(which, minlength=len(rows))
        if not counts.all():
            raise ParameterError("a sum of no variables: a circuit has no constant wires")
        return Sums(indices.astype(np.int64), np.cumsum(counts) - counts, bits[:, one].astype(np.int64))

    @property
    def largest(self) -> int:
        """Summands of the longest sum."""
        return int(np.diff([*self.starts.tolist(), self.indices.size]).max())

    def evaluate(self, values: Half) -> Half:
        """The sums [parts, sums, batch] of values [parts, variables, batch], without the constants."""
        made: Half = np.add.reduceat(values[:, self.indices], self.starts, axis=1, dtype=np.uint32)
        return made


@dataclass(frozen=True)
class Forms:
    """A circuit as layers of ANDs of :class:`Sums`. ``layers``: the left inputs of all ANDs of a layer, then the right ones. Variables: the ``inputs``, then
    the results of the ANDs, layer after layer."""

    inputs: int
    layers: list[Sums]
    outputs: Sums

    @property
    def widths(self) -> list[int]:
        """ANDs of each layer."""
        return [layer.starts.size // 2 for layer in self.layers]

    @property
    def ands(self) -> int:
        """ANDs of all layers."""
        return sum(self.widths)

    @property
    def longest(self) -> int:
        """Summands of the longest sum: of so many fresh ciphertexts a ciphertext that is decrypted is the sum, and of a mask."""
        return max(sums.largest for sums in (*self.layers, self.outputs))


class _Rows:
    """What `cipher` of the library takes for `BitRows`: a list of wires."""

    def __init__(self, wires: Sequence[Wire]) -> None:
        self.wires = list(wires)

    def part(self, first: int, count: int) -> _Rows:
        """Some consecutive wires."""
        return _Rows(self.wires[first : first + count])

    def map(self, function: Function, *others: _Rows, copies: int = 1) -> _Rows:
        """A function of lists of wires, applied to ``copies`` groups of consecutive ones."""
        lists, made = [operand.wires for operand in (self, *others)], list[Wire]()
        for c in range(copies):
            made += function(*(wires[c * len(wires) // copies : (c + 1) * len(wires) // copies] for wires in lists))
        return _Rows(made)


@lru_cache(maxsize=1)
def aes_library() -> ModuleType:
    """`Programs/Library/aes.py`, which imports nothing of the language."""
    spec = importlib.util.spec_from_file_location("keyquorum_library_aes", resource_folder("Programs") / "Library" / "aes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@lru_cache(maxsize=1)
def aes_forms() -> Forms:
    """:func:`aes_circuit` as layers of ANDs of sums."""
    return aes_circuit().forms()


@lru_cache(maxsize=1)
def aes_circuit() -> Circuit:
    """AES-128: inputs are the 128 bits of a block and the 1,408 bits of the round keys, outputs 128 bits; bit j of byte i is number 8 i + j. 5,760 ANDs in
    40 layers: 144, 48, 96 and 288 of each round."""
    library = aes_library()
    bits = library.BLOCK_BITS

    def cipher(wires: list[Wire]) -> list[Wire]:
        made: _Rows = library.cipher(_Rows(wires[:bits]), _Rows(wires[bits:]), True, lambda state, _: library.sub_bytes(state, True))
        return made.wires

    return Circuit.of(cipher, bits + library.KEY_ROWS)


__all__ = ["AND", "NOT", "XOR", "Circuit", "Forms", "Sums", "aes_circuit", "aes_forms", "aes_library"]
