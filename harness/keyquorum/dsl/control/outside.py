"""Python's library and built-in functions for programs, with a note of every use that may give another result in another run.

A run can be recorded only if every run with the same arguments and inputs makes the same calls. Values of the run are
opaque while it is recorded (:mod:`keyquorum.dsl.recording.recorded`), and Python is deterministic. The other sources of differences are clocks, files, the process,
randomness of the operating system, and addresses of objects in memory. A program reaches them through modules and built-in functions, so it gets
stand-ins for these. Pure functions are passed on unchanged. Every other name first notes in the current run that the run is not repeatable
(:meth:`.Namespace.note_unrepeatable`), and then works as usual. A source that the recorded run did not use is not used by a run that makes the same
calls.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from abc import ABC
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from keyquorum.model.plain import Json

from ..context import running

_PURE: dict[str, str | None] = {
    "__future__": None,
    "abc": "ABC abstractmethod",
    "collections": "Counter OrderedDict defaultdict deque namedtuple",
    "dataclasses": "dataclass field replace",
    "decimal": "Context Decimal localcontext ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP",
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce total_ordering wraps",
    "itertools": None,
    "math": None,
    "operator": "add and_ eq floordiv ge gt index inv invert itemgetter le lshift lt mod mul ne neg not_ or_ pos pow rshift sub truth xor",
    "os": "path",
    "os.path": "abspath basename dirname join normpath",
    "typing": "Any Callable ClassVar Final Iterable Iterator Literal Mapping NamedTuple Sequence TypeVar Union cast",
}
"""Modules of Python's library, and their deterministic names; None: all public ones."""
_OUTSIDE = ("open", "input", "id", "hash", "repr", "ascii")
"""Built-in functions for files, and functions whose result may depend on the address of an object or on the process. Texts of errors
(``{word!r}``) do not call them."""


def note_unrepeatable(what: str) -> None:
    """Notes in the current run, if there is one, that its program depends on more than its arguments and inputs. ``what``: on what."""
    run = running()
    if run is not None:
        run.namespace.note_unrepeatable(what)


class Library(ModuleType):
    """Stands for a module of Python's library. All runs share the object."""

    def __init__(self, name: str, module: ModuleType, names: Iterable[str]) -> None:
        super().__init__(name)
        self.__dict__.update({n: getattr(module, n) for n in names})

    def __getattr__(self, name: str) -> Any:
        note_unrepeatable(f"{self.__name__}.{name}")
        return getattr(importlib.import_module(self.__name__), name)

    def __setattr__(self, name: str, value: object) -> None:
        note_unrepeatable(f"{self.__name__}.{name}")
        setattr(importlib.import_module(self.__name__), name, value)


class System(ModuleType):
    """``sys`` of one run, with its own path for helpers, and its arguments."""

    def __init__(self, path: list[str], argv: list[str]) -> None:
        super().__init__("sys")
        self.__dict__.update(path=path, _argv=argv)

    def __getattr__(self, name: str) -> Any:
        note_unrepeatable(f"sys.{name}")
        return self.__dict__["_argv"] if name == "argv" else getattr(sys, name)


class Base:
    """The base of all classes of programs. The default hash and text of an object depend on its address, which is noted."""

    __slots__ = ()

    def __hash__(self) -> int:
        note_unrepeatable("an object's hash")
        return super().__hash__()

    def __repr__(self) -> str:
        note_unrepeatable("an object's text")
        return super().__repr__()


class _ABC(Base, ABC):
    """``ABC`` for programs."""


class _ObjectType(type):
    """The metaclass of ``object`` for programs: every value is an instance, and every class a subclass."""

    def __instancecheck__(cls, instance: object) -> bool:
        return cls is Object or type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls is Object or type.__subclasscheck__(cls, subclass)


class Object(Base, metaclass=_ObjectType):
    """``object`` for programs."""


def _build_class(body: Callable[..., Any], name: str, *bases: object, **options: object) -> Any:
    """Python calls this for a class statement."""
    return builtins.__build_class__(body, name, *(Base if base is Object else base for base in bases or (Base,)), **options)


def _noted(name: str) -> Callable[..., Any]:
    function = getattr(builtins, name)

    def call(*args: object, **kwargs: object) -> Any:
        note_unrepeatable(name)
        return function(*args, **kwargs)

    return call


def _library() -> dict[str, Library]:
    made: dict[str, Library] = {}
    for name, listed in _PURE.items():
        module = importlib.import_module(name)
        made[name] = Library(name, module, [n for n in dir(module) if not n.startswith("_")] if listed is None else listed.split())
    made["os"].__dict__["path"] = made["os.path"]
    made["abc"].__dict__["ABC"] = _ABC
    return made


LIBRARY = _library()
"""Stand-ins of the modules of Python's library in :data:`_PURE`, by name."""


BUILTINS: Json = {
    **vars(builtins),
    **{name: _noted(name) for name in _OUTSIDE},
    "object": Object,
    "__build_class__": _build_class,
}
"""Python's built-in names, for all programs."""
