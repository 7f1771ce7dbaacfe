"""The names that a program sees: those of the package ``Compiler``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import ModuleType

from . import binary, clear, containers, control, errors, library, memvalue, secret
from .base import is_constant, read
from .context import Dynamic, current
from .errors import SUBSET, CompilerError

# -- Compiler.util ----------------------------------------------------------------------------------------------------


def _tree_reduce(function: Callable[[Dynamic, Dynamic], Dynamic], sequence: Dynamic) -> Dynamic:
    """Combines neighbours until one value is left: logarithmic depth."""
    values = list(sequence)
    if not values:
        raise CompilerError("tree_reduce of nothing")
    while len(values) > 1:
        pairs = [function(values[i], values[i + 1]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


def _if_else(condition: Dynamic, a: Dynamic, b: Dynamic) -> Dynamic:
    condition = read(condition)
    if a is b:
        return a
    if isinstance(condition, (bool, int)):
        return a if condition else b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return [_if_else(condition, x, y) for x, y in zip(a, b, strict=False)]
    return condition.if_else(a, b)


def _two_bits(name: str, constant: Callable[[int, int], int]) -> Callable[[Dynamic, Dynamic], Dynamic]:
    def operation(a: Dynamic, b: Dynamic) -> Dynamic:
        if is_constant(a):
            return constant(a, b) if is_constant(b) else getattr(b, name)(a)
        return getattr(a, name)(b)

    return operation


def _bit_not(a: Dynamic, n: int) -> Dynamic:
    return ~a & ((1 << n) - 1) if is_constant(a) else a.bit_not()


def _bit_decompose(a: Dynamic, bits: int | None = None) -> Dynamic:
    if is_constant(a):
        return [(a >> i) & 1 for i in range(max(1, a.bit_length()) if bits is None else bits)]
    return a.bit_decompose(bits)


def _bit_compose(bits: Dynamic) -> Dynamic:
    bits = list(bits)
    if not bits:
        return 0
    if hasattr(bits[0], "bit_compose"):
        return bits[0].bit_compose(bits)
    return sum(b << i for i, b in enumerate(bits))


def _reveal(x: object) -> Dynamic:
    if isinstance(x, str):
        return x
    if hasattr(x, "reveal"):
        return x.reveal()
    return [_reveal(y) for y in x] if isinstance(x, (list, tuple)) else x


_UTIL: dict[str, object] = {
    "tree_reduce": _tree_reduce,
    "if_else": _if_else,
    "bit_xor": _two_bits("bit_xor", lambda a, b: a ^ b),
    "bit_and": _two_bits("bit_and", lambda a, b: a & b),
    "bit_not": _bit_not,
    "bit_decompose": _bit_decompose,
    "bit_compose": _bit_compose,
    "reveal": _reveal,
    "is_constant": is_constant,
    "is_zero": lambda x: is_constant(x) and x == 0,
    "is_one": lambda x: is_constant(x) and x == 1,
    "log2": lambda x: (x - 1).bit_length(),
    "tuplify": lambda x: tuple(x) if isinstance(x, (list, tuple)) else (x,),
    "untuplify": lambda x: x[0] if len(x) == 1 else x,
    "max": lambda x, y=None: _tree_reduce(_larger, x) if y is None else _larger(x, y),
    "min": lambda x, y=None: _tree_reduce(_smaller, x) if y is None else _smaller(x, y),
}


def _larger(x: Dynamic, y: Dynamic) -> Dynamic:
    return _if_else(x > y, x, y)


def _smaller(x: Dynamic, y: Dynamic) -> Dynamic:
    return _if_else(x < y, x, y)


# -- the other modules ------------------------------------------------------------------------------------------------

_TYPES: dict[str, object] = {
    "sint": secret.sint,
    "sintbit": secret.sintbit,
    "personal": secret.personal,
    "cint": clear.cint,
    "regint": clear.regint,
    "localint": clear.localint,
    "Array": containers.Array,
    "Matrix": containers.Matrix,
    "MultiArray": containers.MultiArray,
    "SubMultiArray": containers.SubMultiArray,
    "MemValue": memvalue.MemValue,
}
_GC_TYPES: dict[str, object] = {
    "sbits": binary.sbits,
    "sbit": binary.sbit,
    "sbitvec": binary.sbitvec,
    "cbits": binary.cbits,
}
_INSTRUCTIONS: dict[str, object] = {"fixinput": library.fixinput, "pubinput": library.pubinput}
_ERRORS: dict[str, object] = {"CompilerError": errors.CompilerError, "VectorMismatch": errors.VectorMismatch}
_LIBRARY: dict[str, object] = {
    name: getattr(module, name)
    for module, names in (
        (
            control,
            "for_range for_range_opt for_range_multithread while_do if_ if_e else_ function_block break_point start_timer stop_timer",
        ),
        (
            library,
            "print_ln print_str print_ln_to crash runtime_error runtime_error_if get_number_of_players get_player_id",
        ),
    )
    for name in names.split()
} | {"tree_reduce": _tree_reduce}


class Package(ModuleType):
    """A module of ``Compiler``: the same object for all runs, so nothing can be changed in it."""

    def __setattr__(self, name: str, value: object) -> None:
        raise CompilerError(f"{self.__name__}.{name} cannot be changed: keep the value in the program")


def _module(name: str, content: Mapping[str, Dynamic]) -> ModuleType:
    module = Package(name)
    module.__dict__.update(content, __path__=[])

    def missing(attribute: str) -> Dynamic:
        raise AttributeError(f"{name}.{attribute} is {SUBSET}")

    module.__dict__["__getattr__"] = missing
    return module


class CurrentProgram:
    """``program`` as modules know it: that of the current run."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Dynamic:
        return getattr(current().program, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(current().program, name, value)


class _NeedsArithmetic:
    """Stands for a type of arithmetic values where there are bits alone."""

    def __init__(self, name: str, protocol: str) -> None:
        self.__name, self.__protocol = name, protocol

    def __refused(self) -> CompilerError:
        return CompilerError(f"{self.__protocol} computes on bits alone, {self.__name} needs an arithmetic domain: use sbits, or semi2k or semi")

    def __call__(self, *_: object, **__: object) -> Dynamic:
        raise self.__refused()

    def __getattr__(self, attribute: str) -> Dynamic:
        raise self.__refused()


_ARITHMETIC_TYPES = ("sint", "sintbit", "personal", "cint")


def types_of(bits_alone: str) -> dict[str, object]:
    """The types that there are; ``bits_alone``: the protocol, if it has no arithmetic values."""
    if not bits_alone:
        return _TYPES
    return _TYPES | {name: _NeedsArithmetic(name, bits_alone) for name in _ARITHMETIC_TYPES}


def names_of(bits_alone: str) -> dict[str, object]:
    """What a program sees without an import."""
    return types_of(bits_alone) | _GC_TYPES | _INSTRUCTIONS | _LIBRARY | _ERRORS


@lru_cache(maxsize=16)
def compiler_package(bits_alone: str) -> dict[str, ModuleType]:
    """The modules of the package ``Compiler``, by full name."""
    types, shared = types_of(bits_alone), {"program": CurrentProgram()}
    modules = {
        "Compiler.types": _module("Compiler.types", {**types, **_INSTRUCTIONS, **_ERRORS, **shared}),
        "Compiler.library": _module("Compiler.library", {**_LIBRARY, **types, **_INSTRUCTIONS, **_ERRORS}),
        "Compiler.GC.types": _module("Compiler.GC.types", _GC_TYPES | _ERRORS),
        "Compiler.instructions": _module("Compiler.instructions", _INSTRUCTIONS | _ERRORS | shared),
        "Compiler.util": _module("Compiler.util", _UTIL | _ERRORS),
        "Compiler.exceptions": _module("Compiler.exceptions", _ERRORS),
    }
    modules["Compiler.GC"] = _module("Compiler.GC", {"types": modules["Compiler.GC.types"]})
    top = {name.split(".")[1]: module for name, module in modules.items() if name.count(".") == 1}
    modules["Compiler"] = _module("Compiler", top)
    return modules
