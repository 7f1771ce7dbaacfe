"""The names of the subset, on both engines. Their results are tested in tests/dsl, and in tests/differential on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyquorum.model.errors import ProgramError

from ..running import ALL, EMULATE, RING, Backend, name, printed, run
from .spdz import FIELD, NEEDED, Work, work

__all__ = ["work"]

NAMES = """
types = [sint, cint, regint, sbits, sbitvec, cbits, personal, Array, Matrix, MemValue, sbit]
functions = [print_ln, print_ln_to, fixinput, pubinput, for_range, for_range_opt, for_range_multithread, if_, if_e, else_, while_do,
             function_block, break_point, start_timer, stop_timer, get_number_of_players, get_player_id, crash]
methods = [sint.dot_product, sint.concat, sint.get_random, sint.get_random_bit, sint.get_edabit, sint.get_dabit, sint.get_input_from,
           sint.write_to_file, sint.read_from_file, sint.bit_compose, sint.Array, sint.Matrix, sint.Tensor, sbits.get_type, sbitvec.from_vec,
           regint.inc, personal.read_int, cint.conv, sint.conv, regint.conv, Array.create_from]
x = sint([1, 2])
of_values = [x.sum, x.expand_to_vector, x.get_vector, x.if_else, x.less_than, x.bit_decompose, x.reveal, x.reveal_to, x.split_to_n_summands,
             x.secure_shuffle, x.update, x.mod2m, x.right_shift, x.equal, x.bit_xor]
A, M = sint.Array(2), sint.Matrix(2, 2)
of_containers = [A.assign_vector, A.get_vector, A.get, A.assign_all, A.write_to_file, A.read_from_file, A.get_part, A.reveal, M.get_column,
                 M.set_column, M.transpose, M.dot, M.to_array, M.reveal_nested, M.get_part_vector, M.assign_part_vector]
of_bits = [sbits.get_type(3)(5).popcnt, sbits.bit_adder, sbits.bit_decompose_clear, sbits.get_type(3)(1).if_else]
program.set_security(40)
start_timer(3)
stop_timer(3)
print_ln('%s %s', len(types + functions + methods + of_values + of_containers + of_bits), program.args[1:])
"""
HELPER = """
from Compiler.types import sint, cint, regint, personal, Array, Matrix, MemValue, program
from Compiler.library import for_range, for_range_opt, print_ln, if_e, else_, while_do, function_block, break_point, start_timer
from Compiler.GC.types import sbits, sbitvec, cbits, sbit
from Compiler.instructions import fixinput, pubinput
from Compiler.util import tree_reduce, if_else, bit_xor, is_zero
from Compiler.exceptions import CompilerError, VectorMismatch
from Compiler import util, types, library


def double(x):
    return tree_reduce(lambda a, b: a + b, [x, x])
"""
USE = """
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(program.infile)), '..', 'Library'))
from kq_helper import double
print_ln('%s', double(sint(4)).reveal())
"""
COUNT = "85 [a, 7]"


@NEEDED
@pytest.mark.parametrize(("protocol", "prime"), [("ring", ()), ("rep-field", FIELD)])
def test_names(work: Work, protocol: str, prime: tuple[str, ...]) -> None:
    assert work.lines(protocol, NAMES, ["a", 7], run_time=prime) == [COUNT]


@pytest.mark.parametrize("backend", [b for b in ALL if b[0] != "shamir"], ids=name)
def test_names_here(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, NAMES, backend, "a", 7) == [COUNT]


@NEEDED
def test_names_of_helpers(work: Work) -> None:
    library = work.folder / "Programs" / "Library"
    library.mkdir()
    (library / "kq_helper.py").write_text(HELPER)
    assert work.lines("ring", USE) == ["8"]


def test_names_of_helpers_here(tmp_path: Path) -> None:
    """... and no package of that name stays behind."""
    assert printed(tmp_path, USE, RING, helpers={"kq_helper": HELPER}) == ["8"]
    with pytest.raises(ImportError):
        __import__("Compiler")


TRACED = "L = []\n@for_range(3)\ndef _(i):\n    L.append(i)\nprint_ln('%s', len(L))\n"


@NEEDED
def test_bodies_are_traced_once(work: Work) -> None:
    assert work.lines("ring", TRACED) == ["1"]


def test_what_only_an_interpreter_would_do_is_refused_here(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="'L' cannot change in a run-time loop"):
        run(tmp_path, TRACED, EMULATE)
