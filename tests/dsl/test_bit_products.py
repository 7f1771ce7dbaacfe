"""Products of secret bits with a secret vector: the engine's own are single products, times a power of two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl.control.program import Program, ProgramOptions
from keyquorum.model.resources import resource_folder

from .running import EMULATE, EMULATE_FIELD, RING, SEMI_2K, SPDZ_2K, Backend, name, run
from .test_negacyclic import engine
from .test_recorded import replayed

LIBRARY = resource_folder("Programs") / "Library" / "bit_products.py"
PROGRAM = """
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(program.infile), '..', 'Library'))
from bit_products import bit_products

bits, v = sint.Array(5), sint.Array(3)
bits.assign_vector(sint.get_input_from(0, size=5, binary=True))
v.assign_vector(sint.get_input_from(1, size=3, binary=True))
for hook in (getattr(program, 'bit_products', None), None):
    for shift in (0, 41, 63):
        print_ln('%s', list(bit_products(bits, v, shift, hook).reveal()))
public = sint.Array(2)
public.assign_vector(sint([1, 0]))
print_ln('%s', list(bit_products(public, v, 1, getattr(program, 'bit_products', None)).reveal()))
"""


@pytest.mark.parametrize("backend", [RING, SEMI_2K, ("semi2k", 3, "Z2^64"), SPDZ_2K], ids=name)
def test_hook_and_library_agree(backend: Backend, tmp_path: Path) -> None:
    bits, v = [1, 0, 1, 1, 0], [5, -7, 2**40 + 3]
    parties = run(tmp_path, PROGRAM, backend, private={0: bits, 1: v}, helpers={"bit_products": LIBRARY.read_text()})
    wrap = [(b * x << shift) % 2**64 for shift in (0, 41, 63) for b in bits for x in v]
    wanted = [value - 2**64 if value >= 2**63 else value for value in wrap]
    lines = [list(map(int, line.strip("[]").split(","))) for line in parties[0].lines]
    assert [value for line in lines[:3] for value in line] == wanted and lines[:3] == lines[3:6]
    assert lines[6] == [10, -14, 2**41 + 6, 0, 0, 0]


@pytest.mark.parametrize("domain", ["Z2^64", "Z2^24"])
def test_products_in_clear_arithmetic(domain: str) -> None:
    made = engine("emulate", domain)
    bits, v = made.input(0, 3, np.array([1, 0, 1])), made.input(0, 2, np.array([3, 9]))
    opened = made.read(made.open(made.bit_products(bits, v, 20)))
    assert list(opened) == [x << 20 & (2**64 - 1 if domain != "Z2^24" else 2**24 - 1) for x in (3, 9, 0, 0, 3, 9)]


def test_wrong_operands_are_refused() -> None:
    made = engine("emulate", "Z2^64")
    v = made.input(0, 2, np.array([3, 9]))
    for bits, shift, error in [(made.clear(np.array([1])), 0, "secret bits"), (v, 64, "weight below 2\\^64")]:
        with pytest.raises(_engine.UsageError, match=error):
            made.bit_products(bits, v, shift)
    field = engine("emulate", "F_65537")
    x = field.input(0, 1, np.array([1]))
    with pytest.raises(_engine.UsageError, match="ring modulo 2\\^k"):
        field.bit_products(x, x, 0)


def test_recordings_repeat_products() -> None:
    """Of secret bits with the numbers of each run."""
    replayed("Z2^64", lambda run, x: run.bit_products(shared(run, run.clear(np.array([1, 0, 1]))), shared(run, run.clear(x)), 5))


def shared(run: _engine.Engine, x: _engine.Value) -> _engine.Value:
    """A secret vector with the numbers of a clear one."""
    return run.add(x, run.import_(bytes(8), 1))


@pytest.mark.parametrize(
    ("backend", "there"), [(EMULATE, True), (RING, True), (SEMI_2K, True), (("emulate", 1, "Z2^72"), True), (EMULATE_FIELD, False), (SPDZ_2K, False)]
)
def test_programs_see_where_the_engine_has_them(backend: Backend, there: bool, tmp_path: Path) -> None:
    if backend[0] == "emulate":
        program = Program(engine(backend[0], backend[2]), "p.mpc", "p", [], ProgramOptions())
        assert (program.bit_products is not None) == there
    else:
        parties = run(tmp_path, "print_ln('%s', program.bit_products is not None)", backend)
        assert parties[0].lines == [str(int(there))] or parties[0].lines == [str(there)]
