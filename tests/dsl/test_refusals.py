"""Refusals of the language, as in MP-SPDZ: one line, with the line of the program and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyquorum.dsl import ProgramOptions
from keyquorum.model.errors import KeyQuorumError, ProgramError

from .running import EMULATE, EMULATE_FIELD, FIELD, REP_FIELD, RING, SHAMIR, Backend, run

SETUP = """\
x = sint([1, 2, 3]); c = cint([1, 2, 3]); r = regint([1, 2, 3]); sb = sbits.get_type(3)(5); n = regint(1)
"""

REFUSED = [
    # Python control by run-time values
    ("if x[0] < 2: pass", "cannot branch on secret values like sintbit"),
    ("if sb: pass", "cannot branch on secret values"),
    ("if n: pass", "cannot derive truth value"),
    ("while n > 0: pass", "cannot derive truth value"),
    ("1 in [x]", "cannot branch on secret values"),
    ("[1, 2, 3][n]", "cannot use the run-time value regint"),
    ("range(n)", "cannot use the run-time value regint"),
    ("int(c[0])", "cannot use the run-time value cint"),
    ("float(n)", "cannot use the run-time value regint"),
    ("'%d' % n", "cannot use the run-time value regint"),
    ("sint(size=n)", "size must be a compile-time integer"),
    ("sint.Array(n)", "must be a compile-time integer"),
    ("if_(x[0] > 1)(lambda: None)", "cannot branch on secret values"),
    ("if_(get_player_id() == 0)(lambda: None)", "differs between parties"),
    ("for_range(x[0])(lambda i: None)", "takes a public number, not the secret sint"),
    ("for_range(r)(lambda i: None)", "not a vector of 3"),
    ("for_range(1, 2, 0)(lambda i: None)", "must not be zero"),
    ("@for_range(3)\ndef _(i):\n    if i == 0: pass", "cannot derive truth value"),
    ("@if_(n)\ndef _():\n    return 5", "cannot return values"),
    ("@else_\ndef _(): pass", "else_ without an if_e"),
    ("@if_e(n)\ndef _(): pass", "if_e without else_"),
    ("while_do(n, n)", "must be a function"),
    # Python state in loops and branches
    ("L = []\n@for_range(3)\ndef _(i): L.append(i)", "'L' cannot change in a run-time loop"),
    ("k = 0\n@for_range(3)\ndef _(i):\n    global k\n    k += 1", "'k' cannot change in a run-time loop"),
    ("def f():\n    k = 0\n    @for_range(3)\n    def _(i):\n        nonlocal k\n        k += 1\nf()", "'k' cannot change"),
    ("a = sint(1)\n@for_range(3)\ndef _(i):\n    a = a + 1", "cannot assign to variables around it"),
    ("a = sint(1)\n@for_range(3)\ndef _(i):\n    global a\n    a = 1", "cannot reassign the constant 1 to 'a'"),
    ("L = [1]\n@if_(n)\ndef _(): L.append(2)", "lists cannot be changed in or after branches"),
    # sizes
    ("x + sint([1, 2])", "different vector sizes of operands: 3/2"),
    ("x * cint([1, 2])", "different vector sizes of operands: 3/2"),
    ("c - cint([1, 2])", "different vector sizes of operands: 3/2"),
    ("r * regint([1, 2])", "different vector sizes of operands: 3/2"),
    ("x < sint([1, 2])", "different vector sizes of operands: 3/2"),
    ("sb & sbits.get_type(4)(1)", "different vector sizes of operands: 3/4 bits"),
    ("sb * sb", "the product of 3 and 3 bits: one operand is a single bit"),
    ("sb.expand(5)", "cannot expand 3 bits to 5"),
    ("cbits.get_type(3)(1) >> 3", "3 bits shift to the right by 0 to 2 places, not 3"),
    ("sbits.unit = 3", "sbits.unit cannot be changed"),
    ("sbits.get_type(3).n = 5", "sbits3.n cannot be changed"),
    ("sbitint.get_type(8)(3) + sbitint.get_type(9)(3)", "different lengths of integers: 8/9 bits"),
    ("sbitintvec.get_type(8)([sb]) * sbitintvec.get_type(9)([sb])", "different lengths of integers: 8/9 bits"),
    ("sbitintvec.get_type(8)([sb, sb]) * 3", "times the number 3 is outside the supported subset"),
    ("sbits.new(5)", "takes a positive compile-time integer, not None"),
    ("reveal([x])", "lists are for util.reveal"),
    ("sbitvec.get_type(4)(16)", "the constant 16 is longer than 4 bits"),
    ("sbitintvec.get_type(0)", "takes a positive compile-time integer"),
    ("sbitvec.from_vec([sb, sbit(1)])", "rows of different sizes"),
    ("x.expand_to_vector(5)", "cannot expand a vector of size 3 to 5"),
    ("x.update(sint(1))", "cannot update a vector of size 3 with one of size 1"),
    ("sint(cint([1, 2]), size=3)", "mismatch in vector size: 2, not 3"),
    ("sint([x, 1])", "must be scalars"),
    ("sint.dot_product(x, sint([1, 2]))", "vectors of sizes 3 and 2"),
    ("sint.dot_product([x], [x, x])", "lists of 1 and 2 vectors"),
    ("MemValue(sint(1)).write(x)", "size mismatch"),
    ("x.get_vector(1, 3)", "leaves the vector of size 3"),
    ("x[3]", "index 3, length 3"),
    ("sint(5, size=65)[0]", "taking a vector of 65 elements apart is slow"),
    ("[y for y in sint(5, size=65)]", "taking a vector of 65 elements apart is slow"),
    ("sum(cint(5, size=65))", "taking a vector of 65 elements apart is slow"),
    ("sbits.get_type(65)(0).bit_decompose()", "taking 65 bits apart is slow"),
    ("sbitvec.from_vec([sbits.get_type(4097)(0)]).elements()", "taking rows of 4097 bits apart is slow"),
    # containers
    ("sint.Array(3)[3]", "index 3, length 3"),
    ("sint.Array(3)[regint(3)]", "overflow: index 3, length 3"),
    ("sint.Array(3)[regint(-1)]", "overflow: index -1, length 3"),
    ("sint.Array(3)[x[0]]", "need a clear index"),
    ("sint.Array(3).get(regint([0, 3]))", "overflow: index 3, length 3"),
    ("sint.Array(3).get([0, 1])", "takes a regint vector"),
    ("sint.Array(3).get_vector(1, 3)", "leaves the container of 3 elements"),
    ("sint.Array(2).assign(x)", "do not fit a container of 2 elements"),
    ("sint.Array(3).assign(x, 1)", "do not fit a container of 3 elements"),
    ("sint.Array(3)[0] = x", "size mismatch in array assignment"),
    ("sint.Array(4)[0:4:2] = x", "3 values do not fit a slice of 2"),
    ("sint.Array(4).assign(x, regint([0, 1]))", "3 values do not fit 2 indices"),
    ("sint.Array(3)[-2:]", "negative bound"),
    ("sint.Array(3)[n:3]", "slices of an Array take compile-time integers"),
    ("sint.Array(3).assign_all(x)", "cannot assign vector to all elements"),
    ("cint.Array(3).assign(x)", "cannot convert the secret sint to cint"),
    ("sint.Array(65).__iter__()", "iterating over 65 elements is slow"),
    ("sint.Matrix(2, 3)[2]", "index 2, length 2"),
    ("sint.Matrix(2, 3).dot(sint.Matrix(2, 3))", "matrices of 2x3 and 2x3: no product"),
    ("sint.Matrix(2, 3).assign_vector(sint(0, size=7))", "7 values do not fit a container of 6 elements"),
    ("sint.Matrix(2, 3).set_column(0, x)", "a column has 2 elements, not 3"),
    ("Array(3, int)", "cannot create an Array of"),
    ("personal.Array(3)", "personal.Array is outside the supported subset"),
    # types
    ("cint(x)", "cannot convert the secret sint to cint"),
    ("regint(x)", "cannot convert the secret sint to regint"),
    ("regint(sb)", "cannot convert the secret sbits3 to regint"),
    ("x * 1.5", "sint * float is outside the supported subset"),
    ("x & x", "sint & sint is outside the supported subset of the language (docs/pages/dsl.md): & is for bits"),
    ("(x < 2) & x", "sintbit & sint is outside the supported subset"),
    ("~(x < 2)", "~sintbit is outside the supported subset of the language (docs/pages/dsl.md): 1 - x"),
    ("regint(5) & 3", "regint & int is outside the supported subset"),
    ("x ** -1", "the exponent of ** must be at least 0, not -1"),
    ("x ** n", "sint ** regint is outside the supported subset of the language (docs/pages/dsl.md): the exponent is a compile-time integer"),
    ("x ** x", "sint ** sint is outside the supported subset"),
    ("2 ** c", "int ** cint is outside the supported subset"),
    ("x / 2", "sint / int is outside the supported subset of the language (docs/pages/dsl.md): make the operands fixed-point numbers (sfix, cfix); x >> m"),
    ("c / c", "cint / cint is outside the supported subset"),
    ("1 / x", "int / sint is outside the supported subset"),
    ("sint.Array(3) / 2", "Array / int is outside the supported subset"),
    ("m = MemValue(x)\nm /= 2", "sint / int is outside the supported subset"),
    ("x // 2", "sint // int is outside the supported subset of the language (docs/pages/dsl.md): x >> m divides by 2^m"),
    ("c // 2", "cint // int is outside the supported subset of the language (docs/pages/dsl.md): x >> m divides by 2^m and rounds down, regint(c) // n"),
    ("sint.Matrix(2, 2) // 2", "Matrix // int is outside the supported subset"),
    ("x @ x", "sint @ sint is outside the supported subset of the language (docs/pages/dsl.md): use dot"),
    ("sb / sb", "sbits3 / sbits3 is outside the supported subset"),
    ("x + sb", "sint + sbits3 is outside the supported subset"),
    ("sb < 1.5", "sbits3 < float is outside the supported subset"),
    ("cbits.get_type(3)(1) == 1", "comparing cbits3 with int is outside the supported subset"),
    ("x.reveal_to(0) == 1", "comparing personal with int is outside the supported subset"),
    ("sbitvec(x, 3) != 0", "comparing sbitvec with int is outside the supported subset"),
    ("sb < 1", "sbits3 < int is outside the supported subset of the language (docs/pages/dsl.md): comparisons are for sint"),
    ("abs(sb)", "abs(sbits3) is outside the supported subset"),
    ("round(x)", "type sint doesn't define __round__ method is outside the supported subset"),
    ("x(3)", "'sint' object is not callable is outside the supported subset"),
    ("x[0] = 1", "'sint' object does not support item assignment is outside the supported subset"),
    ("len(MemValue(x))", "has no len() is outside the supported subset"),
    ("sint.Matrix(2, 2) + 1", "Matrix with int is outside the supported subset"),
    ("sint.Matrix(2, 2) * 2", "Matrix * int is outside the supported subset"),
    ("sint.Matrix(2, 2) * sint.Matrix(3, 2)", "matrices of 2x2 and 3x2: no product"),
    ("sint.Matrix(2, 2).direct_mul(cint.Matrix(2, 2))", "direct_mul of 2x2 and 2x2 needs one type"),
    ("sint.Matrix(2, 2).direct_mul(sint.Matrix(2, 2), indices=[n, n, r, n])", "direct_mul of 1 columns and 3 rows"),
    ("sint.Matrix(2, 2).direct_mul(sint.Matrix(2, 2), indices=[r, n, n, n])", "overflow: index 2, length 2"),
    ("Matrix.create_from([[x[0]], [x[0], x[1]]])", "rows of one length"),
    ("sint.Matrix(2, 3) + sint.Matrix(3, 2)", "containers of 2x3 and 3x2 do not go together"),
    ("A = sint.Array(3)\nA += 1", "Array with int is outside the supported subset"),
    ("A = sint.Array(3)\nA += sint([1, 2])", "different vector sizes of operands: 3/2"),
    ("cint.Array(3).sort()", "sort of an Array of cint is outside the supported subset"),
    ("sint.Matrix(2, 3).sort()", "Matrix.sort is outside the supported subset of the language (docs/pages/dsl.md): sort an Array"),
    ("sint.Array(3).sort(4)", "only there with batcher=True"),
    ("sint.Array(3).sort(key=1)", "Array.sort() got an unexpected keyword argument 'key': other arguments are outside the supported subset"),
    ("x.int_div(3)", "ring size too small for comparison: it needs 65 bits"),
    ("x.field_div(3)", "sint.field_div is outside the supported subset of the language (docs/pages/dsl.md): multiply with the inverse"),
    ("sint.load_mem(x[0])", "an address takes a public number, not the secret sint"),
    ("sint.load_mem(-1)", "an address in memory is a number of at least 0, not -1"),
    ("personal.load_mem(0)", "personal.load_mem is outside the supported subset of the language (docs/pages/dsl.md): keep values in an Array"),
    ("store_in_mem(3, 0)", "cannot store the Python number 3"),
    ("sint.receive_from_client(3, 0)", "sint.receive_from_client is outside the supported subset"),
    ("c.public_input()", "cint.public_input is outside the supported subset of the language (docs/pages/dsl.md): fixinput"),
    ("MemValue(x).delete()", "MemValue.delete is outside the supported subset"),
    ("sint.Array(3).shuffle()", "Array.shuffle is outside the supported subset of the language (docs/pages/dsl.md): secure_shuffle"),
    ("sint.Tensor([2, 2, 2]).sort()", "MultiArray.sort is outside the supported subset"),
    ("sb.cond_swap(sb, sb)", "cond_swap takes a single bit (sbit), not 3"),
    ("sint.get_random_int(0)", "a positive number of bits, not 0"),
    ("sint.get_random_int(65)", "random integers of 65 bits do not fit Z2^64: take at most 64"),
    ("c.sum()", "cint.sum is outside the supported subset"),
    ("x % 3", "modulo of secret values only for powers of two"),
    ("sint.dot_product(x, c)", "use (a * c).sum()"),
    ("sint.dot_product([x], [c])", "for public factors use sums of products"),
    ("sint.concat([x, c])", "sint.concat takes sint vectors, not cint"),
    ("sint.get_random(3)", "takes 1 positional argument but 2 were given: other arguments are outside the supported subset"),
    ("sbitvec(x)", "sbitvec takes a list of sbits"),
    ("sbits.get_type(3)(9)", "public value 9 longer than 3 bits"),
    ("sbits.get_type(2)(c)", "cannot convert cint(3) to 2 bits"),
    ("cbits.get_type(65)(1).to_regint()", "too many bits for a regint"),
    ("print_ln_to(0, '%s', MemValue(5))", "print_ln_to takes numbers and vectors, not a MemValue"),
    ("print_ln_to(0, '%s', cint.Matrix(2, 2))", "not a Matrix"),
    ("x.bit_or(0)", "gives 0 on MP-SPDZ"),
    ("x.update(0 * x)", "cannot update a vector of size 3 with one of size 1"),
    ("x.reveal_to(0) * 0", "times 0 is 0"),
    ("personal.read_int(0, size=2)", "unexpected keyword"),
    ("sint.bit_compose([])", "bit_compose of no bits"),
    ("sb.popcnt() if sb.n == 8 else sbits.get_type(8)(1).popcnt()", "popcnt of 8 rows is wrong on MP-SPDZ"),
    ("sbitvec.from_vec([sb, sb]) ^ 1", "takes a sbitvec"),
    ("sint.Matrix(2, 3).assign_part_vector(c, 1)", "assign_part_vector takes a sint vector, not cint"),
    ("x.reveal_to(0) + x", "share it with sint(...) first"),
    ("x.reveal_to(0) + x.reveal_to(1)", "parties 0 and 1 do not go together"),
    ("x.reveal_to(n)", "compile-time party number"),
    ("hash(x)", "unhashable type"),
    ("regint(1) // 0", "division of a regint by zero"),
    ("sint.get_input_from(0)", "the numbers of party 0 (Player-Data/Input-P0-0) end after 0"),
    ("sint.Array(2).input_from(0)", "the numbers of party 0 (Player-Data/Input-P0-0) end after 0"),
    ("sint.get_input_from(0, binary=True, n_bytes=1)", "8 bytes a number"),
    ("fixinput(-1, x, 0, 0)", "public input goes to a cint"),
    ("fixinput(0, c, 0, 0)", "private ones are for sint.get_input_from"),
    ("fixinput(-1, c, 0, 1)", "fixinput reads 64-bit integers"),
    ("fixinput(-1, c, 0, 0)", "the public input ends after 0 words"),
    # printing
    ("print_ln('%s', x)", "cannot print secret value sint(3): reveal it first"),
    ("print_ln('%s', sint.Array(3))", "cannot print secret value"),
    ("print_ln('%s %s', 1)", "incorrect number of arguments"),
    ("print_ln('%s', x.reveal_to(1))", "print_ln_to(1, ...)"),
    ("print_ln_to(1, '%s', x.reveal_to(0))", "player mismatch"),
    ("print_ln_to(n, 'x')", "compile-time party number"),
    # timers, settings
    ("start_timer(1)\nstart_timer(1)", "timer 1 already running"),
    ("stop_timer(1)", "timer 1 is not running"),
    ("start_timer(n)", "a timer is named by a compile-time integer"),
    ("program.set_security(0)", "a positive number of bits"),
    ("program.use_split(2)", "split into 3 summands, not 2"),
    ("x.split_to_n_summands(4, 2)", "have 3 summands, not 2"),
    ("x.split_to_n_summands(65, 3)", "ring size too small for splitting"),
    ("x.bit_decompose(65)", "ring size too small for bit decomposition"),
    ("x.less_than(3, 64)", "ring size too small for comparison"),
    ("cint(1 << 70)", "a constant of 71 bits does not fit Z2^64"),
    ("x + (1 << 64)", "a constant of 65 bits does not fit Z2^64"),
    # stopping
    ("crash()", "called crash()"),
    ("crash(n)", "called crash()"),
    ("runtime_error('it is %s', n)", "user exception: it is 1"),
    ("runtime_error_if(n == 1, 'bad %s', r)", "bad 1"),
    ("crash(x[0])", "cannot branch on secret values"),
    # outside the subset
    ("sfloat(1)", "'sfloat' is not defined here, or outside the supported subset"),
    ("get_threshold()", "'get_threshold' is not defined here, or outside the supported subset"),
    ("from Compiler.types import sfloat", "Compiler.types.sfloat is outside the supported subset"),
    ("from Compiler import ml", "Compiler.ml is outside the supported subset"),
    ("import Compiler.oram", "Compiler.oram is outside the supported subset"),
    ("from Compiler import library\nlibrary.odd_even_merge", "Compiler.library.odd_even_merge is outside the supported subset"),
    ("import oram", "Compiler.oram is outside the supported subset"),
    ("program.always_raw()", "program.always_raw is outside the supported subset"),
    ("program.curr_tape.basicblocks", "program.curr_tape.basicblocks is outside the supported subset"),
    ("program.curr_tape.require_bit_length(65)", "the program needs 65 bits, Z2^64 has 64"),
    ("program.set_bit_length(n)", "the bit length is a positive compile-time integer"),
    ("multithread(0, 4)(lambda base, size: None)", "the number of threads is a positive compile-time integer"),
    ("map_sum(1, 1, 4, 2, [sint] * 3)(lambda i: i)", "map_sum of 2 values got 3 types"),
    ("break_loop()", "break_loop() is for the bodies of for_range"),
    ("@for_range_opt(3)\ndef _(i):\n    break_loop()", "break_loop() is for the bodies of for_range"),
    ("@do_while\ndef _(): pass", "the body of a do_while returns a public number"),
    ("@do_while\ndef _():\n    return x[0]", "cannot branch on secret values"),
    ("print_ln_if(x[0], 'a')", "print_ln_if takes a public number as condition, not sint"),
    ("foreach_enumerate([n])", "foreach_enumerate takes compile-time integers"),
    ("foreach_enumerate([1, (2, 3)])", "foreach_enumerate takes compile-time integers, as many in every item"),
    ("getNamedTupleType('a', 'b')(1, 2, 3)", "a tuple of a, b takes 2 values, not 3"),
    ("__file__", "'__file__' is not defined"),
    ("import random\nrandom.random()", "random: every party would draw other numbers"),
    ("from secrets import randbits", "secrets: every party would draw other numbers"),
    ("from random import Random", "random: every party would draw other numbers"),
    ("import random_helper", "No module named 'random_helper'"),
    ("import sys\nsys.exit('wrong argument')", "wrong argument"),
    ("x = (", "'(' was never closed"),
    ("1 / 0", "ZeroDivisionError: division by zero"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "message"), REFUSED, ids=[s.replace("\n", ";")[:60] for s, _ in REFUSED])
def test_refused(tmp_path: Path, statement: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        run(tmp_path, SETUP + statement + "\n", EMULATE)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    first, last = 2, 2 + statement.count("\n")
    if "if_e without" not in message:
        place = text.split(": ")[0]
        assert place in [f"Programs/Source/program.mpc:{line}" for line in range(first, last + 1)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("sint.get_edabit(3, False, size=2)", "shamir has no binary domain in this engine, so no (e)daBits"),
        ("sbits.get_type(3)(1)", "shamir has no binary domain"),
        ("sbitvec(sint(1), 3, 3)", "shamir has no binary domain"),
        ("cbits.get_type(64)(1) & cbits.get_type(64)(1)", "& of 64 opened bits does not fit"),
        ("sint(1).split_to_n_summands(3, 3)", "do not split into summands"),
        ("cint(5) & (1 << 61)", "the mask 2305843009213693952 of & must lie in"),
        ("sint.get_random_int(60)", "random integers of 60 bits do not fit"),
    ],
)
def test_refused_on_shamir(tmp_path: Path, statement: str, message: str) -> None:
    with pytest.raises(ProgramError, match=r"program.mpc:1: ") as caught:
        run(tmp_path, statement, SHAMIR)
    assert message in str(caught.value)


@pytest.mark.parametrize("backend", [EMULATE_FIELD, REP_FIELD, SHAMIR], ids=lambda b: b[0])
@pytest.mark.parametrize(
    ("statement", "largest"),
    [
        ("sint(1) < 2", 18),
        ("sint(1) == 2", 19),
        ("sint(1) % 2", 19),
        ("sint(1) >> 1", 19),
        ("sint(1).bit_decompose()", 19),
    ],
)
def test_masked_comparisons_need_room(tmp_path: Path, backend: Backend, statement: str, largest: int) -> None:
    """bits(q) >= k + 42 for <, k + 41 for the others, k the integer length: a 60-bit prime takes -F 18 and 19."""
    run(tmp_path, statement, backend, options=ProgramOptions(field=largest))
    with pytest.raises(ProgramError, match=rf"needs a prime of 61 bits .* {FIELD} has 60: run with -F 18, or pass bit_length=18"):
        run(tmp_path, statement, backend, options=ProgramOptions(field=largest + 1))
    with pytest.raises(ProgramError, match=r"needs a prime of 10[56] bits"):
        run(tmp_path, statement, backend)
    run(tmp_path, "program.set_security(30)\n" + statement, backend, options=ProgramOptions(field=largest + 10))


@pytest.mark.parametrize(
    ("statement", "cure"),
    [
        ("sint.Array(2).sort(n_bits=20)", "pass n_bits=18"),
        ("sint(1).less_than(2, 20)", "pass bit_length=18"),
        ("sint(1) < 2", "run with -F 18, or pass bit_length=18"),
    ],
)
def test_a_length_of_the_call_is_named_by_its_own_argument(tmp_path: Path, statement: str, cure: str) -> None:
    """With -F 18 already, another run with -F 18 would change nothing, and -F 20 is refused."""
    field = 18 if "<" not in statement else 19
    with pytest.raises(ProgramError, match=rf"needs a prime of \d+ bits .*{FIELD} has 60: {cure}$"):
        run(tmp_path, statement, SHAMIR, options=ProgramOptions(field=field))


@pytest.mark.parametrize("statement", ["sint(1) < 2", "sint(1) == 2", "abs(sint(1))", "sint.Array(2).sort()"])
def test_comparisons_over_fields_say_which_length_fits(tmp_path: Path, statement: str) -> None:
    """With the length that the error names, every comparison runs; the error for a prime that is too small for all integers says so."""
    with pytest.raises(ProgramError, match=r"run with -F 18, or pass bit_length=18"):
        run(tmp_path, statement, SHAMIR)
    run(tmp_path, statement, SHAMIR, options=ProgramOptions(field=18))
    with pytest.raises(ProgramError, match=r"F_65537 has 17: take a prime of at least 43 bits \(-P\)"):
        run(tmp_path, statement, ("shamir", 3, "F_65537"))


def test_helpers_are_named(tmp_path: Path) -> None:
    source = """
        import os, sys
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(program.infile)), '..', 'Library'))
        from helper import broken

        broken(sint(1))
        """
    helpers = {"helper": "def broken(x):\n    y = x\n    return x + 'a'\n"}
    with pytest.raises(ProgramError) as caught:
        run(tmp_path, source, helpers=helpers)
    assert str(caught.value) == (
        "Programs/Source/program.mpc:6: sint + str is outside the supported subset of the language (docs/pages/dsl.md): add numbers of the same domain: "
        "sint, cint, regint and int; of bits use ^ or sbits.bit_adder "
        "[in Programs/Library/helper.py:3]"
    )


def test_missing_program(tmp_path: Path) -> None:
    from keyquorum import _engine
    from keyquorum.dsl import ProgramIO, run_program

    engine = _engine.local_sessions(1)[0].engine("emulate", "Z2^64")
    with pytest.raises(KeyQuorumError, match=r"no program .*nothing\.mpc"):
        run_program(engine, tmp_path / "nothing.mpc", [], ProgramIO())


def test_other_parties_failures_are_the_engines(tmp_path: Path) -> None:
    """A party that fails alone: itself a ProgramError, the others a NetworkError that names it."""
    from keyquorum import _engine

    source = "x = sint.get_input_from(1, size=2, binary=True)\nprint_ln('%s', x.reveal())"
    with pytest.raises(ProgramError, match=r"program.mpc:1: the private input of party 1 ends after 1 words"):
        run(tmp_path, source, RING, private={1: [5]})
    sessions = _engine.local_sessions(3, 10.0)
    engines: list[BaseException] = []

    def one(session: _engine.Session) -> None:
        from keyquorum.dsl import ProgramIO, run_program

        try:
            run_program(session.engine(*RING[::2]), tmp_path / "Programs/Source/program.mpc", [], ProgramIO())
        except Exception as error:
            engines.append(error)
            session.abort(str(error))

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(one, sessions))
    assert sorted(type(e).__name__ for e in engines) == ["NetworkError", "NetworkError", "ProgramError"]


def test_values_outlive_no_run(tmp_path: Path) -> None:
    from keyquorum.dsl.errors import CompilerError
    from keyquorum.dsl.values.secret import sint

    with pytest.raises(CompilerError, match="during its run only"):
        sint(1)
