"""Constructs of control flow: loops, branches, functions. State lives in containers, MemValue and ``update``."""

from __future__ import annotations

from collections.abc import Sequence

from .arithmetic import LONG, RELATIONS, binary, seen_whole, update
from .builder import NUMBERS, Builder, Var, add_steps, body_lines, construct, run_body
from .memory import array, matrix, memory_value
from .operands import integers, literal, partner, vector
from .oracle import State

BODY = (
    "arithmetic", "negation", "vector_sum", "dot_product", "concat", "part_of_vector", "element", "selection", "convert",
    "comparison", "low_bits", "clear_operation", "integer_division", "logic", "inversion", "bits_to_numbers",
    "array_element", "array_slice", "array_part", "array_gather", "matrix_row", "matrix_column", "matrix_element",
    "memory_value_write", "memory_value_read", "update_state", "update_state", "print_in_body", "public_output",
    "random_mask",
)  # fmt: skip
"""What bodies of loops and branches are made of."""
PURE = ("arithmetic", "negation", "vector_sum", "selection", "comparison", "low_bits", "concat", "part_of_vector",
        "logic_of_numbers", "convert")  # fmt: skip
"""What functions and parallel bodies are made of: no memory, no inputs and outputs."""
DEPTH = 2


@construct()
def update_state(b: Builder) -> None:
    """Changes a variable that was made for it; at the top level, makes one."""
    known = b.candidates(NUMBERS, lambda v: v.state)
    if known:
        update(b, b.choice(known))
    elif b.depth == 0:
        state_variable(b)


def state_variable(b: Builder) -> Var:
    """A variable for ``update``."""
    kind, size = b.choice(NUMBERS), b.choice((1, 1, 3))
    numbers = literal(b, size)[1]
    exact = kind == "regint"
    return b.define(Var("", kind, size, state=True), f"{kind}({numbers})", lambda s: list(numbers) if exact else s.domain.reduce(numbers))


@construct()
def print_in_body(b: Builder) -> None:
    known = b.candidates("regint", lambda v: v.size == 1)
    x = b.choice(known) if known else vector(b, "regint", 1)
    b.act(f"print_ln('@TAG at %s', {x})", lambda s: s.print(f"at {s[x.name][0]}"))


def prepare(b: Builder) -> None:
    """State for a body to change, of one kind or another."""
    b.choice((state_variable, array, memory_value))(b)


def filled(b: Builder, scope: Sequence[Var], names: Sequence[str] = BODY) -> Builder:
    """A body of drawn constructs."""
    inner = b.nested(scope)
    add_steps(inner, names, b.integer(1, 3))
    if b.depth + 1 < DEPTH and names is BODY and b.integer(0, 4) == 4:
        add_steps(inner, ("loop", "branch"), 1)
    if not inner.steps:
        inner.act("pass", lambda s: None)
    return inner


def counter(b: Builder, below: int) -> Var:
    """The variable of a loop."""
    return Var(b.fresh(), "regint", 1, max(below, 1), below=below)


@construct(4)
def loop(b: Builder) -> None:
    """for_range and its forms of start, stop and step; also with a run-time number of iterations."""
    prepare(b)
    start, stop, step = b.choice(((0, 3, 1), (0, 0, 1), (0, 1, 1), (1, 4, 1), (4, 0, -2), (0, 5, 2)))
    n = b.choice((f"{stop}", f"regint({stop})"))
    text = f"{start}, {n}, {step}" if step != 1 else f"{start}, {n}" if start else n
    i = counter(b, 5)
    inner = filled(b, [*b.scope, i])

    def action(s: State) -> None:
        for at in range(start, stop, step):
            s[i.name] = [at]
            run_body(inner, s)

    b.act([f"@for_range({text})", f"def _({i}):", *body_lines(inner)], action)


@construct(2)
def loop_that_ends(b: Builder) -> None:
    """for_range whose body returns 0 to stop."""
    prepare(b)
    last = b.integer(0, 3)
    i = counter(b, 4)
    inner = filled(b, [*b.scope, i])

    def action(s: State) -> None:
        for at in range(4):
            s[i.name] = [at]
            run_body(inner, s)
            if at == last:
                return

    b.act(["@for_range(4)", f"def _({i}):", *body_lines(inner), f"    return {i} != {last}"], action)


@construct(3)
def parallel_loop(b: Builder) -> None:
    """for_range_opt and for_range_multithread: every iteration reads and writes places of its own."""
    n = b.choice((4, 1, 5))
    source = array(b, b.choice(("sint", "sint", "cint")), n)
    target = b.define(Var("", "array", n, of="sint"), f"sint.Array({n})", lambda s: [0] * n)
    i = counter(b, n)
    head = b.choice((f"for_range_opt({n})", f"for_range_multithread(2, 2, {n})", f"for_range_opt(0, {n}, 1)"))
    # The variable of for_range_multithread can be a Python integer on MP-SPDZ: good as an index only.
    inner = b.nested([] if "thread" in head else [i])
    inner.pure = True
    x = inner.define(Var("", source.of, 1, source.bound), f"{source}[{i}]", lambda s: [s[source.name][s[i.name][0]]])
    add_steps(inner, PURE, b.integer(0, 2))
    scalars = inner.candidates(("sint", "cint"), lambda v: v.size == 1)
    y = binary(inner, b.choice(scalars), x)
    inner.act(f"{target}[{i}] = {y}", lambda s: s[target.name].__setitem__(s[i.name][0], s[y.name][0]))

    def action(s: State) -> None:
        for at in range(n):
            s[i.name] = [at]
            run_body(inner, s)

    b.act([f"@{head}", f"def _({i}):", *body_lines(inner)], action)


