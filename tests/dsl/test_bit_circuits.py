"""Boolean circuits and look-ups that the engine evaluates by itself: the Library's rows give the same with and without them, and recordings repeat them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import KeptEngine, ProgramIO, ShareVector
from keyquorum.dsl.errors import CompilerError
from keyquorum.dsl.values.bit_circuits import traced
from keyquorum.model.resources import resource_folder

from .running import EMULATE, RING, SEMI_2K, SPDZ_2K, Backend, name, run
from .test_negacyclic import engine

LIBRARY = resource_folder("Programs") / "Library"
HELPERS = {module: (LIBRARY / f"{module}.py").read_text() for module in ("bit_rows", "table_lookup", "logic", "trees")}
START = """
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(program.infile), '..', 'Library'))
from bit_rows import BitRows
from table_lookup import OneHotVectors
"""
ROWS = (
    START
    + """
class Plain:
    use_split = staticmethod(program.use_split)


def layer(x, y):
    return [~(x[0] & x[1]) ^ y[0], x[1] ^ y[2], (x[0] & y[1]) & (x[1] ^ y[0]), x[0]]


def show(values):
    values = regint(values)
    pieces = [values.get_vector(i, min(64, len(values) - i)) for i in range(0, len(values), 64)]
    print_ln('%s', [bit for piece in pieces for bit in piece])


size, copies = int(program.args[1]), int(program.args[2])
numbers = sint.get_input_from(0, size=2 * size * copies, binary=True)
others, singles = (sint.get_input_from(1, size=n, binary=True) for n in (3 * size * copies, 3))
for front_end in (program, Plain):
    x = BitRows.of_shares(front_end, numbers, 2 * copies, size)
    y = BitRows.of_shares(front_end, others, 3 * copies, size)
    z = x.map(layer, y, copies=copies)
    show(BitRows.joined([z, z.part(1, 2)]).reveal())
    show(z.shares().reveal())
    if copies == 1:
        single = BitRows.of_shares(front_end, singles, 3, 1)
        show(x.map(layer, single).reveal())
    print_ln('%s', BitRows.random(front_end, 3, size).count)
"""
)


def layer(x: Any, y: Any) -> list[Any]:
    """The function of the program, on numbers 0 and 1."""
    return [1 ^ x[0] & x[1] ^ y[0], x[1] ^ y[2], x[0] & y[1] & (x[1] ^ y[0]), x[0]]


@pytest.mark.parametrize(("size", "copies"), [(1, 1), (3, 5), (64, 2), (65, 1), (7, 9)])
@pytest.mark.parametrize("backend", [EMULATE, RING, SEMI_2K, ("semi2k", 3, "Z2^1"), SPDZ_2K], ids=name)
def test_rows_with_and_without_circuits(backend: Backend, size: int, copies: int, tmp_path: Path) -> None:
    if backend == SPDZ_2K and size * copies > 15:
        pytest.skip("minutes of preprocessing")
    rng = np.random.default_rng(size)
    x, y, single = (rng.integers(0, 2, n) for n in (2 * size * copies, 3 * size * copies, 3))
    parties = run(tmp_path, ROWS, backend, size, copies, private={0: x, 1: [*y, *single]}, helpers=HELPERS)
    groups = zip(x.reshape(copies, 2, size), y.reshape(copies, 3, size), strict=True)
    z = np.concatenate([np.array(layer(*group)) for group in groups])
    wanted = [np.concatenate([z, z[1:3]]).ravel().tolist(), z.ravel().tolist()]
    if copies == 1:
        wanted.append(np.array([row + 0 * x[:size] for row in layer(x.reshape(2, size), single)]).ravel().tolist())
    lines = [[int(v) & 1 for v in line.strip("[]").split(",")] for line in parties[0].lines]
    assert lines == [*wanted, [1]] * 2  # 3 rows: an odd number


LOOK_UP = (
    START
    + """
table, count, first, step = [3, 0, 5, 7, 7, 1, 2, 4], 4, 2, 7
hot = sint.get_input_from(0, size=8 * step, binary=True)
y = [regint(0, size=count), regint(1, size=count), regint.inc(count, 0, 1, 2)]
for lookup in (getattr(program, 'table_lookup', None), None):
    print_ln('%s', list(OneHotVectors(hot, step, lookup).look_up(y, table, 3, first).reveal()))
