"""Programs that both engines must refuse, each with a good program that differs only in the offending expression and must run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
from hypothesis import Phase, settings
from hypothesis import strategies as st

from .builder import Builder
from .generate import SETTINGS

KINDS = ("sint", "cint", "regint")


@dataclass(frozen=True)
class Refusal:
    """``bad``: refused at compile time or at run time; ``good``: accepted. ``field``: over fields only."""

    family: str
    bad: str
    good: str
    field: bool = False


def _two_sizes(b: Builder) -> tuple[int, int]:
    n = b.integer(2, 6)
    return n, n + b.integer(1, 3)


def _vector(b: Builder, kind: str, size: int) -> str:
    return f"{kind}({[b.integer(-9, 9) for _ in range(size)]})"


def sizes(b: Builder) -> tuple[str, str]:
    """Operands of different sizes."""
    (n, m), op = _two_sizes(b), b.choice(("+", "-", "*", "<", "==", ">="))
    left, right = b.choice(KINDS), b.choice(KINDS)
    if "regint" in (left, right) and left != right and op in ("<", "==", ">="):
        right = left
    x = _vector(b, left, n)
    return f"y = {x} {op} {_vector(b, right, m)}", f"y = {x} {op} {_vector(b, right, n)}"


def inner_products(b: Builder) -> tuple[str, str]:
    """Inner products of vectors of different sizes, products of matrices that do not fit."""
    n, m = _two_sizes(b)
    if b.flag():
        text = "y = sint.dot_product({}, {})"
        x = _vector(b, "sint", n)
        return text.format(x, _vector(b, "sint", m)), text.format(x, _vector(b, "sint", n))
    text, kind = "y = sint.Matrix(2, {}).dot({}.Matrix({}, 2))", b.choice(("sint", "cint"))
    return text.format(n, kind, m), text.format(n, kind, n)


def containers_too_small(b: Builder) -> tuple[str, str]:
    """More values than places."""
    (n, m), kind = _two_sizes(b), b.choice(KINDS)
    way = b.choice(("assign", "assign_vector", "matrix", "memory", "element"))
    if way == "matrix":
        text = "M = {}.Matrix(1, {})\nM.assign_vector({})"
        return text.format(kind, n, _vector(b, kind, m)), text.format(kind, n, _vector(b, kind, n))
    if way == "memory":
        text = "v = MemValue({})\nv.write({})"
        x = _vector(b, kind, n)
        return text.format(x, _vector(b, kind, m)), text.format(x, _vector(b, kind, n))
    if way == "element":
        text = "A = {}.Array({})\nA[0] = {}"
        return text.format(kind, n, _vector(b, kind, m)), text.format(kind, n, _vector(b, kind, 1))
    text = "A = {}.Array({})\nA.{}({})"
    return text.format(kind, n, way, _vector(b, kind, m)), text.format(kind, n, way, _vector(b, kind, n))


def python_control(b: Builder) -> tuple[str, str]:
    """Python's if, while, and, or, not, in on values of run time."""
    kind, c = b.choice(KINDS), b.integer(-9, 9)
    condition = f"{kind}({c}) {b.choice(('<', '==', '>='))} {b.integer(-9, 9)}"
    if kind == "sint":
        condition = condition.replace("sint(", "sint(").replace("==", "<")
    form = b.choice(
        ("if {}: pass", "while {}: break", "y = ({}) and 1", "y = ({}) or 1", "y = not ({})", "y = 5 in [{}]",
         "y = 1 if {} else 2", "assert {} or True")
    )  # fmt: skip
    return form.format(condition), form.format(f"{c} < 3")


def python_numbers(b: Builder) -> tuple[str, str]:
    """Python's indices, ranges and sizes made of values of run time."""
    kind, n = b.choice(("regint", "cint")), b.integer(1, 3)
    form = b.choice(
        ("y = [5, 6, 7, 8][{}]", "y = list(range({}))", "y = sint(0, size={})", "A = sint.Array({})", "M = cint.Matrix({}, 2)",
         "y = 'abcde'[{}]", "y = sint.get_random_bit(size={})", "y = int({}) + 1")
    )  # fmt: skip
    return form.format(f"{kind}({n})"), form.format(n)


def places(b: Builder) -> tuple[str, str]:
    """Compile-time and run-time places out of range."""
    n, kind = b.integer(2, 6), b.choice(KINDS)
    past = n + b.integer(0, 3)
    form = b.choice(
        ("y = {k}.Array({n})[{i}]", "A = {k}.Array({n})\nA[{i}] = 1", "y = {k}(0, size={n})[{i}]", "y = {k}.Matrix({n}, 2)[{i}]",
         "A = {k}.Array({n})\nA[regint({i})] = 1\nbreak_point()", "y = {k}.Array({n}).get(regint([0, {i}]))\nbreak_point()")
    )  # fmt: skip
    return form.format(k=kind, n=n, i=past), form.format(k=kind, n=n, i=b.integer(0, n - 1))


def secrets_as_public(b: Builder) -> tuple[str, str]:
    """Secret values where public ones are needed."""
    c = b.integer(0, 2)
    form = b.choice(
        ("y = cint({})", "y = regint({})", "y = sint.Array(3)[{}]", "A = cint.Array(3)\nA[0] = {}", "for_range({})(lambda i: None)",
         "y = regint.Array(3)\ny.assign_all({})", "if_({} == 1)(lambda: None)", "y = cint({}) + cint(1)", "crash({} == 99)")
    )  # fmt: skip
    return form.format(f"sint({c})"), form.format(f"cint({c})")


