"""Which helpers of programs can serve several runs: those that cannot keep anything from one run to the next.

Such a module has nothing but functions, classes, numbers, texts and tuples of them, and names of ``Compiler``, of Python's library and of
other such modules. No function of it assigns to a global name, a name of a function around it, or to an attribute of anything but the object that a method is called
on. What is not understood here is taken for state. Whether a module looks at the run while it is loaded, its importer sees.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from .facade import CurrentProgram, Package

_OF_A_MODULE = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__file__", "__builtins__", "__annotations__"}
_REFLECTION = {"setattr", "delattr", "globals", "vars", "exec", "eval", "__dict__", "__class__", "__setattr__", "__globals__"}
_OUTSIDE = {"open", "input", "id", "hash", "repr", "ascii"}
"""Files, and functions whose result may hang on where an object lies in memory, or on the process: nothing that a program may steer by.
Texts of errors (``{word!r}``) are not counted."""
_OF_IDENTITY = {"__hash__", "__repr__"}
_OF_OS = (["path", "join"], ["path", "dirname"], ["path", "abspath"])
PURE = {"__future__", "abc", "collections", "dataclasses", "decimal", "functools", "itertools", "math", "operator", "os", "typing"}
"""Modules of Python of which programs get functions alone, but for what :func:`looks_outside` finds."""
_kept: dict[int, object] = {}
"""Modules, their dictionaries and classes that were found stateless, by identity; held, so that no other object takes their place."""


def stateless(module: ModuleType) -> bool:
    """Whether a module that was just executed can keep nothing."""
    return _Examination(module.__dict__).passed()


def keep_names(module: ModuleType) -> None:
    """A module that is kept: others may use it and stay stateless."""
    classes = [v for v in module.__dict__.values() if isinstance(v, type)]
    _kept.update({id(each): each for each in (module, module.__dict__, *classes)})


class _Examination:
    """Of one module, given by its names. What is under examination counts as lasting: functions and classes may name each other."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._seen: set[int] = set()

    def passed(self) -> bool:
        return all(self._lasts(value) for name, value in self._names.items() if name not in _OF_A_MODULE)

    def _lasts(self, value: Any) -> bool:
        if value is None or value.__class__ in (bool, int, float, str, bytes) or isinstance(value, CurrentProgram):
            return True
        if id(value) in self._seen or id(value) in _kept:
            return True
        if value.__class__ in (tuple, frozenset):
            return all(self._lasts(item) for item in value)
        if isinstance(value, BuiltinFunctionType):
            return value.__self__ is None or isinstance(value.__self__, ModuleType)
        if isinstance(value, ModuleType):
            return isinstance(value, Package) or sys.modules.get(value.__name__) is value
        if isinstance(value, FunctionType):
            return self._function_lasts(value)
        return isinstance(value, type) and self._class_lasts(value)

    def _function_lasts(self, function: FunctionType, method: bool = False) -> bool:
        if function.__globals__ is not self._names:
            home = getattr(sys.modules.get(function.__module__), "__dict__", None)
            return id(function.__globals__) in _kept or home is function.__globals__
        self._seen.add(id(function))
        held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        try:
            held += [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # an empty cell
            return False
        return not function.__dict__ and not assigns(function.__code__, method) and all(self._lasts(value) for value in held)

    def _class_lasts(self, value: type) -> bool:
        known = sys.modules.get(value.__module__)
        if known is not None and getattr(known, value.__name__, None) is value:
            return True
        self._seen.add(id(value))
        members = all(self._member_lasts(member) for member in vars(value).values())
        return type(value) is type and members and all(self._lasts(base) for base in value.__bases__)

    def _member_lasts(self, member: Any) -> bool:
        if isinstance(member, (GetSetDescriptorType, MemberDescriptorType)):
            return True
        if isinstance(member, (staticmethod, classmethod)):
            return self._lasts(member.__func__)
        if isinstance(member, property):
            return all(f is None or (isinstance(f, FunctionType) and self._function_lasts(f, True)) for f in (member.fget, member.fset, member.fdel))
        if isinstance(member, FunctionType):
            return self._function_lasts(member, True)
        return self._lasts(member)


@lru_cache(maxsize=4096)
def looks_outside(code: CodeType) -> bool:
    """Whether code, or code in it, uses what may be another thing at another time: of ``os`` and ``sys`` anything but what finds the
    folder of helpers, files, identities."""
    if (_REFLECTION | _OUTSIDE) & set(code.co_names):
        return True
    steps = [(i.opname, i.argval) for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    for at, (name, what) in enumerate(steps):
        if name in ("LOAD_ATTR", "LOAD_METHOD") and what in _OF_IDENTITY:
            return True
        if what not in ("os", "sys") or name.startswith("STORE_") or name in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST"):
            continue
        following = steps[at + 1 : at + 3]
        if name == "IMPORT_NAME":
            if not following[0][0].startswith("STORE_") or following[0][1] != what:
                return True
            continue
        taken = [attribute for step, attribute in following if step in ("LOAD_ATTR", "LOAD_METHOD")]
        if taken not in _OF_OS if what == "os" else taken[:1] != ["path"]:
            return True
    return any(looks_outside(inner) for inner in code.co_consts if isinstance(inner, CodeType))


@lru_cache(maxsize=4096)
def assigns(code: CodeType, method: bool = False) -> bool:
    """Whether code, or code in it, assigns to global names, to names of the functions around it, or to attributes; a method may, of its
    first parameter. Means of reaching anything by name count as well."""
    if _REFLECTION & set(code.co_names):
        return True
    itself = code.co_varnames[0] if method and code.co_argcount else None
    before: tuple[str, Any] = "", None
    for instruction in dis.get_instructions(code):
        name, what = instruction.opname, instruction.argval
        if name in ("STORE_GLOBAL", "DELETE_GLOBAL") or (name in ("STORE_DEREF", "DELETE_DEREF") and what in code.co_freevars):
            return True
        if itself is not None and name in ("STORE_FAST", "DELETE_FAST") and what == itself:
            return True
        if name in ("STORE_ATTR", "DELETE_ATTR") and (itself is None or not before[0].startswith("LOAD_FAST") or before[1] != itself):
            return True
        if name not in ("CACHE", "EXTENDED_ARG"):
            before = name, what
    return any(assigns(inner) for inner in code.co_consts if isinstance(inner, CodeType))
