"""Constructs on numbers: + - *, sums, vectors, conversions, selection, comparisons, bits as numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from .builder import NUMBERS, Builder, Var, construct
from .domain import spread, towards_zero, wrapped
from .operands import anything, elements, integers, joint_size, literal, make, partner, ranked, vector
from .oracle import State

SHORT = 1 << 7
"""Bound of operands of comparisons: 8-bit integers fit the masks of every domain that compares."""
LONG = 1 << 30
"""Bound of one operand of public comparisons."""
OPERATORS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne
}  # fmt: skip
METHODS = {
    "less_than": "<", "greater_than": ">", "less_equal": "<=", "greater_equal": ">=", "equal": "==", "not_equal": "!="
}  # fmt: skip


def _bound(op: str, x: Var, y: Var) -> int | None:
    if x.bound is None or y.bound is None:
        return None
    return x.bound * y.bound if op == "*" else x.bound + y.bound


def combined(s: State, op: str, x: Var, y: Var) -> list[int]:
    """Elementwise + - * with a scalar spread."""
    kind, size = ranked(x, y), joint_size(x, y)
    get = integers if kind == "regint" else elements
    pairs = zip(spread(get(s, x), size), spread(get(s, y), size), strict=True)
    results = [OPERATORS[op](a, b) for a, b in pairs]
    return [wrapped(r) for r in results] if kind == "regint" else s.domain.reduce(results)


def drawn_operator(b: Builder, *operands: Var) -> str:
    """+ - *, but no product with Python's 0."""
    op = b.choice("+-*")
    return "+" if any(v.zero for v in operands) else op


def binary(b: Builder, x: Var, y: Var) -> Var:
    """x op y for a drawn operation."""
    op = drawn_operator(b, x, y)
    made = Var("", ranked(x, y), joint_size(x, y), _bound(op, x, y))
    return b.define(made, f"{x} {op} {y}", lambda s: combined(s, op, x, y))


@construct(8)
def arithmetic(b: Builder) -> None:
    x = anything(b)
    y = partner(b, x)
    if b.flag():
        x, y = y, x
    binary(b, x, y)


@construct()
def negation(b: Builder) -> None:
    x = anything(b)
    made = Var("", x.kind, x.size, x.bound)
    if x.kind == "regint":
        b.define(made, f"-{x}", lambda s: [wrapped(-v) for v in s[x.name]])
    else:
        b.define(made, f"-{x}", lambda s: s.domain.reduce(-v for v in s[x.name]))


@construct()
def shift_left(b: Builder) -> None:
    x, k = anything(b), b.integer(0, 20)
    made = Var("", x.kind, x.size, None if x.bound is None else x.bound << k)
    reduce = (lambda s, v: wrapped(v)) if x.kind == "regint" else (lambda s, v: v % s.domain.modulus)
    b.define(made, f"{x} << {k}", lambda s: [reduce(s, v << k) for v in s[x.name]])


@construct()
def vector_sum(b: Builder) -> None:
    x = vector(b, "sint")
    made = Var("", "sint", 1, None if x.bound is None else x.bound * x.size)
    b.define(made, f"{x}.sum()", lambda s: s.domain.reduce([sum(s[x.name])]))


def apart(b: Builder, size: int | None = None) -> Var:
    """A vector to be taken apart. MP-SPDZ 0.4.2 loses inputs whose elements are used, so never an input itself."""
    x = anything(b, size)
    if x.kind != "sint":
        return x
    bound = None if x.bound is None else x.bound + 1
    return b.define(Var("", "sint", x.size, bound), f"{x} + 1", lambda s: s.domain.reduce(v + 1 for v in s[x.name]))


@construct()
def python_sum(b: Builder) -> None:
    x = apart(b)
    made = Var("", x.kind, 1, None if x.bound is None else x.bound * x.size)
    if x.kind == "regint":
        b.define(made, f"sum({x})", lambda s: [wrapped(sum(s[x.name]))])
    else:
        b.define(made, f"sum({x})", lambda s: s.domain.reduce([sum(s[x.name])]))


