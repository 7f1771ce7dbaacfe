"""Names, imports and settings of programs and helpers; runs share no state."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from keyquorum.dsl.control import runner
from keyquorum.model.errors import ProgramError

from .running import EMULATE, EMULATE_FIELD, REP_FIELD, RING, SHAMIR, Backend, printed, run

PATH = """
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(program.infile)), '..', 'Library'))
"""
HELPER = """
from Compiler.types import sint, cint, regint, personal, Array, Matrix, MultiArray, MemValue
from Compiler.GC.types import sbits, sbit, sbitvec, cbits
from Compiler.library import for_range, for_range_opt, print_ln, if_e, else_, get_number_of_players
from Compiler.instructions import fixinput, pubinput
from Compiler.util import tree_reduce, if_else
from Compiler.exceptions import CompilerError
from Compiler import types, library, util
import Compiler.GC.types
import other

assert Compiler.GC.types.sbits is sbits and types.sint is sint
COUNTER = []
ONE = sint(1)


def square(x):
    COUNTER.append(1)
    return x * x * other.two() * ONE, len(COUNTER)
"""
OTHER = "from Compiler.types import cint\n\n\ndef two():\n    return cint(2)\n"


def test_helpers_are_loaded_anew_for_every_run(tmp_path: Path) -> None:
    source = PATH + "import helper\nfrom helper import square\ny, n = square(sint(3))\nprint_ln('%s %s', y.reveal(), n)"
    helpers = {"helper": HELPER, "other": OTHER}
    for backend in (EMULATE, RING, RING, SHAMIR):
        if backend == SHAMIR:
            helpers = {"helper": HELPER.replace("import other", "import other  # changed"), "other": OTHER}
        assert printed(tmp_path, source, backend, helpers=helpers) == ["18 1"]
    assert not {"helper", "other", "Compiler", "Compiler.types"} & set(sys.modules)
    assert not any("Library" in p for p in sys.path)


@pytest.mark.parametrize("end", ["pass", "sint(1, size=2) + sint(1, size=3)"])
def test_nothing_stays_of_a_program_that_ended(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares are wiped when their last reference ends, which must not wait for the garbage collector."""
    kept: list[Any] = []
    monkeypatch.setitem(sys.modules, "kq_kept", ModuleType("kq_kept"))
    monkeypatch.setattr(sys.modules["kq_kept"], "kept", kept, raising=False)

    class Run(runner.Run):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            kept.append(weakref.ref(self))

    monkeypatch.setattr(runner, "Run", Run)
    source = f"""{PATH}
import helper, weakref, kq_kept
secret = sint(5)
def uses():
    return helper.square(secret)
uses()
kq_kept.kept += [weakref.ref(secret), weakref.ref(helper.ONE)]
{end}
"""
    gc.collect()
    gc.disable()
    try:
        try:
            run(tmp_path, source, helpers={"helper": HELPER, "other": OTHER})
            failed = False
        except ProgramError:
            failed = True
        assert failed == (end != "pass")
        assert len(kept) == 3 and [ref() for ref in kept[1:]] == [None] * 2
        assert failed or kept[0]() is None, "the traceback of a failure may hold the run, but not its variables"
    finally:
        gc.enable()


def test_names(tmp_path: Path) -> None:
    source = """
        import sys, math
        print('args', program.args, sys.argv == program.args, program.name)
        print('file' if '__file__' in globals() else 'no file', program.infile.endswith('program.mpc'), math.pi > 3)
        print('a', 'b', sep='-', end='!\\n')
        print('to the other side', file=sys.stderr)
        try:
            sint(1) + sint([1, 2]) + sint([1, 2, 3])
        except CompilerError as error:
            print(type(error).__name__)
        """
    lines = printed(tmp_path, source, EMULATE, "a/b", 3)
    assert lines == [
        "args ['program', 'a/b', '3'] True program-a_b-3",
        "no file True True",
        "a-b!",
        "VectorMismatch",
    ]


def test_only_party_0_prints_with_pythons_print(tmp_path: Path) -> None:
    assert [p.lines for p in run(tmp_path, "print('x')", RING)] == [["x"], [], []]


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        (RING, "64 None 63 3 False 40"),
        (EMULATE, "64 None 63 3 False 40"),
        (("emulate", 1, "Z2^72"), "72 None 71 3 False 40"),
        (REP_FIELD, "0 None 64 False False 40"),
        (EMULATE_FIELD, "0 None 64 False False 40"),
        (SHAMIR, "0 None 64 False False 40"),
    ],
)
def test_settings(tmp_path: Path, backend: Backend, expected: str) -> None:
    source = """
        o = program.options
        print_ln('%s %s %s %s %s %s', o.ring, o.prime, program.bit_length, program.use_split(), program.use_edabit(),
                 program.security)
        program.set_security(50)
        program.use_edabit(True)
        print_ln('%s %s', program.security, program.use_edabit())
        """
    assert printed(tmp_path, source, backend) == [expected, "50 True"]


def test_a_program_may_end_itself(tmp_path: Path) -> None:
    assert printed(tmp_path, "import sys\nprint_ln('x')\nsys.exit()\nprint_ln('y')") == ["x"]


def test_star_imports(tmp_path: Path) -> None:
    source = "from Compiler.types import *\nfrom Compiler.library import *\nprint_ln('%s', sint(1).reveal())"
    assert printed(tmp_path, source) == ["1"]


@pytest.mark.alone
def test_overhead_is_microseconds(tmp_path: Path) -> None:
    """One engine call an operation: 20000 operations on vectors in well under a second."""
    source = """
        import time
        x, c = sint([1] * 64), cint([1] * 64)
        start = time.perf_counter()
        for _ in range(5000):
            y = x + c
            y = y * 3
            y = y.get_vector(0, 32)
            y = y - x.get_vector(32, 32)
        elapsed = time.perf_counter() - start
        print(elapsed < 1.0, round(elapsed * 1e6 / 25000, 1))
        """
    line = printed(tmp_path, source)[0]
    assert line.startswith("True"), line


def test_every_name_is_documented() -> None:
    from keyquorum.dsl.control import facade, util

    page = (Path(__file__).parents[2] / "docs" / "pages" / "dsl.md").read_text()
    tables = (facade._TYPES, facade._GC_TYPES, facade._LIBRARY, facade._INSTRUCTIONS, util.NAMES)
    missing = {n for table in tables for n in table if f"{n}" not in page}
    assert missing <= {"SubMultiArray"}