def names_around_bodies(b: Builder) -> tuple[str, str]:
    """Assigning to a variable of the surroundings in a body that runs: the embedded engine does not look into others."""
    kind, n = b.choice(KINDS), b.integer(1, 4)
    head = b.choice((f"@for_range({n})\ndef _(i):", f"@for_range_opt({n})\ndef _(i):", f"@if_(regint({n}) == {n})\ndef _():"))
    start = f"y = {kind}({n})\n{head}\n"
    return f"{start}    y = y + 1", f"{start}    y.update(y + 1)"


def constants_in_blocks(b: Builder) -> tuple[str, str]:
    """Making a register of the surroundings a Python number."""
    kind, n = b.choice(KINDS), b.integer(1, 4)
    start = f"y = {kind}({n})\n@for_range({n})\ndef _(i):\n    global y\n"
    return f"{start}    y = {b.integer(0, 9)}", f"{start}    y = y + {b.integer(1, 9)}"


def lists_in_branches(b: Builder) -> tuple[str, str]:
    """Changing a list in a branch."""
    n = b.integer(0, 4)
    change = b.choice((f"L.append({n})", f"L[0] = {n}", "L.pop()"))
    start = f"L = [1, 2]\nA = regint.Array(2)\n@if_(regint({n}) < 5)\ndef _():\n"
    return f"{start}    {change}", f"{start}    A[0] = {n}"


def halves_of_branches(b: Builder) -> tuple[str, str]:
    """if_e without else_, and values returned from branches."""
    first = f"@if_e(regint({b.integer(0, 4)}) < 5)\ndef _():\n    pass\n"
    if b.flag():
        return first, first + "@else_\ndef _():\n    pass"
    alone = first.replace("if_e", "if_")
    return alone.replace("pass", "return 1"), alone


def operators(b: Builder) -> tuple[str, str]:
    """Operations that a type does not have."""
    bad, good = b.choice(
        (("x & x", "x * x"), ("~(x < 2)", "1 - (x < 2)"), ("r & 3", "r % 4"), ("x % 3", "x % 4"), ("x * 1.5", "x * 2"), ("x / 2", "x >> 1"),
         ("sint.dot_product(x, c)", "sint.dot_product(x, x)"), ("sint.concat([x, c])", "sint.concat([x, x])"),
         ("(x < 2) & x", "(x < 2) & (x < 3)"), ("c.sum()", "x.sum()"), ("cint(x)", "cint(c)"), ("x.get_vector(1, 3)", "x.get_vector(1, 2)"),
         ("sint([x, 1])", "sint([x[0], 1])"), ("x.expand_to_vector(5)", "x[0].expand_to_vector(5)"), ("sint(c, size=4)", "sint(c, size=3)"))
    )  # fmt: skip
    start = f"x = {_vector(b, 'sint', 3)}; c = {_vector(b, 'cint', 3)}; r = {_vector(b, 'regint', 3)}\nprogram.bit_length = 8\ny = "
    return start + bad, start + good


def outside_files(b: Builder) -> tuple[str, str]:
    """Reading shares that were not stored."""
    n, start = b.integer(1, 4), b.integer(0, 2)
    text = "sint.write_to_file(sint(0, size={}))\nbreak_point()\ny = sint.read_from_file({}, size={})[1][0]\nprint_ln('%s', y.reveal())"
    return text.format(n + start, start, n + 1 + b.integer(0, 3)), text.format(n + start, start, n)


def outside_inputs(b: Builder) -> tuple[str, str]:
    """Asking for more input than there is: eight words."""
    text = "y = sint.get_input_from(0, size={}, binary=True)\nprint_ln('%s', y.reveal())"
    return text.format(9 + b.integer(0, 3)), text.format(b.integer(1, 8))


def crashes(b: Builder) -> tuple[str, str]:
    """Programs that stop themselves."""
    n = b.integer(0, 9)
    form = b.choice(("crash(regint({}) == {})", "runtime_error_if(cint({}) == {}, 'stop')"))
    return form.format(n, n), form.format(n, n + 1)


def long_comparisons(b: Builder) -> tuple[str, str]:
    """Comparisons whose mask does not fit the prime of 60 bits: k + 42 bits for <, k + 41 for the others."""
    name, largest = b.choice((("less_than", 18), ("greater_equal", 18), ("equal", 19), ("not_equal", 19)))
    text = f"y = sint({b.integer(-9, 9)}).{name}({b.integer(-9, 9)}, {{}})\nprint_ln('%s', y.reveal())"
    return text.format(largest + b.integer(1, 12)), text.format(largest)


FIELD_FAMILIES = (long_comparisons,)
FAMILIES: tuple[Callable[[Builder], tuple[str, str]], ...] = (
    sizes, inner_products, containers_too_small, python_control, python_numbers, places, secrets_as_public, names_around_bodies,
    constants_in_blocks, lists_in_branches, halves_of_branches, operators, outside_files, outside_inputs, crashes, long_comparisons,
)  # fmt: skip


def collect(each: int, seed: int) -> list[Refusal]:
    """``each`` different pairs of every family, the same for the same seed."""
    found: list[Refusal] = []
    for family in FAMILIES:
        mine: dict[str, Refusal] = {}
        number = 0
        while len(mine) < each and number < 20:
            for bad, good in _round(family, f"{seed}/{family.__name__}/{number}"):
                mine.setdefault(bad, Refusal(family.__name__, f"{bad}\n", f"{good}\n", family in FIELD_FAMILIES))
            number += 1
        found += list(mine.values())[:each]
    return found


def _round(family: Callable[[Builder], tuple[str, str]], seed: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []

    @st.composite
    def strategy(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[str, str]:
        return family(Builder(draw))

    @hypothesis.seed(seed)
    @settings(SETTINGS, max_examples=10, phases=[Phase.generate])
    @hypothesis.given(strategy())
    def gather(pair: tuple[str, str]) -> None:
        pairs.append(pair)

    gather()
    return pairs
