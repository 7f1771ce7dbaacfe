"""Methods of numbers and containers beyond + - *: powers, absolute values, extremes, swaps, sums of matrices, sorting, random integers."""

from __future__ import annotations

import operator

from .arithmetic import LONG, SHORT
from .builder import Builder, Var, construct
from .memory import array, matrix
from .operands import anything, elements, integers, joint_size, partner, vector
from .oracle import State


def _reduced(s: State, kind: str, values: list[int]) -> list[int]:
    if kind == "regint":
        return [(v + (1 << 63)) % (1 << 64) - (1 << 63) for v in values]
    return s.domain.reduce(values)


@construct(3)
def power(b: Builder) -> None:
    """With a compile-time exponent, 0 and 1 too."""
    n = b.choice((2, 0, 1, 3, 5, 10))
    if b.flag():
        x = anything(b)
        text = f"{x}.square()" if n == 2 else f"{x} ** {n}"
        bound = None if x.bound is None else x.bound**n
        b.define(Var("", x.kind, x.size, bound), text, lambda s: _reduced(s, x.kind, [v**n for v in s[x.name]]))
    else:
        c = array(b, b.choice(("sint", "cint")))
        b.define(Var("", c.of, c.size), f"{c} ** {n}", lambda s: s.domain.reduce(v**n for v in s[c.name]))


@construct()
def absolute(b: Builder) -> None:
    kind = b.choice(("sint", "cint", "regint"))
    x = vector(b, kind, bound=SHORT - 1 if kind == "sint" else LONG)
    if kind == "sint":
        b.need_room(8)
    b.define(Var("", kind, x.size, x.bound), f"abs({x})", lambda s: _reduced(s, kind, [abs(v) for v in integers(s, x)]))


@construct()
def extreme(b: Builder) -> None:
    """x.min(y) and x.max(y), of secret and of public numbers."""
    kind = b.choice(("sint", "cint", "regint"))
    bound = SHORT - 1 if kind == "sint" else LONG
    x = vector(b, kind, bound=bound)
    y = partner(b, x, (kind,), bound=bound)
    if kind == "sint":
        b.need_room(8)
    name, function = b.choice((("min", min), ("max", max)))
    size = joint_size(x, y)

    def value(s: State) -> list[int]:
        left, right = (integers(s, v) if v.size == size else integers(s, v) * size for v in (x, y))
        return _reduced(s, kind, [function(p, q) for p, q in zip(left, right, strict=True)])

    b.define(Var("", kind, size, bound), f"{x}.{name}({y})", value)


@construct()
def swap(b: Builder) -> None:
    kind, size = b.choice(("sint", "cint", "regint")), b.size()
    bit = vector(b, kind, b.choice((size, 1)), bit=True)
    x, y = (vector(b, kind, size) for _ in range(2))
    i = b.integer(0, 1)

    def value(s: State) -> list[int]:
        bits = s[bit.name] * (size // bit.size)
        return [(q if c else p) if i == 0 else (p if c else q) for c, p, q in zip(bits, s[x.name], s[y.name], strict=True)]

    b.define(Var("", kind, size), f"{bit}.cond_swap({x}, {y})[{i}]", value)


@construct()
def half_sum(b: Builder) -> None:
    """Sum modulo 2 and carry of bits as numbers."""
    kind, size = b.choice(("sint", "cint")), b.size()
    x, y = (vector(b, kind, size, bit=True) for _ in range(2))
    i, function = b.choice(((0, operator.xor), (1, operator.and_)))
    b.define(Var("", kind, size, 1, True), f"{x}.half_adder({y})[{i}]", lambda s: list(map(function, s[x.name], s[y.name])))


@construct(2)
def matrix_element_by_element(b: Builder) -> None:
    """Sums, differences and products in the same shape, and sums and differences in place."""
    c = matrix(b)
    d = vector(b, c.of, c.size)
    other = b.define(Var("", "matrix", c.size, of=c.of, shape=c.shape), f"{c}.same_shape()", lambda s: [0] * c.size)
    b.change(other, f"{other}.assign_vector({d})", lambda s: elements(s, d))
    way = b.choice(("+", "-", "schur", "+=", "-="))
    function = {"+": operator.add, "-": operator.sub, "s": operator.mul}[way[0]]
    value = lambda s: s.domain.reduce(map(function, s[c.name], s[other.name]))  # noqa: E731
    if way.endswith("="):
        b.change(c, f"{c} {way} {other}", value)
        return
    text = f"{c}.schur({other})" if way == "schur" else f"{c} {way} {other}"
    b.define(Var("", "matrix", c.size, of=c.of, shape=c.shape), text, value)


@construct(2)
def sorted_array(b: Builder) -> None:
    """MP-SPDZ does not sort a single element."""
    x = vector(b, "sint", b.choice((2, 3, 4, 7)), bound=SHORT - 1)
    b.need_room(8)
    c = b.define(Var("", "array", x.size, SHORT - 1, of="sint"), f"Array.create_from({x})", lambda s: list(s[x.name]))
    b.break_point()
    text = f"{c}.sort()" if b.flag() else f"{c}.sort(n_bits=8)"
    b.change(c, text, lambda s: s.domain.reduce(sorted(s.domain.integers(s[c.name]))))
    b.break_point()


@construct()
def array_comparison(b: Builder) -> None:
    c, k = array(b, "cint"), b.integer(-9, 9)
    if c.bound is None:
        return
    text, function = b.choice((("<", operator.lt), ("==", operator.eq), (">=", operator.ge)))
    if text == "==":
        b.need_room(c.bound.bit_length() + 1)
    b.define(Var("", "regint", c.size, 1, True), f"{c} {text} {k}", lambda s: [int(function(v, k)) for v in s.domain.integers(s[c.name])])


@construct()
def random_integer(b: Builder) -> None:
    """All that is known of it: it has no more bits than asked for."""
    m, n = b.integer(1, 8), b.size()
    b.define(Var("", "cint", n, 0), f"sint.get_random_int({m}, size={n}).reveal() >> {m}", lambda s: [0] * n)
