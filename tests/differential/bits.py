"""Constructs on packed bits: sbits, cbits, rows of them, and the ways to and from numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable

from .builder import Builder, Var, construct
from .domain import compose, decompose, wrapped
from .operands import vector
from .oracle import State

WIDTHS = (1, 2, 3, 7, 8, 40, 64)
NARROW = 8
"""Most columns of rows that become numbers."""


def sbits_type(n: int) -> str:
    """The type of n bits."""
    return f"sbits.get_type({n})"


def bits(b: Builder, n: int | None = None) -> Var:
    """Known or new secret bits; ``n`` None: any number of them."""
    b.need("binary")
    known = b.pick("sbits", lambda v: n is None or v.size == n) if not b.flag() else None
    return known or new_bits(b, n or b.choice(WIDTHS))


def new_bits(b: Builder, n: int) -> Var:
    """Secret bits of a public number: a constant, or a regint at run time."""
    b.need("binary")
    value = b.integer(0, (1 << min(n, 63)) - 1)
    if b.flag() and n <= 62:
        return b.define(Var("", "sbits", n), f"{sbits_type(n)}(regint({value}))", lambda s: value)
    return b.define(Var("", "sbits", n), f"{sbits_type(n)}({value})", lambda s: value)


def rows(b: Builder, count: int | None = None, most: int = NARROW) -> Var:
    """Known or new rows of bits, as a list."""
    b.need("binary")
    known = b.pick("rows", lambda v: v.size <= most and (count is None or v.count == count)) if not b.flag() else None
    if known:
        return known
    n, m = b.choice([w for w in WIDTHS if w <= most]), count or b.integer(1, 5)
    parts = [bits(b, n) for _ in range(m)]
    return b.define(Var("", "rows", n, count=m), f"[{', '.join(map(str, parts))}]", lambda s: [s[p.name] for p in parts])


@construct(5)
def logic(b: Builder) -> None:
    """& and ^ with secret bits, opened bits and integers."""
    x = bits(b)
    n = x.size
    sign = b.choice("&^")
    function: Callable[[int, int], int] = {"&": operator.and_, "^": operator.xor}[sign]
    way = b.choice(("secret", "opened", "integer"))
    if way == "integer":
        c = b.integer(sign == "&", (1 << min(n, 30)) - 1)  # & 0 is Python's 0
        b.define(Var("", "sbits", n), f"{x} {sign} {c}", lambda s: function(s[x.name], c))
        return
    y = bits(b, n) if way == "secret" else opened(b, n)
    b.define(Var("", "sbits", n), f"{x} {sign} {y}", lambda s: function(s[x.name], s[y.name]))


def opened(b: Builder, n: int) -> Var:
    """Known or new opened bits."""
    known = b.pick("cbits", lambda v: v.size == n)
    if known:
        return known
    x = bits(b, n)
    return b.define(Var("", "cbits", n), f"{x}.reveal()", lambda s: s[x.name])


@construct()
def inversion(b: Builder) -> None:
    x = bits(b)
    b.define(Var("", "sbits", x.size), f"~{x}", lambda s: s[x.name] ^ ((1 << x.size) - 1))


@construct()
def opened_logic(b: Builder) -> None:
    sign = b.choice("&^")
    x = opened(b, b.choice([w for w in WIDTHS if w < 64 or sign == "^"]))
    if x.size > NARROW:  # & of opened bits takes them as numbers of the domain
        b.need("wide")
    y = opened(b, x.size)
    function = {"&": operator.and_, "^": operator.xor}[sign]
    b.define(Var("", "cbits", x.size), f"{x} {sign} {y}", lambda s: function(s[x.name], s[y.name]))


@construct()
def bits_to_index(b: Builder) -> None:
    x = opened(b, b.choice(WIDTHS))
    if x.size > NARROW or b.flag():
        b.define(Var("", "regint"), f"{x}.to_regint()", lambda s: [wrapped(s[x.name])])
    else:
        b.define(Var("", "regint", x.size, 1, True), f"{x}.to_regint_by_bit()", lambda s: columns_of_one(s[x.name], x.size))


def columns_of_one(value: int, n: int) -> list[int]:
    """The bits of one row."""
    return [value >> j & 1 for j in range(n)]


@construct()
def selection_of_bits(b: Builder) -> None:
    x = bits(b)
    n = x.size
    y, chooser = bits(b, n), bits(b, b.choice((n, 1)))
    full = (1 << n) - 1

    def value(s: State) -> int:
        choice = s[chooser.name] if chooser.size == n else full * s[chooser.name]
        return (s[x.name] & choice) | (s[y.name] & ~choice & full)

    b.define(Var("", "sbits", n), f"{chooser}.if_else({x}, {y})", value)


@construct()
def number_of_ones(b: Builder) -> None:
    """Of as many bits as MP-SPDZ counts rightly."""
    if b.flag():
        x = bits(b, b.choice((3, 7)))
        made = Var("", "sint", 1, x.size)
        b.define(made, f"sint.bit_compose({x}.popcnt().bit_decompose())", lambda s: [s[x.name].bit_count()])
    else:
        r = rows(b, b.choice((1, 3, 7)))
        text = f"sint.bit_compose(sbitvec.from_vec({r}).popcnt().v)"
        b.define(Var("", "sint", r.size, 7), text, lambda s: [x.bit_count() for x in compose(s[r.name], r.size)])


@construct()
def adder(b: Builder) -> None:
    m = b.integer(1, 4)
    x = rows(b, m)
    y = rows_like(b, x)
    carry, more = b.integer(0, 1), b.flag()
    tail = (f", {carry}" if carry else "") + (", get_carry=True" if more else "")
    made = Var("", "rows", x.size, count=m + more)

    def value(s: State) -> list[int]:
        pairs = zip(compose(s[x.name], x.size), compose(s[y.name], x.size), strict=True)
        return decompose([p + q + carry for p, q in pairs], made.count)

    b.define(made, f"sbits.bit_adder({x}, {y}{tail})", value)


def rows_like(b: Builder, x: Var) -> Var:
    """Rows of the form of ``x``."""
    known = b.pick("rows", lambda v: (v.size, v.count) == (x.size, x.count))
    if known and b.flag():
        return known
    parts = [bits(b, x.size) for _ in range(x.count)]
    return b.define(Var("", "rows", x.size, count=x.count), f"[{', '.join(map(str, parts))}]", lambda s: [s[p.name] for p in parts])


@construct()
def rows_with_rows(b: Builder) -> None:
    x = rows(b)
    y, sign = rows_like(b, x), b.choice("&^~")
    function = {"&": operator.and_, "^": operator.xor, "~": lambda p, q: p & ~q}[sign]
    right = f"~sbitvec.from_vec({y})" if sign == "~" else f"sbitvec.from_vec({y})"
    b.define(
        Var("", "rows", x.size, count=x.count),
        f"(sbitvec.from_vec({x}) {'&' if sign == '~' else sign} {right}).v",
        lambda s: list(map(function, s[x.name], s[y.name])),
    )


@construct()
def columns(b: Builder) -> None:
    """Element j of rows has their bits j; rows of such elements are the columns again."""
    x = rows(b)
    j = b.integer(0, x.size - 1)
    b.define(
        Var("", "sbits", x.count),
        f"sbitvec.from_vec({x}).elements()[{j}]",
        lambda s: compose(s[x.name], x.size)[j],
    )


@construct()
def transposed(b: Builder) -> None:
    x = rows(b)
    b.define(Var("", "rows", x.count, count=x.size), f"sbitvec({x}).v", lambda s: compose(s[x.name], x.size))


@construct()
def single_bits(b: Builder) -> None:
    x = bits(b, b.choice((2, 3, 5, 8)))
    order = [b.integer(0, x.size - 1) for _ in range(b.integer(2, 4))]
    text = ", ".join(f"{x}.bit_decompose()[{i}]" for i in order)
    b.define(
        Var("", "sbits", len(order)),
        f"sbits.bit_compose([{text}])",
        lambda s: sum((s[x.name] >> i & 1) << k for k, i in enumerate(order)),
    )


@construct()
def array_of_bits(b: Builder) -> None:
    """Rows of bits in memory; what is read is a copy."""
    n, length = b.choice((1, 3, 8, 40)), b.integer(2, 3)
    x = bits(b, n)
    c, i = b.fresh(), b.integer(0, length - 1)
    b.act(f"{c} = {sbits_type(n)}.Array({length})", lambda s: s.values.__setitem__(c, [0] * length))
    b.act(f"{c}[{i}] = {x}", lambda s: s[c].__setitem__(i, s[x.name]))
    old = b.define(Var("", "sbits", n), f"{c}[{i}]", lambda s: s[c][i])
    b.act(f"{c}[{i}] = ~{x}", lambda s: s[c].__setitem__(i, s[x.name] ^ ((1 << n) - 1)))
    j = b.integer(0, length - 1)
    b.define(Var("", "sbits", n), f"{old} ^ {c}[{j}]", lambda s: s[old.name] ^ s[c][j])


# -- between bits and numbers -----------------------------------------------------------------------------------------


@construct(3)
def bits_to_numbers(b: Builder) -> None:
    """B2A: one element a bit."""
    x = bits(b, b.choice((1, 2, 3, 5, 8)))
    b.define(Var("", "sint", x.size, 1, True), f"sint({x})", lambda s: columns_of_one(s[x.name], x.size))


@construct(3)
def rows_to_numbers(b: Builder) -> None:
    x = rows(b)
    text = f"sint.bit_compose({x})" if b.flag() else f"sint(sbitvec.from_vec({x}))"
    b.define(Var("", "sint", x.size, 1 << x.count), text, lambda s: s.domain.reduce(compose(s[x.name], x.size)))


@construct(3)
def numbers_to_rows(b: Builder) -> None:
    """A2B of signed m-bit integers."""
    m = b.integer(2, 8)
    x = vector(b, "sint", bound=(1 << (m - 1)) - 1)
    b.need("binary")
    b.need_room(8)
    made = Var("", "rows", x.size, count=m)
    b.define(made, f"sbitvec({x}, {m}, {m}).v", lambda s: decompose(s.domain.centre(s[x.name]), m))


@construct()
def mixed_bits(b: Builder) -> None:
    """Rows of sbits where shares split, of sint elsewhere: composed, they are the same."""
    m = b.integer(2, 8)
    x = vector(b, "sint", bound=(1 << (m - 1)) - 1)
    b.need_room(8)
    text = f"sint.bit_compose({x}.bit_decompose({m}, maybe_mixed=True))"
    b.define(Var("", "sint", x.size, 1 << m), text, lambda s: [v % (1 << m) for v in s.domain.centre(s[x.name])])


@construct()
def public_bits(b: Builder) -> None:
    c, m = vector(b, "cint", b.choice((2, 3, 4, 7))), b.integer(1, 8)
    b.need("binary")
    i = b.integer(0, m - 1)
    b.define(
        Var("", "cbits", c.size),
        f"sbits.bit_decompose_clear({c}, {m})[{i}]",
        lambda s: decompose(s[c.name], m)[i],
    )


@construct()
def long_logic(b: Builder) -> None:
    """More bits than a word."""
    n, i, j = b.choice((65, 100, 130)), b.integer(0, 64), b.integer(0, 64)
    b.need("binary")
    x = b.define(Var("", "sbits", n), f"{sbits_type(n)}({1 << i})", lambda s: 1 << i)
    y = b.define(Var("", "sbits", n), f"~{x}", lambda s: (1 << n) - 1 - (1 << i))
    z = b.define(Var("", "sbits", n), f"{sbits_type(n)}({1 << j})", lambda s: 1 << j)
    b.define(Var("", "sbits", n), f"({y} & {z}) ^ {x}", lambda s: (s[y.name] & s[z.name]) ^ s[x.name])


@construct()
def summands_of_share(b: Builder) -> None:
    """The low bits of a share's summands, summed by an adder or as numbers."""
    b.need("split")
    x, m = vector(b, "sint"), b.choice((1, 3, 8, 20))
    parts = f"{x}.split_to_n_summands({m}, program.use_split())"
    k = "int(program.options.ring)"
    text = f"cint((sum(sint.bit_compose([r[j] for r in {parts}]) for j in range(program.use_split())) << ({k} - {m})).reveal()) >> ({k} - {m})"
    b.define(Var("", "cint", x.size, 1 << m), text, lambda s: [v % (1 << m) for v in s[x.name]])


@construct()
def low_bits_opened(b: Builder) -> None:
    """z mod 2^k, opened without its upper bits."""
    b.need("ring")
    x, m = vector(b, "sint"), b.choice((1, 8, 20, 63))
    b.define(
        Var("", "cint", x.size),
        f"({x} << {64 - m}).reveal() >> {64 - m}",
        lambda s: [v % (1 << m) for v in s[x.name]],
    )
