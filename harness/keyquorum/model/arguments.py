"""Checks of the arguments of public functions against their annotations: a mistake is one line that names function, argument and cure."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")
Hint = Any
"""An annotation: a class, or one of the forms of :mod:`typing`."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """A function that raises ParameterError for arguments of other types than its annotations name. Elements of sequences are checked; a text is no sequence of
    texts, as it is nearly always a forgotten list. Annotations of other forms are not checked."""
    signature = inspect.signature(function)

    @cache
    def hints() -> dict[str, Hint]:  # at the first call: annotations may name what is defined later
        return get_type_hints(function)

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise ParameterError(f"{function.__name__}: {error}: see its signature") from None
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if (
                name in hints()
                and name != "self"
                and kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
                and not fits(value, hints()[name])
            ):
                raise ParameterError(f"{function.__name__}: {name} is {_shown(value)}, and should be {text_of(hints()[name])}")
        return function(*args, **options)

    return run


def fits(value: object, hint: Hint) -> bool:
    """Whether a value is of an annotation."""
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in arguments)
    if origin in (Sequence, Iterable, list, tuple):
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            return False
        if origin is Iterable:
            return True  # it may be read once only
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            each = list(value)
            return len(each) == len(arguments) and all(map(fits, each, arguments))
        return (origin is Sequence and not hasattr(value, "__len__")) or all(fits(each, arguments[0]) for each in value) if arguments else True
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    if origin is not None or not isinstance(hint, type):
        return callable(value) if origin is Callable or hint is Callable or "Callable" in str(origin) else True
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in {*vars(hint), *get_type_hints(hint)} if not name.startswith("_"))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is Path:
        return isinstance(value, Path) or hasattr(value, "read_bytes")  # also what only reads as a path, as an archive's
    if hint is bytes:
        return isinstance(value, (bytes, bytearray, memoryview))
    return isinstance(value, hint)


def text_of(hint: Hint) -> str:
    """An annotation for people."""
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(text_of(each) for each in arguments))
    if origin in (Sequence, list, Iterable):
        return f"a list of {text_of(arguments[0])}" if arguments else "a list"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dictionary"
    if hint is type(None):
        return "None"
    if isinstance(hint, type) and issubclass(hint, os.PathLike):
        return "a path"
    return getattr(hint, "__name__", str(hint))


def _shown(value: object) -> str:
    """A value for an error, in one line: its type, and the value where it is short. Bytes may be secret, and are not shown."""
    name = type(value).__name__
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str) and len(value) <= 60 and value.isprintable():
        return f"the text {value!r}"
    return f"of type {name}"


__all__ = ["checked"]
