"""Constructs on inputs, personal values, outputs and the share file; and on randomness, of which only
values that do not depend on it are opened."""

from __future__ import annotations

from .arithmetic import OPERATORS, SHORT, drawn_operator
from .builder import Builder, Var, construct
from .operands import POOLS, elements, integers, partner, vector
from .oracle import FILE, State, listed

# -- inputs -----------------------------------------------------------------------------------------------------------


@construct(2)
def public_input(b: Builder) -> None:
    size, pool = b.size(), b.choice(("small", "wide"))
    made = Var("", "cint", size, POOLS[pool])
    x = b.define(made, f"cint(size={size})", lambda s: [0] * size)
    if b.flag():
        b.need("listed")
        b.change(x, f"pubinput({x})", lambda s: s.domain.reduce(s.take_listed(pool, size)))
    else:
        b.change(x, f"fixinput(-1, {x}, 0, 0)", lambda s: s.domain.reduce(s.take_public(pool, size)))


def personal(b: Builder) -> Var:
    """A known or new value of one party."""
    known = b.pick("personal")
    if known and b.flag():
        return known
    party = b.integer(0, 2)
    b.need_party(party)
    if b.flag():
        x = vector(b, "sint")
        # MP-SPDZ 0.4.2 loses outputs of vectors that were made of elements, so of a sum always.
        return b.define(
            Var("", "personal", x.size, owner=party),
            f"({x} + 1).reveal_to({party})",
            lambda s: s.domain.reduce(v + 1 for v in s[x.name]),
        )
    return b.define(
        Var("", "personal", 1, owner=party),
        f"personal.read_int({party})",
        lambda s: s.domain.reduce(s.take_private(party, "wide", 1)),
    )


@construct(2)
def personal_arithmetic(b: Builder) -> None:
    x = personal(b)
    y = partner(b, x, ("cint",), fixed=True)
    op = drawn_operator(b, y)
    b.define(
        Var("", "personal", x.size, owner=x.owner),
        f"{x} {op} {y}",
        lambda s: s.domain.reduce(OPERATORS[op](v, w) for v, w in zip(s[x.name], (elements(s, y) * x.size)[: x.size], strict=True)),
    )


@construct(2)
def personal_to_secret(b: Builder) -> None:
    x = personal(b)
    b.define(Var("", "sint", x.size), f"sint({x})", lambda s: list(s[x.name]))


@construct(2)
def personal_output(b: Builder) -> None:
    x = personal(b)
    if b.flag():
        b.act(f"{x}.binary_output()", lambda s: s.output(s.domain.integers(s[x.name]), x.owner))
    else:
        b.act(
            f"print_ln_to({x.owner}, '@TAG for {x.owner}: %s', {x})",
            lambda s: s.print_to(x.owner, f"for {x.owner}: {listed(s.domain.centre(s[x.name]))}"),
        )


# -- outputs ----------------------------------------------------------------------------------------------------------


@construct(2)
def public_output(b: Builder) -> None:
    x = vector(b, b.choice(("sint", "cint", "regint")))
    text = f"{x}.reveal().binary_output()" if x.kind == "sint" else f"{x}.binary_output()"
    b.act(text, lambda s: s.output(integers(s, x)))


@construct(2)
def printing(b: Builder) -> None:
    x, y = vector(b, "cint"), vector(b, "regint", 1)
    b.act(
        f"print_ln('@TAG %s and %s, %s', {x}, {y}, 'text')",
        lambda s: s.print(f"{listed(s.domain.centre(s[x.name]))} and {s[y.name][0]}, text"),
    )


@construct()
def printing_in_parts(b: Builder) -> None:
    x = vector(b, "cint")
    b.act(
        ["print_str('@TAG ')", f"print_str('%s;', {x})", "print_ln()"],
        lambda s: s.print(f"{listed(s.domain.centre(s[x.name]))};"),
    )