@construct(2)
def double_loop(b: Builder) -> None:
    """for_range_opt over the elements of a matrix."""
    source = matrix(b, "sint")
    rows, columns = source.shape
    made = Var("", "matrix", source.size, of="sint", shape=(rows, columns))
    target = b.define(made, f"sint.Matrix({rows}, {columns})", lambda s: [0] * source.size)
    i, j, c = b.fresh(), b.fresh(), b.integer(-5, 5)

    def action(s: State) -> None:
        values = [v * c + p * columns + q for (p, q), v in zip(places, s[source.name], strict=True)]
        s[target.name][:] = s.domain.reduce(values)

    places = [(p, q) for p in range(rows) for q in range(columns)]
    head = b.choice((f"for_range_opt([{rows}, {columns}])", f"for_range_multithread(2, 2, [{rows}, {columns}])"))
    body = f"{target}[{i}][{j}] = {source}[{i}][{j}] * ({c}) + {i} * {columns} + {j}"
    b.act([f"@{head}", f"def _({i}, {j}):", f"    {body}"], action)


def condition(b: Builder) -> tuple[str, Var, str, Var]:
    """A comparison of public scalars."""
    kind, sign = b.choice(("regint", "cint")), b.choice(tuple(RELATIONS))
    short = seen_whole(kind, sign)
    x = vector(b, kind, 1, bound=short)
    y = partner(b, x, ("regint",), bound=short or LONG, fixed=True)
    return f"{x} {sign} {y}", x, sign, y


@construct(4)
def branch(b: Builder) -> None:
    """if_e and else_, or if_ alone."""
    prepare(b)
    text, x, sign, y = condition(b)
    first = filled(b, b.scope)
    second = filled(b, b.scope) if b.flag() else None

    def action(s: State) -> None:
        if RELATIONS[sign](integers(s, x)[0], integers(s, y)[0]):
            run_body(first, s)
        elif second:
            run_body(second, s)

    if second:
        lines = [f"@if_e({text})", "def _():", *body_lines(first), "@else_", "def _():", *body_lines(second)]
    else:
        lines = [f"@if_({text})", "def _():", *body_lines(first)]
    b.act(lines, action)


@construct(3)
def while_loop(b: Builder) -> None:
    """while_do, on a variable that the body updates, or that it returns."""
    prepare(b)
    first, last, step = b.integer(-2, 2), b.integer(-2, 5), b.integer(1, 3)
    returned = b.flag()
    i = b.fresh()
    loop_variable = Var(i, "regint", 1, 8)
    inner = filled(b, [*b.scope, loop_variable])

    def action(s: State) -> None:
        at = first
        while at < last:
            s[i] = [at]
            run_body(inner, s)
            at += step
        s[i] = [at]

    if returned:
        head = [f"@while_do(lambda x: x < {last}, regint({first}))", f"def _({i}):"]
        b.act([*head, *body_lines(inner), f"    return {i} + {step}"], action)
    else:
        head = [f"{i} = regint({first})", f"@while_do(lambda: {i} < {last})", "def _():"]
        b.act([*head, *body_lines(inner), f"    {i}.update({i} + {step})"], action)
        b.act(f"print_ln('@TAG after %s', {i})", lambda s: s.print(f"after {s[i][0]}"))


@construct(3)
def function(b: Builder) -> None:
    """function_block, called twice, with vectors and numbers."""
    kinds = [b.choice(NUMBERS) for _ in range(b.integer(1, 2))]
    sizes = [b.choice((1, 3)) for _ in kinds]
    formal = [Var(b.fresh(), k, n) for k, n in zip(kinds, sizes, strict=True)]
    inner = b.nested(formal)
    inner.pure = True
    add_steps(inner, PURE, b.integer(1, 3))
    result = b.choice(inner.candidates(NUMBERS))
    if result in formal:
        result = binary(inner, result, formal[0] if formal[0].size in (1, result.size) else result)
    name = b.fresh()
    b.act(
        ["@function_block", f"def {name}({', '.join(map(str, formal))}):", *body_lines(inner), f"    return {result}"],
        lambda s: None,
    )
    for _ in range(b.integer(1, 2)):
        actual = [vector(b, k, n) for k, n in zip(kinds, sizes, strict=True)]

        def value(s: State, actual: list[Var] = actual) -> list[int]:
            for f, a in zip(formal, actual, strict=True):
                s[f.name] = list(s[a.name])
            run_body(inner, s)
            return list(s[result.name])

        made = Var("", result.kind, result.size)
        b.define(made, f"{name}({', '.join(map(str, actual))})", value)
