"""Operands: known variables, constants, inputs; and their values for the oracle."""

from __future__ import annotations

from collections.abc import Callable

from .builder import NUMBERS, Builder, Var, constant
from .oracle import State

POOLS = {"small": 100, "bit": 1, "wide": None}
"""Numbers that inputs take, and their bounds; None: any of 64 bits."""


def elements(s: State, v: Var) -> list[int]:
    """Canonical elements of the domain."""
    if v.kind == "int":
        return s.domain.reduce([v.number])
    values: list[int] = s[v.name]
    return s.domain.reduce(values) if v.kind == "regint" else list(values)


def integers(s: State, v: Var) -> list[int]:
    """Signed integers: what comparisons, conversions to regint and outputs see."""
    if v.kind == "int":
        return [v.number]
    return list(s[v.name]) if v.kind == "regint" else s.domain.integers(s[v.name])


def _drawn(b: Builder, bit: bool, bound: int | None, wide: bool) -> int:
    if bit:
        return b.integer(0, 1)
    return b.number(wide) if bound is None else b.integer(-min(bound, 100), min(bound, 100))


def literal(b: Builder, size: int, bit: bool = False, bound: int | None = None, wide: bool = False) -> tuple[str, list[int]]:
    """A list (or a number, for size 1) as text, and its numbers."""
    numbers = [_drawn(b, bit, bound, wide) for _ in range(size)]
    return (str(numbers[0]) if size == 1 and b.flag() else str(numbers)), numbers


def make(b: Builder, kind: str, size: int, bit: bool = False, bound: int | None = None) -> Var:
    """A new vector of numbers: a literal, one number repeated, or (secrets) an input."""
    pools = [p for p, limit in POOLS.items() if (p == "bit" or not bit) and (bound is None or (limit is not None and limit <= bound))]
    ways = ["literal", "repeated"] + (["input", "input"] if kind == "sint" and not b.pure and pools else [])
    way = b.choice(ways)
    if way == "input":
        pool, party = b.choice(pools), b.integer(0, 2)
        b.need_party(party)
        text = f"sint.get_input_from({party}, size={size}, binary=True)"
        made = Var("", kind, size, POOLS[pool], pool == "bit")
        return b.define(made, text, lambda s: s.domain.reduce(s.take_private(party, pool, size)))
    # A constant must fit the domain of every backend: only regint takes all 64 bits.
    wide = kind == "regint" and bound is None
    if way == "literal":
        text, numbers = literal(b, size, bit, bound, wide)
        text = f"{kind}({text})"
    else:
        numbers = [_drawn(b, bit, bound, wide)] * size
        text = f"{kind}({numbers[0]}, size={size})"
    made = Var("", kind, size, max(abs(x) for x in numbers), all(x in (0, 1) for x in numbers))
    exact = kind == "regint"
    return b.define(made, text, lambda s: list(numbers) if exact else s.domain.reduce(numbers))


def vector(
    b: Builder,
    kind: str,
    size: int | None = None,
    bit: bool = False,
    bound: int | None = None,
    fits: Callable[[Var], bool] = lambda v: True,
) -> Var:
    """A known or new vector of this kind; ``size`` None: any. ``bound``: of its elements."""

    def suits(v: Var) -> bool:
        return (size is None or v.size == size) and (not bit or v.bit) and (bound is None or v.within(bound)) and fits(v)

    known = b.pick(kind, suits) if not b.flag() else None
    return known or make(b, kind, b.size() if size is None else size, bit, bound)


def anything(b: Builder, size: int | None = None, bound: int | None = None) -> Var:
    """A vector of any kind of numbers."""
    return vector(b, b.choice(NUMBERS), size, bound=bound)


def partner(b: Builder, x: Var, kinds: tuple[str, ...] = NUMBERS, bound: int | None = None, fixed: bool = False) -> Var:
    """A second operand for ``x``: of its size or of size 1 (any size if ``x`` has size 1 and is not ``fixed`` to it), or
    a Python integer."""
    kind = b.choice((*kinds, "int"))
    if kind == "int":
        value = b.number()
        if bound is None and b.integer(0, 3) == 3:
            b.need("wide")
            value = b.choice((2**31, -(2**31) - 1, 2**40 + 12345, -(2**40)))
        return constant(max(-bound, min(bound, value)) if bound is not None else value)
    size = None if x.size == 1 and not fixed else b.choice((x.size, 1))
    return vector(b, kind, size, bound=bound)


def ranked(*operands: Var) -> str:
    """The kind of a result: secret if an operand is, then cint, then regint."""
    return next(kind for kind in NUMBERS if any(v.kind == kind for v in operands))


def joint_size(*operands: Var) -> int:
    """The size of a result."""
    return max(v.size for v in operands)