@construct()
def printing_to_one(b: Builder) -> None:
    """Public values, at one party."""
    party = b.integer(0, 2)
    b.need_party(party)
    x, y = vector(b, "cint"), vector(b, "regint")

    def action(s: State) -> None:
        s.print_to(party, f"public {listed(s.domain.centre(s[x.name]))}, {listed(s.domain.centre(s[y.name]))}")

    b.act(f"print_ln_to({party}, '@TAG public %s, %s', {x}, {y})", action)


@construct()
def stopping_not(b: Builder) -> None:
    """Conditions of crashes that do not hold; timers."""
    x = vector(b, "regint", 1)
    b.act(["start_timer(7)", f"runtime_error_if({x} != {x}, 'no')", f"crash({x} < {x})", "stop_timer(7)"], lambda s: None)


@construct()
def parties(b: Builder) -> None:
    b.define(Var("", "regint", 1, 5), "get_number_of_players()", lambda s: [s.parties])


# -- share file -------------------------------------------------------------------------------------------------------


@construct(2)
def share_file_append(b: Builder) -> None:
    b.need("file")
    x = vector(b, "sint", b.choice((1, 2, 4)))
    if b.flag():
        y = vector(b, "sint", x.size)
        b.act(f"sint.write_to_file([{x}, {y}])", lambda s: s.shares.extend(s[x.name] + s[y.name]))
        b.shares += 2 * x.size
    else:
        b.act(f"sint.write_to_file({x})", lambda s: s.shares.extend(s[x.name]))
        b.shares += x.size


@construct(2)
def share_file_overwrite(b: Builder) -> None:
    if not b.shares:
        share_file_append(b)
    at = b.integer(0, b.shares - 1)
    x = vector(b, "sint", b.integer(1, b.shares - at))
    b.act(f"sint.write_to_file({x}, {FILE} + {at})", lambda s: s.shares.__setitem__(slice(at, at + x.size), s[x.name]))


@construct(3)
def share_file_read(b: Builder) -> None:
    """Vectors and the position after them, which is -1 at the end of the file; a container filled from it."""
    if not b.shares:
        share_file_append(b)
    size = b.integer(1, min(4, b.shares))
    at = b.integer(0, b.shares - size)
    items = 2 if at + 2 * size <= b.shares and b.flag() else 1
    length = b.shares
    b.break_point()
    if items == 1 and b.flag():
        c = b.define(Var("", "array", size, of="sint"), f"sint.Array({size})", lambda s: [0] * size)
        b.change(c, f"{c}.read_from_file({FILE} + {at})", lambda s: s.shares[at : at + size])
        return
    stop, first = b.fresh(), b.fresh()
    second = b.fresh() if items == 2 else ""
    names = f"({first}, {second})" if second else f"({first},)"
    tail = f", {items}" if items == 2 else ""

    def read(s: State) -> None:
        end = at + items * size
        s[stop] = [-1 if end == length else s.file_base + end]
        s[first] = s.shares[at : at + size]
        if second:
            s[second] = s.shares[at + size : end]

    b.act(f"{stop}, {names} = sint.read_from_file({FILE} + {at}{tail}, size={size})", read)
    b.add(Var(stop, "regint"))
    for name in (first, second) if second else (first,):
        b.add(Var(name, "sint", size))


# -- randomness -------------------------------------------------------------------------------------------------------


@construct(2)
def random_mask(b: Builder) -> None:
    x = vector(b, "sint")
    r, made = b.fresh(), Var("", "sint", x.size)
    b.act(f"{r} = sint.get_random(size={x.size})", lambda s: None)
    b.define(made, f"({x} + {r}).reveal() - {r}", lambda s: list(s[x.name]))


@construct(2)
def random_bit(b: Builder) -> None:
    r, n = b.fresh(), b.size()
    b.act(f"{r} = sint.get_random_bit(size={n})", lambda s: None)
    text = b.choice((f"{r} * ({r} - 1)", f"{r}.if_else({r} - 1, {r})"))
    b.define(Var("", "sint", n, 0), text, lambda s: [0] * n)


