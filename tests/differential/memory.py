"""Constructs on memory: Array, Matrix, MemValue. Contents of a container stay within the bound that it was made with.

MP-SPDZ may reorder accesses to memory with indices that are known at run time only, and strided ones (columns, slices with a step), so the programs
have break points around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .arithmetic import OPERATORS, combined, drawn_operator
from .builder import NUMBERS, Builder, Var, construct
from .operands import elements, integers, literal, partner, vector
from .oracle import State

BOUND = 1000
Place = tuple[str, Callable[[State], int]]


def place(b: Builder, n: int) -> tuple[str, Callable[[State], int], bool]:
    """An index of [0, n): text, value, whether it is known at run time only."""
    way = b.choice(("constant", "run-time", "known"))
    known = b.pick("regint", lambda v: v.size == 1 and 0 < v.below <= n) if way == "known" else None
    if known:
        return str(known), lambda s: int(s[known.name][0]), True
    i = b.integer(0, n - 1)
    return (str(i), lambda s: i, False) if way == "constant" else (f"regint({i})", lambda s: i, True)


def guarded(b: Builder, run_time: bool, add: Callable[[], Any]) -> None:
    """Adds an access, between break points if its place is known at run time only."""
    if run_time:
        b.break_point()
    add()
    if run_time:
        b.break_point()


def content(b: Builder, c: Var, size: int) -> Var:
    """A vector that may be stored in a container."""
    return vector(b, b.choice(_kinds_into(c.of)), size, bound=c.bound)


def _kinds_into(kind: str) -> tuple[str, ...]:
    return {"sint": NUMBERS, "cint": ("cint", "regint"), "regint": ("regint",)}[kind]


def stored(s: State, c: Var, x: Var) -> list[int]:
    """A vector as elements of a container."""
    return integers(s, x) if c.of == "regint" else elements(s, x)


def write(c: Var, x: Var, places: Callable[[State], Sequence[int]]) -> Callable[[State], None]:
    """What the oracle does for storing ``x`` at these places (one place for each element)."""

    def action(s: State) -> None:
        for i, v in zip(places(s), stored(s, c, x), strict=True):
            s[c.name][i] = v

    return action


# -- Array ------------------------------------------------------------------------------------------------------------


def array(b: Builder, kind: str = "", length: int = 0) -> Var:
    """A known or new array."""
    known = b.pick("array", lambda v: v.of == (kind or v.of) and v.size == (length or v.size)) if not b.flag() else None
    return known or new_array(b, kind or b.choice(NUMBERS), length or b.choice((4, 1, 2, 5, 8)))


def new_array(b: Builder, kind: str, n: int) -> Var:
    """A new array, in one of the ways to make one."""
    bound = BOUND if b.flag() else None
    way = b.choice(("assign", "assign_all", "create_from", "zeros"))
    made = Var("", "array", n, bound, of=kind)
    if way == "create_from":
        x = vector(b, kind, n, bound=bound)
        return b.define(made, f"Array.create_from({x})", lambda s: list(s[x.name]))
    c = b.define(made, f"{kind}.Array({n})", lambda s: [0] * n)
    if way == "assign":
        numbers = literal(b, n, bound=BOUND)[1]
        exact = kind == "regint"
        b.change(c, f"{c}.assign({numbers})", lambda s: list(numbers) if exact else s.domain.reduce(numbers))
    elif way == "assign_all":
        x = vector(b, kind, 1, bound=bound)
        b.change(c, f"{c}.assign_all({x})", lambda s: s[x.name] * n)
    return c


@construct(3)
def array_element(b: Builder) -> None:
    c = array(b)
    text, at, run_time = place(b, c.size)
    if b.flag():
        x = content(b, c, 1)
        guarded(b, run_time, lambda: b.act(f"{c}[{text}] = {x}", write(c, x, lambda s: [at(s)])))
    else:
        made = Var("", c.of, 1, c.bound)
        guarded(b, run_time, lambda: b.define(made, f"{c}[{text}]", lambda s: [s[c.name][at(s)]]))


@construct()
def array_element_in_place(b: Builder) -> None:
    c = array(b)
    if c.bound is not None:
        return
    text, at, run_time = place(b, c.size)
    y = partner(b, Var("", c.of), _kinds_into(c.of), fixed=True)
    op = drawn_operator(b, y)

    def action(s: State) -> None:
        s["array element"] = [s[c.name][at(s)]]
        s[c.name][at(s)] = combined(s, op, Var("array element", c.of), y)[0]

    guarded(b, run_time, lambda: b.act(f"{c}[{text}] {op}= {y}", action))


@construct(3)
def array_slice(b: Builder) -> None:
    c = array(b)
    start = b.integer(0, c.size - 1)
    step = b.integer(1, 3)
    stop = b.integer(start + 1, c.size)
    span = range(start, stop, step)
    text = b.choice((f"{start}:{stop}:{step}",) + ((f"{start}:{stop}",) if step == 1 else ()))
    if b.flag():
        x = content(b, c, len(span))
        guarded(b, step > 1, lambda: b.act(f"{c}[{text}] = {x}", write(c, x, lambda s: span)))
    else:
        made = Var("", c.of, len(span), c.bound)
        guarded(b, step > 1, lambda: b.define(made, f"{c}[{text}]", lambda s: s[c.name][start:stop:step]))


@construct(3)
def array_part(b: Builder) -> None:
    c = array(b)
    size = b.integer(1, c.size)
    text, at, run_time = place(b, c.size - size + 1)
    span: Callable[[State], range] = lambda s: range(at(s), at(s) + size)  # noqa: E731
    way = b.choice(("read", "write", "view"))
    if way == "read":
        made = Var("", c.of, size, c.bound)
        value = lambda s: [s[c.name][i] for i in span(s)]  # noqa: E731
        guarded(b, run_time, lambda: b.define(made, f"{c}.get_vector({text}, {size})", value))
    elif way == "write":
        x, name = content(b, c, size), b.choice(("assign_vector", "assign"))
        guarded(b, run_time, lambda: b.act(f"{c}.{name}({x}, {text})", write(c, x, span)))
    else:
        x = content(b, c, 1)
        repeated = lambda s: s[c.name].__setitem__(slice(at(s), at(s) + size), stored(s, c, x) * size)  # noqa: E731
        guarded(b, run_time, lambda: b.act(f"{c}.get_part({text}, {size}).assign_all({x})", repeated))


@construct(3)
def array_gather(b: Builder) -> None:
    """Reading at the indices of a vector, also twice at one; writing at different ones."""
    c = array(b)
    if b.flag() and c.size > 1:
        order = b.choice((list(range(c.size)), list(range(c.size))[::-1], [c.size - 1, 0]))
        x = content(b, c, len(order))
        guarded(b, True, lambda: b.act(f"{c}.assign_vector({x}, regint({order}))", write(c, x, lambda s: order)))
        return
    order = [b.integer(0, c.size - 1) for _ in range(b.choice((2, 3, 6)))]
    text = b.choice((f"{c}.get(regint({order}))", f"{c}[regint({order})]"))
    made = Var("", c.of, len(order), c.bound)
    guarded(b, True, lambda: b.define(made, text, lambda s: [s[c.name][i] for i in order]))


@construct()
def array_arithmetic(b: Builder) -> None:
    c = array(b, b.choice(("sint", "cint")))
    d = array(b, b.choice(("sint", "cint")), c.size) if b.flag() else vector(b, b.choice(NUMBERS), c.size)
    op = b.choice("+-*")
    kind = "sint" if "sint" in (c.of, d.of, d.kind) else "cint"

    def value(s: State) -> list[int]:
        right = s[d.name] if d.kind == "array" else elements(s, d)
        return s.domain.reduce(map(OPERATORS[op], s[c.name], right))

    b.define(Var("", kind, c.size), f"{c} {op} {d}", value)


@construct()
def array_sums(b: Builder) -> None:
    c = array(b, "sint")
    if b.flag():
        b.define(Var("", "sint"), f"{c}.sum()", lambda s: s.domain.reduce([sum(s[c.name])]))
    else:
        d = array(b, "sint", c.size)
        text = f"sint.dot_product({c}, {d})" if b.flag() else f"{c}.dot({d})[0]"
        b.define(
            Var("", "sint"),
            text,
            lambda s: s.domain.reduce([sum(x * y for x, y in zip(s[c.name], s[d.name], strict=True))]),
        )


@construct()
def array_copies(b: Builder) -> None:
    c = array(b)
    made = Var("", "array", c.size, c.bound, of=c.of)
    if c.of == "sint" and b.flag():
        b.define(Var("", "array", c.size, c.bound, of="cint"), f"{c}.reveal()", lambda s: list(s[c.name]))
        return
    d = b.define(made, f"{c}.same_shape()", lambda s: [0] * c.size)
    b.change(d, f"{d}.assign({c})", lambda s: list(s[c.name]))


# -- Matrix -----------------------------------------------------------------------------------------------------------


def matrix(b: Builder, kind: str = "", rows: int = 0) -> Var:
    """A known or new matrix."""
    known = b.pick("matrix", lambda v: v.of == (kind or v.of) and v.shape[0] == (rows or v.shape[0])) if not b.flag() else None
    if known:
        return known
    kind, shape = kind or b.choice(("sint", "cint")), (rows or b.integer(1, 3), b.integer(1, 3))
    n = shape[0] * shape[1]
    c = b.define(Var("", "matrix", n, of=kind, shape=shape), f"{kind}.Matrix({shape[0]}, {shape[1]})", lambda s: [0] * n)
    x = content(b, c, n)
    b.act(f"{c}.assign_vector({x})", write(c, x, lambda s: range(n)))
    return c


@construct(2)
def matrix_element(b: Builder) -> None:
    c = matrix(b)
    columns = c.shape[1]
    (i_text, i, late), (j_text, j, later) = place(b, c.shape[0]), place(b, columns)
    at = lambda s: i(s) * columns + j(s)  # noqa: E731
    if b.flag():
        x = content(b, c, 1)
        guarded(b, late or later, lambda: b.act(f"{c}[{i_text}][{j_text}] = {x}", write(c, x, lambda s: [at(s)])))
    else:
        made = Var("", c.of)
        guarded(b, late or later, lambda: b.define(made, f"{c}[{i_text}][{j_text}]", lambda s: [s[c.name][at(s)]]))


@construct(2)
def matrix_row(b: Builder) -> None:
    c = matrix(b)
    columns = c.shape[1]
    text, at, run_time = place(b, c.shape[0])
    span: Callable[[State], range] = lambda s: range(at(s) * columns, (at(s) + 1) * columns)  # noqa: E731
    if b.flag():
        form = b.choice(("{c}[{t}] = {x}", "{c}[{t}].assign_vector({x})", "{c}.assign_part_vector({x}, {t})"))
        x = vector(b, c.of, columns) if "part" in form else content(b, c, columns)
        guarded(b, run_time, lambda: b.act(form.format(c=c, t=text, x=x), write(c, x, span)))
    else:
        form = b.choice(("{c}[{t}][:]", "{c}[{t}].get_vector()", "{c}.get_part_vector({t})"))
        value = lambda s: [s[c.name][k] for k in span(s)]  # noqa: E731
        made = Var("", c.of, columns)
        guarded(b, run_time, lambda: b.define(made, form.format(c=c, t=text), value))


@construct(2)
def matrix_column(b: Builder) -> None:
    c = matrix(b)
    rows, columns = c.shape
    text, at, _ = place(b, columns)
    span: Callable[[State], range] = lambda s: range(at(s), rows * columns, columns)  # noqa: E731
    if b.flag():
        x = content(b, c, rows)
        guarded(b, True, lambda: b.act(f"{c}.set_column({text}, {x})", write(c, x, span)))
    else:
        made = Var("", c.of, rows)
        value = lambda s: [s[c.name][k] for k in span(s)]  # noqa: E731
        guarded(b, True, lambda: b.define(made, f"{c}.get_column({text})", value))


def transpose_of(values: Sequence[int], shape: tuple[int, ...]) -> list[int]:
    """Row-major elements of the transpose."""
    rows, columns = shape
    return [values[i * columns + j] for j in range(columns) for i in range(rows)]


@construct()
def matrix_transpose(b: Builder) -> None:
    c = matrix(b)
    made = Var("", "matrix", c.size, of=c.of, shape=c.shape[::-1])
    b.define(made, f"{c}.transpose()", lambda s: transpose_of(s[c.name], c.shape))


@construct(3)
def matrix_product(b: Builder) -> None:
    """With a secret or public matrix, or an array as column."""
    c = matrix(b, "sint")
    rows, inner = c.shape
    if b.flag():
        d = array(b, "sint", inner)
        made, columns = Var("", "array", rows, of="sint"), 1
    else:
        d = matrix(b, b.choice(("sint", "cint")), inner)
        columns = d.shape[1]
        made = Var("", "matrix", rows * columns, of="sint", shape=(rows, columns))

    def value(s: State) -> list[int]:
        x, y = s[c.name], s[d.name]
        return s.domain.reduce(sum(x[i * inner + k] * y[k * columns + j] for k in range(inner)) for i in range(rows) for j in range(columns))

    b.define(made, f"{c}.dot({d})", value)


@construct()
def matrix_whole(b: Builder) -> None:
    c = matrix(b)
    text = b.choice((f"{c}[:]", f"{c}.get_vector()", f"{c}.to_array().get_vector()"))
    b.define(Var("", c.of, c.size), text, lambda s: list(s[c.name]))


# -- MemValue ---------------------------------------------------------------------------------------------------------


def memory_value(b: Builder) -> Var:
    """A known or new value in memory."""
    known = b.pick("mem") if not b.flag() else None
    if known:
        return known
    x = vector(b, b.choice(NUMBERS), b.choice((1, 1, 3)))
    if x.kind == "regint" and x.size == 1 and b.flag():
        number = b.number()
        return b.define(Var("", "mem", 1, of="regint"), f"MemValue({number})", lambda s: [number])
    return b.define(Var("", "mem", x.size, of=x.kind), f"MemValue({x})", lambda s: list(s[x.name]))


@construct(3)
def memory_value_write(b: Builder) -> None:
    m = memory_value(b)
    if b.flag():
        x = content(b, m, m.size)
        b.act(f"{m}.write({x})", write(m, x, lambda s: range(m.size)))
        return
    y = partner(b, Var("", m.of, m.size), _kinds_into(m.of), fixed=True)
    op = drawn_operator(b, y)
    name = {"+": "iadd", "-": "isub", "*": "imul"}[op]
    value = lambda s: combined(s, op, Var(m.name, m.of, m.size), y)  # noqa: E731
    text = f"{m}.{name}({y})" if b.flag() and op == "+" else f"{m}.write({m} {op} {y})"
    b.change(m, text, value)


@construct(2)
def memory_value_read(b: Builder) -> None:
    m = memory_value(b)
    y = partner(b, Var("", m.of, m.size), _kinds_into(m.of))
    op = drawn_operator(b, y)
    x = Var(m.name, m.of, m.size)
    size = max(m.size, y.size)
    if b.flag() or size == m.size == 1:
        b.define(Var("", m.of, m.size), f"{m}.read()", lambda s: list(s[m.name]))
    else:
        b.define(Var("", m.of, size), f"{m} {op} {y}", lambda s: combined(s, op, x, y))


@construct()
def memory_value_alias(b: Builder) -> None:
    """A value that was read stays when the memory changes."""
    m = memory_value(b)
    old = b.define(Var("", m.of, m.size), f"{m}.read()", lambda s: list(s[m.name]))
    x = content(b, m, m.size)
    b.act(f"{m}.write({x})", write(m, x, lambda s: range(m.size)))
    b.define(Var("", m.of, m.size), f"{old} + {m}", lambda s: combined(s, "+", old, Var(m.name, m.of, m.size)))
