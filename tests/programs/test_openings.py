"""Every place that opens something is in docs/pages/bounded-masks.md, which says under which mask."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramOptions
from keyquorum.dsl.context import Run
from keyquorum.dsl.control.program import Program
from keyquorum.dsl.values import comparison

from .conftest import COMPARES_OVER_FIELDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pages" / "bounded-masks.md"
OPENS = {
    "reveal", "reveal_to", "reveal_list", "reveal_to_clients", "reveal_nested", "print_reveal_nested", "inverse_permutation",
    "send", "open_low", "open_row", "compared_elements", "stored_comparison",
}  # fmt: skip
"""Methods of the language, and functions of Programs/Library, that open their operands."""
ENGINE = {"open", "open_low", "open_masked", "open_to"}
PLACE = re.compile(r"`([\w.]+)` (\d+)")


def listed(text: str) -> Counter[str]:
    """The places of the page's last table, by the file."""
    table = text[text.index("## Every opening") :]
    found: Counter[str] = Counter()
    for name, count in PLACE.findall(table):
        found[name] += int(count)
    return found


def of_a_program(tree: ast.AST) -> int:
    """How many calls of a program, or a helper of programs, open something."""
    names = (n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "") for n in ast.walk(tree) if isinstance(n, ast.Call))
    return sum(name in OPENS for name in names)


def of_the_language(tree: ast.AST) -> int:
    """How many times a module of the package names an opening of the engine."""
    return sum(isinstance(n, ast.Attribute) and n.attr in ENGINE and ast.unparse(n.value).endswith("engine") for n in ast.walk(tree))


def counted() -> Iterator[tuple[str, int]]:
    for path in sorted([*(ROOT / "Programs").glob("*/*.mpc"), *(ROOT / "Programs").glob("*/*.py")]):
        yield path.name, of_a_program(ast.parse(path.read_text()))
    for path in sorted((ROOT / "harness" / "keyquorum").rglob("*.py")):
        if "_share" not in path.parts:
            yield path.name, of_the_language(ast.parse(path.read_text()))


def test_every_opening_is_in_the_table() -> None:
    found: Counter[str] = Counter()
    for name, count in counted():
        found[name] += count
    found = +found
    there = listed(PAGE.read_text())
    assert len(found) > 40
    wrong = {name: (found[name], there[name]) for name in found.keys() | there.keys() if found[name] != there[name]}
    assert not wrong, f"places that open something, and those in {PAGE.name}, which says under which mask: {wrong}"


def test_programs_that_compare_over_fields_are_named() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| comparisons of shipped programs")]
    assert len(rows) == 1 and set(re.findall(r"`(\w+)`", rows[0].split("|")[1])) == COMPARES_OVER_FIELDS


def test_an_opening_that_is_added_is_found() -> None:
    assert of_a_program(ast.parse("x = sint(1)\n(x + stored(0, 1)).reveal().binary_output()\nsend(x, 0)")) == 2
    assert of_the_language(ast.parse("opened = run.engine.open(x)\nf = engine.open_masked\nos.open(path)\nPath(path).open()")) == 2


def test_a_program_that_compares_over_a_field_is_found() -> None:
    engine = _engine.local_sessions(1, 30.0)[0].engine("emulate", "F_1152921504606584833", "test")
    run = Run(engine, None, Program(engine, "", "another", [], ProgramOptions()))
    with pytest.raises(AssertionError, match="another compares numbers over a field"):
        comparison.negative(run, engine.clear(np.array([1])), 8)