@construct(2)
def random_dabit(b: Builder) -> None:
    b.need("binary", "dabit")
    r, n = b.fresh(), b.choice((1, 2, 5, 8))
    b.act(f"{r} = sint.get_dabit(size={n})", lambda s: None)
    b.define(Var("", "sint", n, 0), f"{r}[0] - sint({r}[1])", lambda s: [0] * n)


@construct(2)
def random_edabit(b: Builder) -> None:
    """The numbers are those of the bits mod 2^m."""
    b.need("binary", "dabit")
    m, n = b.integer(1, 4), b.choice((1, 2, 5))
    b.need_room(8)
    r = b.fresh()
    b.act(f"{r} = sint.get_edabit({m}, False, size={n})", lambda s: None)
    text = f"({r}[0] - sint.bit_compose({r}[1])).mod2m({m}, 8)"
    b.define(Var("", "sint", n, 0), text, lambda s: [0] * n)


@construct(2)
def random_row(b: Builder) -> None:
    """Random bits cancel."""
    b.need("binary", "dabit")
    r, n, value = b.fresh(), b.choice((1, 3, 8)), b.integer(0, 1)
    b.act(f"{r} = sint.get_edabit(2, False, size={n})[1]", lambda s: None)
    b.define(
        Var("", "sbits", n),
        f"({r}[0] & {r}[1]) ^ ({r}[1] & {r}[0]) ^ {value}",
        lambda s: value,
    )


@construct(3)
def shuffle(b: Builder) -> None:
    """In any order, but every element once; blocks stay together."""
    b.need("shuffle")
    x = vector(b, "sint", b.choice((2, 3, 4, 7)))
    r = b.fresh()
    unit = 2 if x.size == 4 and b.flag() else 1
    if unit == 1:
        b.act(f"{r} = {x}.secure_shuffle()", lambda s: None)
    else:
        b.act(f"{r} = {x}.secure_shuffle(unit_size=2)", lambda s: None)
        b.define(
            Var("", "sint"),
            f"sint.dot_product({r}[0:4:2], {r}[1:4:2])",
            lambda s: s.domain.reduce([s[x.name][0] * s[x.name][1] + s[x.name][2] * s[x.name][3]]),
        )
    b.act(
        f"print_ln('@TAG~%s', {r}.reveal())",
        lambda s: s.print(listed(s.domain.centre(s[x.name])), "~"),
    )


@construct()
def shuffle_array(b: Builder) -> None:
    b.need("shuffle")
    x = vector(b, "sint", b.choice((2, 3, 4, 7)))
    c = b.fresh()
    b.act(
        [f"{c} = Array.create_from({x})", f"{c}.secure_shuffle()", f"print_ln('@TAG~%s', {c}.reveal())"],
        lambda s: s.print(listed(s.domain.centre(s[x.name])), "~"),
    )


@construct(2)
def masked_look_up(b: Builder) -> None:
    """Tables read at an opened, masked place."""
    b.need("ring")
    k, n = b.integer(1, 3), b.choice((1, 2, 4))
    size = 1 << k
    x = vector(b, "sint", n, bound=SHORT - 1)
    table = [b.number() for _ in range(size)]
    masks = [b.integer(0, size - 1) for _ in range(n)]
    t, r, at = b.fresh(), b.fresh(), b.fresh()
    lines = [
        f"{t} = sint.Array({n * size})",
        f"{t}.assign({table * n})",
        f"{r} = {masks}",
        f"{at} = regint((({x} + sint({r})) << {64 - k}).reveal() >> {64 - k}) + regint.inc({n}, 0, {size})",
        "break_point()",
    ]
    b.act(lines, lambda s: None)
    b.define(
        Var("", "sint", n),
        f"{t}.get({at})",
        lambda s: s.domain.reduce(table[(v + m) % size] for v, m in zip(integers(s, x), masks, strict=True)),
    )