@construct(3)
def dot_product(b: Builder) -> None:
    x = vector(b, "sint")
    y = vector(b, "sint", x.size)
    bound = None if x.bound is None or y.bound is None else x.bound * y.bound * x.size
    if b.flag():  # lists of vectors: element by element
        u, v = vector(b, "sint", x.size), vector(b, "sint", x.size)
        b.define(
            Var("", "sint", x.size),
            f"sint.dot_product([{x}, {u}], [{y}, {v}])",
            lambda s: s.domain.reduce(p * q + r * t for p, q, r, t in zip(*(s[w.name] for w in (x, y, u, v)), strict=True)),
        )
    else:
        b.define(
            Var("", "sint", 1, bound),
            f"sint.dot_product({x}, {y})",
            lambda s: s.domain.reduce([sum(map(operator.mul, s[x.name], s[y.name]))]),
        )


@construct()
def public_inner_product(b: Builder) -> None:
    x = vector(b, "sint")
    c = vector(b, "cint", x.size)
    b.define(
        Var("", "sint"),
        f"({x} * {c}).sum()",
        lambda s: s.domain.reduce([sum(map(operator.mul, s[x.name], s[c.name]))]),
    )


# -- vectors ----------------------------------------------------------------------------------------------------------


@construct()
def concat(b: Builder) -> None:
    kind = b.choice(NUMBERS)
    parts = [vector(b, kind) for _ in range(b.integer(1, 3))]
    bounds = [p.bound for p in parts]
    made = Var("", kind, sum(p.size for p in parts), None if None in bounds else max(x or 0 for x in bounds))
    b.define(made, f"{kind}.concat([{', '.join(map(str, parts))}])", lambda s: [v for p in parts for v in s[p.name]])


@construct()
def expand(b: Builder) -> None:
    x, n = vector(b, b.choice(NUMBERS), 1), b.size()
    b.define(Var("", x.kind, n, x.bound, x.bit), f"{x}.expand_to_vector({n})", lambda s: s[x.name] * n)


@construct()
def part_of_vector(b: Builder) -> None:
    x = anything(b)
    base = b.integer(0, x.size - 1)
    size = b.integer(1, x.size - base)
    b.define(
        Var("", x.kind, size, x.bound, x.bit),
        f"{x}.get_vector({base}, {size})",
        lambda s: s[x.name][base : base + size],
    )


@construct()
def element(b: Builder) -> None:
    x = apart(b)
    i = b.integer(-x.size, x.size - 1)
    b.define(Var("", x.kind, 1, x.bound, x.bit), f"{x}[{i}]", lambda s: [s[x.name][i]])


@construct()
def slice_of_vector(b: Builder) -> None:
    x = apart(b, b.choice((3, 4, 7)))
    start, stop, step = b.integer(0, 1), b.integer(2, x.size), b.integer(1, 2)
    made = Var("", x.kind, len(range(start, stop, step)), x.bound, x.bit)
    b.define(made, f"{x.kind}({x}[{start}:{stop}:{step}])", lambda s: s[x.name][start:stop:step])


@construct()
def convert(b: Builder) -> None:
    x, to = anything(b), b.choice(("cint", "sint", "regint"))
    if (x.kind, to) in (("sint", "cint"), ("sint", "regint")):
        text = f"{x}.reveal()" if to == "cint" else f"regint({x}.reveal())"
    else:
        text = f"{to}({x})" if b.flag() else f"{to}.conv({x})"
    b.define(Var("", to, x.size, x.bound, x.bit), text, lambda s: integers(s, x) if to == "regint" else elements(s, x))


@construct()
def list_of_scalars(b: Builder) -> None:
    parts = [vector(b, b.choice(NUMBERS), 1) for _ in range(b.integer(2, 3))]
    kind = "sint" if any(p.kind == "sint" for p in parts) else "cint"
    b.define(
        Var("", kind, len(parts)),
        f"{kind}([{', '.join(map(str, parts))}])",
        lambda s: [elements(s, p)[0] for p in parts],
    )


