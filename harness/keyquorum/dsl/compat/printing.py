"""Printing, MemValues of lists (memorize), single public inputs, and enumeration of constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..containers.containers import Array, SubMultiArray, register_printer
from ..context import Dynamic
from ..control import library
from ..control.control import Body, for_range
from ..control.library import pubinput
from ..errors import CompilerError
from ..values.base import RunTime, is_constant, read
from ..values.clear import cint, localint, regint
from .fixed import cfix
from .memvalue import MemValue


def _shown(x: object) -> Dynamic:
    """Fixed-point numbers as text; lists item by item."""
    x = read(x)
    if isinstance(x, cfix):
        return x.shown()
    if isinstance(x, (Array, SubMultiArray)) and x.value_type is cfix:
        return _shown(x.get_vector() if isinstance(x, Array) else [_shown(part) for part in x])
    if isinstance(x, (list, tuple)):
        return [_shown(part) for part in x]
    return x


def print_str(s: str, *args: object) -> None:
    """Prints a text with ``%s`` replaced by public values. Waits for them."""
    library.print_str(s, *map(_shown, args))


def print_ln(s: object = "", *args: object) -> None:
    """Prints a line with ``%s`` replaced by public values. Waits for them."""
    print_str(str(s) + "\n", *args)


def reveal(secret: object) -> Dynamic:
    """The opened value."""
    if not hasattr(secret, "reveal"):
        raise CompilerError(f"reveal takes a value of the language, not {type(secret).__name__}: lists are for util.reveal")
    return secret.reveal()


def print_str_if(cond: object, ss: str, *args: object) -> None:
    """Prints a text if a public condition holds. If the condition differs between parties, party 0's counts."""
    cond = read(cond)
    if isinstance(cond, localint):
        holds = cond.number != 0
    elif is_constant(cond):
        holds = bool(cond)
    elif isinstance(cond, (regint, cint)) and cond.size == 1:
        holds = bool(cond._indices()[0])
    else:
        raise CompilerError(f"print_ln_if takes a public number as condition, not {type(cond).__name__}")
    if holds:
        print_str(ss, *args)


def print_ln_if(cond: object, ss: str, *args: object) -> None:
    """Prints a line if a public condition holds, see :func:`print_str_if`."""
    print_str_if(cond, ss + "\n", *args)


def print_both(s: str, end: str = "\n") -> None:
    """Prints a text."""
    print_str(s + end)


def memorize(x: object, write: bool = True) -> Dynamic:
    """A value, or each item of a list, as MemValue."""
    if isinstance(x, (tuple, list)):
        return tuple(memorize(i) for i in x)
    return None if x is None else MemValue(x)


def unmemorize(x: Dynamic) -> Dynamic:
    """The content of a MemValue, or of each item of a list."""
    if isinstance(x, (tuple, list)):
        return tuple(unmemorize(i) for i in x)
    return None if x is None else x.read()


def write_mem(dest: Dynamic, source: Dynamic) -> None:
    """Writes values to the result of :func:`memorize`."""
    if isinstance(dest, (tuple, list)):
        for x, y in zip(dest, source, strict=True):
            write_mem(x, y)
    elif dest is not None:
        dest.write(source)


def public_input() -> regint:
    """The next number of the public input file."""
    number = cint(0)
    pubinput(number)
    return regint(number)


def foreach_enumerate(a: Iterable[Dynamic]) -> Callable[[Body], Body]:
    """Runs the body for the number and the content (an integer, or several) of each item of a list of compile-time integers."""
    rows = [tuple(x) if isinstance(x, (list, tuple)) else (x,) for x in a]
    if any(isinstance(x, RunTime) or not is_constant(x) for row in rows for x in row) or len({len(row) for row in rows}) > 1:
        raise CompilerError("foreach_enumerate takes compile-time integers, as many in every item")
    table = regint.Array(max(1, sum(map(len, rows))))
    table.assign(regint([x for row in rows for x in row] or [0]))
    width = len(rows[0]) if rows else 0

    def decorator(body: Body) -> Body:
        @for_range(len(rows))
        def each(i: Dynamic) -> Dynamic:
            return body(i, *(table[i * width + j] for j in range(width)))

        return each

    return decorator


register_printer(print_str)