"""
)


@pytest.mark.parametrize("backend", [EMULATE, RING, SEMI_2K, SPDZ_2K, ("shamir", 3, "F_65537")], ids=name)
def test_look_ups(backend: Backend, tmp_path: Path) -> None:
    r = np.array([7, 7, 0, 5, 6, 3, 1])
    hot = (r == np.arange(8)[:, None]).astype(np.int64)
    parties = run(tmp_path, LOOK_UP, backend, private={0: hot.ravel()}, helpers=HELPERS)
    values = np.array([3, 0, 5, 7, 7, 1, 2, 4])[r[2:6] ^ (2 + 4 * (np.arange(4) // 2))]
    wanted = (values >> np.arange(3)[:, None] & 1).ravel().tolist()
    assert [[int(v) for v in line.strip("[]").split(",")] for line in parties[0].lines] == [wanted, wanted]


def test_circuits_have_gates_on_their_rows_alone() -> None:
    circuit = traced(lambda x, y: [x[0] & ~x[1] ^ y[0]], [2, 1])
    assert (circuit.ands, circuit.depth) == (1, 1)
    for function in (lambda x: [], lambda x: [1], lambda x: [x[0] ^ 1], lambda x: [None]):
        with pytest.raises(CompilerError, match="circuit"):
            traced(function, [2])
    other = []
    traced(lambda x: other.append(x[0]) or [x[0]], [1])
    with pytest.raises(CompilerError, match="its rows"):
        traced(lambda x: [x[0] & other[0]], [1])


def test_wrong_operands_are_refused() -> None:
    made = engine("emulate", "Z2^64")
    circuit = _engine.BitCircuit([2], np.array([1, 0, 1]), [2])
    bits, numbers = made.random_bits(6), made.random(6)
    assert made.circuit(circuit, [bits], 3, 1).size == 3 and made.circuit(circuit, [made.random_bits(2)], 5, 2).size == 10
    for inputs, size, copies, error in [
        ([bits], 4, 1, "2 rows of 4 bits"), ([bits], 0, 1, "one bit and more"), ([bits], 3, 0, "one bit and more"), ([bits, bits], 3, 1, "of 1 inputs"),
        ([numbers], 3, 1, "circuit"),
    ]:  # fmt: skip
        with pytest.raises(_engine.UsageError, match=error):
            made.circuit(circuit, inputs, size, copies)
    for gates, outputs in [([3, 0, 0], [0]), ([0, 0], [0]), ([2, 0, 1], [0]), ([0, 0, -1], [0]), ([0, 0, 2], [0]), ([], [2]), ([], [])]:
        with pytest.raises(_engine.UsageError):
            _engine.BitCircuit([2], np.array(gates, dtype=np.int64), outputs)
    at, table = np.array([0, 1]), np.array([1, 2])
    with pytest.raises(_engine.UsageError, match="one-hot"):
        made.lookup(numbers, at, np.array([1, 2, 3, 4]), 2, 0)
    with pytest.raises(_engine.UsageError, match="outside a table"):
        made.lookup(numbers, np.array([2]), table, 2, 0)
    with pytest.raises(_engine.UsageError, match="table"):
        made.lookup(bits, at, table, 2, 0)


RECORDED = (
    START
    + """
rows = BitRows.of_shares(program, sint.read_from_file(0, size=6)[1][0], 2, 3)
mixed = rows.map(lambda x: [x[0] & x[1], ~x[0]])
y = mixed.part(0, 1).reveal()
values = OneHotVectors(sint.read_from_file(6, size=6)[1][0], 3, program.table_lookup).look_up([y], [1, 2], 2, 0)
values.reveal().binary_output()
"""
)


def test_recordings_repeat_circuits_and_look_ups(tmp_path: Path) -> None:
    """The third run is replayed; each has other shares."""
    path = tmp_path / "Programs" / "Source" / "p.mpc"
    path.parent.mkdir(parents=True)
    path.write_text(RECORDED)
    (tmp_path / "Programs" / "Library").mkdir()
    for module, text in HELPERS.items():
        (tmp_path / "Programs" / "Library" / f"{module}.py").write_text(text)
    made = engine("emulate", "Z2^1")
    kept, rng = KeptEngine(made), np.random.default_rng(3)
    for number in range(5):
        x, r = rng.integers(0, 2, (2, 3)), rng.integers(0, 2, 3)
        hot = np.array([1 - r, r])
        shares = ShareVector()
        shares.write(made, made.export(made.input(0, 12, np.concatenate([x.ravel(), hot.ravel()]))))
        io = ProgramIO(shares=shares)
        kept.run(path, [], io)
        value = np.array([1, 2])[(x[0] & x[1]) ^ r]
        assert np.array_equal(np.concatenate(io.binary_outputs) & 1, (value >> np.arange(2)[:, None] & 1).ravel())
        assert any(recording is not None for recording in kept.recordings.values()) == (number >= 1)