@construct()
def progression(b: Builder) -> None:
    n, step, repeat = b.size(), b.integer(-3, 3), b.integer(1, 3)
    wrap = b.choice((None, 1, 2, 3))
    base = b.pick("regint", lambda v: v.size == 1 and v.within(1000)) if b.flag() else None
    start = b.number()
    tail = f", {step}, {repeat}" + ("" if wrap is None else f", {wrap}")

    def value(s: State) -> list[int]:
        first = s[base.name][0] if base else start
        return [first + step * (i // repeat if wrap is None else i // repeat % wrap) for i in range(n)]

    b.define(Var("", "regint", n, 1000 + 3 * n), f"regint.inc({n}, {base or start}{tail})", value)


@construct()
def repeated_update(b: Builder) -> None:
    kind, size = b.choice(NUMBERS), b.size()
    numbers = literal(b, size)[1]
    fresh = b.define(Var("", kind, size, state=True), f"{kind}({numbers})",
                     lambda s: list(numbers) if kind == "regint" else s.domain.reduce(numbers))  # fmt: skip
    update(b, fresh)


def update(b: Builder, x: Var) -> None:
    """``x.update`` with a drawn function of x."""
    y = partner(b, x, (x.kind,), fixed=True)
    op = drawn_operator(b, y)
    b.change(x, f"{x}.update({x} {op} {y})", lambda s: combined(s, op, x, y))


# -- selection and bits as numbers ------------------------------------------------------------------------------------


@construct(3)
def selection(b: Builder) -> None:
    kind = b.choice(("sint", "cint", "regint"))
    size = b.size()
    bit = vector(b, kind, b.choice((size, 1)), bit=True)
    x, y = (vector(b, kind, size) for _ in range(2))
    bounds = (x.bound, y.bound)
    made = Var("", kind, size, None if None in bounds else max(v or 0 for v in bounds), x.bit and y.bit)
    b.define(
        made,
        f"{bit}.if_else({x}, {y})",
        lambda s: [p if c else q for c, p, q in zip(spread(s[bit.name], size), s[x.name], s[y.name], strict=True)],
    )


@construct()
def logic_of_numbers(b: Builder) -> None:
    kind = b.choice(("sint", "cint"))
    size = b.size()
    x, y = (vector(b, kind, size, bit=True) for _ in range(2))
    name, function = b.choice((("bit_xor", operator.xor), ("bit_and", operator.and_), ("bit_or", operator.or_)))
    b.define(Var("", kind, size, 1, True), f"{x}.{name}({y})", lambda s: list(map(function, s[x.name], s[y.name])))


@construct()
def complement_of_number(b: Builder) -> None:
    x = vector(b, b.choice(("sint", "cint")), bit=True)
    b.define(Var("", x.kind, x.size, 1, True), f"{x}.bit_not()", lambda s: [1 - v for v in s[x.name]])


# -- comparisons ------------------------------------------------------------------------------------------------------


def relation_of(relation: str, s: State, x: Var, y: Var) -> list[int]:
    """Elementwise comparison of signed integers, which a program keeps within the bit length where engines see no more."""
    size = joint_size(x, y)
    pairs = list(zip(spread(integers(s, x), size), spread(integers(s, y), size), strict=True))
    if s.domain.length and ("sint" in (x.kind, y.kind) or seen_whole(x.kind, relation)):
        half = 1 << (s.domain.length - 1)
        assert all(-half <= v < half for pair in pairs for v in pair), f"{x} {relation} {y}: operands beyond {s.domain.length} bits"
    return [int(RELATIONS[relation](a, b)) for a, b in pairs]


@construct(4)
def comparison(b: Builder) -> None:
    """Of 8-bit, 18-bit or 62-bit integers: what the masks of the smaller and larger prime and of a ring have room for."""
    length = b.choice((8, 18, 63))
    bound = {8: SHORT - 1, 18: (1 << 17) - 1, 63: 1 << 44}[length]
    x = vector(b, "sint", bound=bound)
    y = partner(b, x, bound=bound)
    b.need_room(length)
    relation = b.choice(tuple(METHODS))
    sign = METHODS[relation]
    text = f"{x} {sign} {y}" if b.flag() else f"{x}.{relation}({y}, {length})"
    b.define(Var("", "sint", joint_size(x, y), 1, True), text, lambda s: relation_of(sign, s, x, y))


@construct()
def reversed_comparison(b: Builder) -> None:
    x = vector(b, "sint", bound=SHORT - 1)
    c = b.integer(-127, 127)
    sign = b.choice(tuple(RELATIONS))
    b.need_room(8)
    b.define(
        Var("", "sint", x.size, 1, True),
        f"{c} {sign} {x}",
        lambda s: [int(RELATIONS[sign](c, v)) for v in integers(s, x)],
    )


def seen_whole(kind: str, relation: str) -> int | None:
    """Bound of operands of a public comparison; None: any. MP-SPDZ's ``==`` and ``!=`` of cint see as many bits as ``program.bit_length``."""
    return SHORT - 1 if kind == "cint" and relation in ("==", "!=") else None


@construct()
def public_comparison(b: Builder) -> None:
    kind, sign = b.choice(("cint", "regint")), b.choice(tuple(RELATIONS))
    short = seen_whole(kind, sign)
    x = vector(b, kind, bound=short)
    y = partner(b, x, ("cint", "regint") if kind == "cint" else ("regint",), bound=short or LONG)
    b.define(Var("", "regint", joint_size(x, y), 1, True), f"{x} {sign} {y}", lambda s: relation_of(sign, s, x, y))


@construct()
def logic_of_comparisons(b: Builder) -> None:
    x = vector(b, "sint", bound=SHORT - 1)
    c, d = b.integer(-127, 127), b.integer(-127, 127)
    sign = b.choice("&|^")
    b.need_room(8)
    function = {"&": operator.and_, "|": operator.or_, "^": operator.xor}[sign]
    b.define(
        Var("", "sint", x.size, 1, True),
        f"({x} < {c}) {sign} (1 - ({x} == {d}))",
        lambda s: [function(int(v < c), int(v != d)) for v in integers(s, x)],
    )


@construct(3)
def low_bits(b: Builder) -> None:
    """Remainder and quotient by powers of two of signed integers, with and without an explicit length."""
    m = b.integer(0, 6)
    x = vector(b, "sint", bound=SHORT - 1)
    b.need_room(8)
    if b.flag():
        text = b.choice((f"{x}.mod2m({m}, 8)", f"{x} % {1 << m}")) if m else f"{x} % 1 + {x}"
        value = (lambda v: v % (1 << m)) if m else (lambda v: v)
    else:
        text, value = b.choice((f"{x}.right_shift({m}, 8)", f"{x} >> {m}")), lambda v: v >> m
    b.define(Var("", "sint", x.size, 128), text, lambda s: s.domain.reduce(value(v) for v in integers(s, x)))


@construct(3)
def number_to_bits(b: Builder) -> None:
    m = b.integer(2, 8)
    x = vector(b, "sint", bound=(1 << (m - 1)) - 1)
    b.need_room(8)
    if b.flag():
        i = b.integer(0, m - 1)
        made = Var("", "sint", x.size, 1, True)
        b.define(made, f"{x}.bit_decompose({m})[{i}]", lambda s: [v >> i & 1 for v in integers(s, x)])
    else:
        made = Var("", "sint", x.size, 1 << m)
        b.define(made, f"sint.bit_compose({x}.bit_decompose({m}))", lambda s: [v % (1 << m) for v in integers(s, x)])


@construct()
def bits_to_number(b: Builder) -> None:
    n = b.size()
    bits = [vector(b, b.choice(("sint", "cint")) if i else "sint", n, bit=True) for i in range(b.integer(1, 4))]
    text = f"sint.bit_compose([{', '.join(map(str, bits))}])"
    b.define(Var("", "sint", n, 15), text, lambda s: [sum(s[v.name][j] << i for i, v in enumerate(bits)) for j in range(n)])


# -- public numbers ---------------------------------------------------------------------------------------------------


@construct(3)
def clear_operation(b: Builder) -> None:
    """<< was above; >> & act on canonical numbers, % on signed ones over rings."""
    x = vector(b, "cint")
    way = b.choice((">>", "&", "%", "& cint"))
    if way == ">>":
        k = b.integer(0, 16)
        b.define(Var("", "cint", x.size), f"{x} >> {k}", lambda s: [v >> k for v in s[x.name]])
    elif way == "&":
        mask = b.choice((1, 255, 12345, 0))
        text = f"{x} & {mask}" if b.flag() else f"{mask} & {x}"
        b.define(Var("", "cint", x.size, mask), text, lambda s: [v & mask for v in s[x.name]])
    elif way == "& cint":
        y = vector(b, "cint", b.choice((x.size, 1)))
        b.define(
            Var("", "cint", x.size),
            f"{x} & {y}",
            lambda s: list(map(operator.and_, s[x.name], spread(s[y.name], x.size))),
        )
    else:
        m = b.choice((2, 3, 10, 64, 1000))
        b.define(
            Var("", "cint", x.size, m),
            f"{x} % {m}",
            lambda s: [v % m for v in (s.domain.centre(s[x.name]) if s.domain.ring else s[x.name])],
        )


def at_run_time(b: Builder, x: Var) -> Var:
    """A regint vector that the compiler does not know. MP-SPDZ's compiler divides known numbers by another rule (it rounds
    down)."""
    made = Var("", "regint", x.size, x.bound)
    return b.define(made, f"regint(sint({x}).reveal())", lambda s: s.domain.integers(s[x.name]))


@construct()
def integer_division(b: Builder) -> None:
    """// and % of regints round towards zero, >> is // by a power of two."""
    x = at_run_time(b, vector(b, "regint"))
    m, way = b.choice((2, 3, 10, 64, -3, 1000)), b.choice(("//", "%", ">>"))
    if way == "//":
        made = Var("", "regint", x.size, x.bound)
        b.define(made, f"{x} // {m}", lambda s: [towards_zero(v, m) for v in s[x.name]])
    elif way == "%":
        made = Var("", "regint", x.size, abs(m))
        b.define(made, f"{x} % {m}", lambda s: [v - m * towards_zero(v, m) for v in s[x.name]])
    else:
        k, made = b.integer(0, 20), Var("", "regint", x.size, x.bound)
        b.define(made, f"{x} >> {k}", lambda s: [towards_zero(v, 1 << k) for v in s[x.name]])


@construct()
def division_by_vector(b: Builder) -> None:
    divisors = [b.choice((1, 2, 3, 7, -2, 100)) for _ in range(b.size())]
    y = at_run_time(b, b.define(Var("", "regint", len(divisors), 100), f"regint({divisors})", lambda s: list(divisors)))
    if b.flag():
        x = at_run_time(b, vector(b, "regint", b.choice((y.size, 1))))
        text, get = f"{x} // {y}", lambda s: spread(s[x.name], y.size)
    else:
        c = b.integer(-1000, 1000)
        text, get = f"{c} // {y}", lambda s: [c] * y.size
    b.define(Var("", "regint", y.size), text, lambda s: list(map(towards_zero, get(s), divisors)))


@construct()
def bits_of_public(b: Builder) -> None:
    x, m = vector(b, b.choice(("cint", "regint"))), b.integer(1, 8)
    i = b.integer(0, m - 1)
    b.define(Var("", x.kind, x.size, 1, True), f"{x}.bit_decompose({m})[{i}]", lambda s: [v >> i & 1 for v in s[x.name]])


@construct()
def source(b: Builder) -> None:
    make(b, b.choice(NUMBERS), b.size())


@construct()
def utilities(b: Builder) -> None:
    """Functions of Compiler.util."""
    way = b.choice(("tree_reduce", "if_else", "max", "bits"))
    lines = ["from Compiler import util"]
    if way == "tree_reduce":
        parts = [vector(b, "sint", 3) for _ in range(b.integer(1, 4))]
        b.act(lines, lambda s: None)
        b.define(
            Var("", "sint", 3),
            f"util.tree_reduce(lambda x, y: x * y, [{', '.join(map(str, parts))}])",
            lambda s: [math.prod(s[p.name][j] for p in parts) % s.domain.modulus for j in range(3)],
        )
    elif way == "if_else":
        size = b.size()
        bit, x, y = vector(b, "sint", size, bit=True), vector(b, "sint", size), vector(b, "sint", size)
        b.act(lines, lambda s: None)
        b.define(
            Var("", "sint", size),
            f"util.if_else({bit}, {x}, {y})",
            lambda s: [p if c else q for c, p, q in zip(s[bit.name], s[x.name], s[y.name], strict=True)],
        )
    elif way == "max":
        parts = [vector(b, "sint", 2, bound=SHORT - 1) for _ in range(b.integer(1, 3))]
        b.need_room(8)
        name, function = b.choice((("max", max), ("min", min)))
        b.act(lines, lambda s: None)
        b.define(
            Var("", "sint", 2, SHORT - 1),
            f"util.{name}([{', '.join(map(str, parts))}])",
            lambda s: s.domain.reduce(function(integers(s, p)[j] for p in parts) for j in range(2)),
        )
    else:
        x = vector(b, "sint", bit=True)
        b.act(lines, lambda s: None)
        text = b.choice((f"util.bit_xor({x}, 1)", f"util.bit_not({x}, 1)"))
        b.define(Var("", "sint", x.size, 1, True), text, lambda s: [1 - v for v in s[x.name]])
