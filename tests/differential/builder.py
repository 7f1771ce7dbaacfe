"""Random programs under construction: every construct draws its operands and adds a step, which is a piece of text with
its action on the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from .domain import Domain
from .oracle import Action, State

T = TypeVar("T")
LIMIT = 1 << 44
"""Numbers up to here are the same integers in every domain but the tiny one: no wrap-around."""
SIZES = (1, 2, 3, 4, 7)
NUMBERS = ("sint", "cint", "regint")
"""Kinds of numbers, in the order in which an operand decides the kind of a result."""


@dataclass(frozen=True)
class Var:
    """A variable, or a constant. ``size``: elements, of bits for ``sbits`` and ``rows`` (``count`` of them).
    ``bound``: no element has a larger absolute value; None: any. ``bit``: 0 and 1 only. ``of``: kind of a container's
    elements. ``state``: it changes by ``update``, so nothing may alias it. ``owner``: of a personal value. ``below``: an index of [0, below)."""

    name: str
    kind: str
    size: int = 1
    bound: int | None = None
    bit: bool = False
    count: int = 0
    of: str = ""
    shape: tuple[int, ...] = ()
    state: bool = False
    owner: int = 0
    number: int = 0
    below: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def zero(self) -> bool:
        """Whether this is Python's 0: products with it are Python's 0 too, of no size."""
        return self.kind == "int" and self.number == 0

    def within(self, bound: int) -> bool:
        """Whether all elements are at most ``bound``, in absolute value."""
        return self.bound is not None and self.bound <= bound


def constant(value: int) -> Var:
    """A Python integer as operand."""
    return Var(f"({value})" if value < 0 else str(value), "int", 1, abs(value), value in (0, 1), number=value)


@dataclass(frozen=True)
class Step:
    """Lines of text, and what the oracle does for them."""

    lines: tuple[str, ...]
    action: Action


@dataclass(frozen=True)
class Program:
    """A finished program. ``needs``: what a backend must offer; ``room``: integer length that its comparisons need;
    ``uses``: its constructs; ``origin``: seed and round of hypothesis."""

    steps: tuple[Step, ...]
    needs: frozenset[str]
    room: int
    uses: Counter[str] = field(hash=False, compare=False)
    pools: dict[str, tuple[int, ...]] = field(hash=False)
    origin: tuple[int, int] = (0, 0)

    @property
    def text(self) -> str:
        """Its source."""
        return "".join(f"{line}\n" for step in self.steps for line in step.lines)

    def evaluate(self, domain: Domain, parties: int, file_base: int = 0) -> State:
        """The expected result in a domain."""
        state = State(domain, parties, self.pools, file_base)
        for step in self.steps:
            step.action(state)
        return state

    def __repr__(self) -> str:
        pools = ", ".join(f"{name}={list(numbers)}" for name, numbers in self.pools.items())
        return f"program ({pools}; needs {sorted(self.needs)}, room {self.room}):\n{self.text}"


class Builder:
    """A program, or the body of a loop or branch in it, under construction. ``pure``: without inputs and outputs."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], parent: Builder | None = None) -> None:
        self.draw = draw
        self.scope: list[Var] = []
        self.steps: list[Step] = []
        self.depth: int = parent.depth + 1 if parent else 0
        self.pure: bool = parent.pure if parent else False
        self.needs: set[str] = parent.needs if parent else set()
        self.uses: Counter[str] = parent.uses if parent else Counter()
        self._shared: dict[str, int] = parent._shared if parent else {"names": 0, "room": 0, "shares": 0}

    # -- choices --------------------------------------------------------------------------------------------------

    def integer(self, low: int, high: int) -> int:
        """An integer of [low, high]; simplest: the one next to zero."""
        return int(self.draw(st.integers(low, high)))

    def choice(self, options: Sequence[T]) -> T:
        """One of several; simplest: the first."""
        return self.draw(st.sampled_from(options))  # type: ignore[no-any-return]

    def flag(self) -> bool:
        """True or False; simplest: False."""
        return bool(self.draw(st.booleans()))

    def size(self) -> int:
        """A vector size."""
        return self.choice(SIZES)

    def number(self, wide: bool = False) -> int:
        """A Python integer; ``wide``: any of 64 bits."""
        if wide and self.flag():
            return self.choice((2**31, -(2**31) - 1, 2**40 + 12345, -(2**62) - 987, 2**63 - 1, -(2**63)))
        return self.integer(-100, 100)

    # -- requirements ---------------------------------------------------------------------------------------------

    def need(self, *what: str) -> None:
        """The program runs only where this is offered."""
        self.needs.update(what)

    def need_party(self, party: int) -> None:
        """The program runs only where this party has inputs and outputs of its own."""
        if party:
            self.need(f"party {party}")

    def need_room(self, length: int) -> None:
        """The program compares integers of this length."""
        self._shared["room"] = max(self._shared["room"], length)

    @property
    def room(self) -> int:
        """Integer length that comparisons need so far."""
        return self._shared["room"]

    @property
    def shares(self) -> int:
        """Shares in the file so far."""
        return self._shared["shares"]

    @shares.setter
    def shares(self, count: int) -> None:
        self._shared["shares"] = count

    # -- steps ----------------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        """A new name."""
        self._shared["names"] += 1
        return f"v{self._shared['names'] - 1}"

    def act(self, text: str | Sequence[str], action: Action) -> None:
        """Adds lines that define nothing."""
        self.steps.append(Step((text,) if isinstance(text, str) else tuple(text), action))

    def break_point(self) -> None:
        """Makes the steps before it end before the steps after it begin, on MP-SPDZ too."""
        self.act("break_point()", lambda s: None)

    def change(self, var: Var, text: str, value: Callable[[State], Any]) -> None:
        """Adds a line that gives a known variable a new value."""
        self.act(text, lambda s: s.values.__setitem__(var.name, value(s)))

    def add(self, var: Var) -> Var:
        """Makes a variable known, which a step has defined."""
        self.scope.append(var)
        return var

    def define(self, var: Var, text: str, value: Callable[[State], Any]) -> Var:
        """Adds ``name = text`` (the name is made here), and the oracle's value."""
        made = self._named(var)
        self.change(made, f"{made} = {text}", value)
        return self.add(made)

    def _named(self, var: Var) -> Var:
        bound = var.bound if var.bound is not None and var.bound <= LIMIT else None
        return replace(var, name=self.fresh(), bound=bound, bit=var.bit and bound is not None)

    def nested(self, scope: Sequence[Var]) -> Builder:
        """A builder for a body that sees these variables."""
        inner = Builder(self.draw, self)
        inner.scope = list(scope)
        return inner

    @contextmanager
    def body(self, scope: Sequence[Var], minimum: int = 1) -> Iterator[Builder]:
        """A body that sees these variables; an empty one gets a ``pass``."""
        inner = self.nested(scope)
        yield inner
        if not inner.steps:
            inner.act("pass", lambda s: None)

    # -- operands -------------------------------------------------------------------------------------------------

    def candidates(self, kind: str | Sequence[str], fits: Callable[[Var], bool] = lambda v: True) -> list[Var]:
        """Known variables of a kind that fit, the latest first."""
        kinds = (kind,) if isinstance(kind, str) else kind
        return [v for v in reversed(self.scope) if v.kind in kinds and fits(v)]

    def pick(self, kind: str | Sequence[str], fits: Callable[[Var], bool] = lambda v: True) -> Var | None:
        """A known variable of a kind that fits and that no ``update`` changes; None if there is none."""
        found = self.candidates(kind, lambda v: not v.state and fits(v))
        return self.choice(found) if found else None


Construct = Callable[[Builder], None]
REGISTRY: dict[str, tuple[Construct, int]] = {}
"""Constructs by name, with their weights."""


def construct(weight: int = 2) -> Callable[[Construct], Construct]:
    """Registers a construct under its function's name."""

    def register(function: Construct) -> Construct:
        name = function.__name__.strip("_")
        assert name not in REGISTRY, name

        def counted(b: Builder) -> None:
            b.uses[name] += 1
            function(b)

        REGISTRY[name] = (counted, weight)
        return function

    return register


def add_steps(b: Builder, names: Sequence[str], count: int) -> None:
    """Draws ``count`` constructs."""
    weighted = [n for n in names for _ in range(REGISTRY[n][1])]
    for _ in range(count):
        REGISTRY[b.choice(weighted)][0](b)


def indented(lines: Sequence[str]) -> list[str]:
    """Lines as a body."""
    return [f"    {line}" for line in lines]


def body_lines(b: Builder) -> list[str]:
    """A body's text."""
    return indented([line for step in b.steps for line in step.lines])


def run_body(b: Builder, s: State) -> None:
    """The oracle's action for a body."""
    for step in b.steps:
        step.action(s)
