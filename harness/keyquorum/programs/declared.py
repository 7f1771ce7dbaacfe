"""Declarations of programs: a function without a body whose calls follow the header of the program of its name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType
from typing import ParamSpec

from .call import Call, given, position
from .header import Argument, Read, Write, header

P = ParamSpec("P")

_FUNCTIONS = {"__builtins__": {}, "len": len, "max": max, "min": min, "sum": sum, "range": range, "int": int}
"""What sizes in headers may use beside the arguments."""


@functools.lru_cache(maxsize=1024)
def _compiled(size: str) -> CodeType:
    return compile(size, "<header>", "eval")


def size_of(size: str | None, names: dict[str, object]) -> int | None:
    """Shares of a segment, by the expression of a header, which belongs to the package, and ``names`` of its arguments and functions; None where the
    header does not state it."""
    return None if size is None else int(eval(_compiled(size), names))


def name_of(argument: Argument) -> str:
    """The parameter of an argument that is not a position: the rest has a plural."""
    return f"{argument.name}s" if argument.rest else argument.name


def program(declared: Callable[P, Call]) -> Callable[P, Call]:
    """A function that makes the call of the program with the name of ``declared``, whose parameters are those of the header.

    The function raises ParameterError if a segment has another length than the program reads."""
    name, signature = declared.__name__, inspect.signature(declared)

    @functools.cache
    def stated() -> tuple[tuple[Argument, ...], dict[str, Read], tuple[Write, ...]]:
        head = header(name)
        return head.arguments, {read.at: read for read in head.reads}, head.writes

    @functools.wraps(declared)
    def call(*args: P.args, **kwargs: P.kwargs) -> Call:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values, (arguments, read_at, writes) = {**_FUNCTIONS, **bound.arguments}, stated()

        def word(argument: Argument) -> object:
            if (read := read_at.get(argument.name)) is None:
                return values[name_of(argument)]
            return position(name, read.name, values[read.name], size_of(argument.default, values) or 0, size_of(read.size, values))

        # MP-SPDZ's order: arguments that must be given, then the rest, then those with defaults.
        words = [word(a) for a in arguments if a.default is None and not a.rest]
        words += [each for a in arguments if a.rest for each in values[name_of(a)]]
        words += given(*((word(a), a.default if a.words else size_of(a.default, values)) for a in arguments if a.default is not None))
        return Call(name, words, {write.name: size_of(write.size, values) for write in writes})

    return call
