"""Hypothesis strategies of whole programs, and the deterministic collection of many of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

from . import arithmetic, bits, control, exchange, memory, methods  # noqa: F401  (they register their constructs)
from .builder import REGISTRY, Builder, Program, Var, add_steps
from .oracle import State, bits_text, bracketed, listed, nested

INSIDE = {"print_in_body"}
"""Constructs of bodies only."""
TOP = [name for name in REGISTRY if name not in INSIDE]


class SeededProvider(HypothesisProvider):
    """Draws that depend on the seed alone: not on numbers that stand in the modules that happen to be loaded."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        return None


AVAILABLE_PROVIDERS["keyquorum-seeded"] = f"{__name__}.{SeededProvider.__name__}"
SETTINGS = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck), backend="keyquorum-seeded")


def show(b: Builder, v: Var) -> tuple[str, Callable[[State], str]] | None:
    """How the final content of a variable is printed: an argument of print_ln, and what it shows."""
    centred = lambda s: s.domain.centre(s[v.name])  # noqa: E731
    if v.kind == "sint":
        return f"{v}.reveal()", lambda s: listed(centred(s))
    if v.kind in ("cint", "regint"):
        return (f"cint({v})" if v.kind == "regint" else str(v)), lambda s: listed(centred(s))
    if v.kind == "sbits":
        return f"{v}.reveal()", lambda s: bits_text(s[v.name], v.size)
    if v.kind == "cbits":
        return str(v), lambda s: bits_text(s[v.name], v.size)
    if v.kind == "rows":
        return f"[x.reveal() for x in {v}]", lambda s: bracketed([bits_text(x, v.size) for x in s[v.name]])
    if v.kind in ("array", "mem"):
        text = f"cint({v}[:])" if (v.kind, v.of) == ("array", "regint") else f"{v}.reveal()"
        text = f"cint({v}.read())" if (v.kind, v.of) == ("mem", "regint") else text
        return text, lambda s: listed(centred(s))
    if v.kind == "matrix":
        return f"{v}.reveal_nested()", lambda s: nested(centred(s), v.shape)
    return None


def finish(b: Builder) -> None:
    """Prints what is left of everything, a few variables a line."""
    shown = [form for form in (show(b, v) for v in b.scope) if form]
    for at in range(0, len(shown), 6):
        part = shown[at : at + 6]
        arguments = ", ".join(text for text, _ in part)
        b.act(
            f"print_ln('@TAG {' | '.join(['%s'] * len(part))}', {arguments})",
            lambda s, part=part: s.print(" | ".join(value(s) for _, value in part)),
        )


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any], names: tuple[str, ...] = tuple(TOP)) -> Program:
    """A program of 1 to 7 constructs, which prints all that it computed."""
    b = Builder(draw)
    add_steps(b, names, b.choice((3, 1, 2, 4, 5, 7)))
    finish(b)
    small = tuple(draw(st.lists(st.integers(-100, 100), min_size=1, max_size=6)))
    wide = tuple(draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6)))
    bit = tuple(draw(st.lists(st.integers(0, 1), min_size=1, max_size=6)))
    pools = {"small": small, "wide": wide, "bit": bit}
    return Program(tuple(b.steps), frozenset(b.needs), b.room, b.uses, pools)


ROUND = 20
"""Examples that hypothesis draws with one seed: more of them repeat one another."""


def collect(count: int, seed: int) -> list[Program]:
    """``count`` different programs, the same for the same seed. Round r of them comes of the seed ``(seed, r)``."""
    found: dict[str, Program] = {}
    number = 0
    while len(found) < count:
        for program in example_round(seed, number):
            found.setdefault(program.text, replace(program, origin=(seed, number)))
        number += 1
    return list(found.values())[:count]


def example_round(seed: int, number: int) -> list[Program]:
    """The programs of a round."""
    found: list[Program] = []

    @hypothesis.seed(f"{seed}/{number}")
    @settings(SETTINGS, max_examples=ROUND, phases=[Phase.generate])
    @hypothesis.given(programs())
    def gather(program: Program) -> None:
        found.append(program)

    gather()
    return found


def smallest(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Hypothesis' smallest program that fails, starting from one that ``collect`` found. ``fails`` is asked once about each program: hypothesis
    raises errors about results that change."""
    best = program
    reached = False
    verdicts: dict[str, bool] = {}

    @hypothesis.seed(f"{program.origin[0]}/{program.origin[1]}")
    @settings(SETTINGS, max_examples=ROUND, phases=[Phase.generate, Phase.shrink], report_multiple_bugs=False)
    @hypothesis.given(programs())
    def search(candidate: Program) -> None:
        nonlocal best, reached
        if not reached and candidate.text != program.text:
            return
        reached = True
        which = repr(candidate)
        if which not in verdicts:
            verdicts[which] = fails(candidate)
        if verdicts[which]:
            best = candidate
            raise AssertionError("fails")

    with contextlib.suppress(AssertionError):
        search()
    return best
