"""The names that a program sees: those of the package ``Compiler``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType

from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS

from .. import errors
from ..compat import bitnumbers, circuit_files, fixed, memvalue, parallel, printing, tuples
from ..containers import containers
from ..context import Dynamic, current
from ..errors import SUBSET, CompilerError
from ..values import binary, bits, bitvectors, clear, global_memory, secret
from ..values.base import is_constant
from . import control, library, util

# -- the other modules ------------------------------------------------------------------------------------------------

_TYPES: Json = {
    "sint": secret.sint,
    "sintbit": secret.sintbit,
    "personal": secret.personal,
    "sfix": fixed.sfix,
    "cfix": fixed.cfix,
    "cint": clear.cint,
    "regint": clear.regint,
    "localint": clear.localint,
    "Array": containers.Array,
    "Matrix": containers.Matrix,
    "MultiArray": containers.MultiArray,
    "SubMultiArray": containers.SubMultiArray,
    "MemValue": memvalue.MemValue,
    "getNamedTupleType": tuples.getNamedTupleType,
}
_GC_TYPES: Json = {
    "sbits": binary.sbits,
    "sbit": binary.sbit,
    "sbitvec": bitvectors.sbitvec,
    "sbitint": bitnumbers.sbitint,
    "sbitintvec": bitnumbers.sbitintvec,
    "cbits": bits.cbits,
    "cbit": bits.cbit,
}
_INSTRUCTIONS: Json = {"fixinput": library.fixinput, "pubinput": library.pubinput}
_ERRORS: Json = {"CompilerError": errors.CompilerError, "VectorMismatch": errors.VectorMismatch}
_LIBRARY: Json = {
    name: getattr(module, name)
    for module, names in (
        (
            control,
            "for_range for_range_opt for_range_multithread while_do do_while break_loop if_ if_e else_ and_ or_ not_ function_block method_block break_point "
            "start_timer stop_timer",
        ),
        (
            library,
            "print_ln_to crash runtime_error runtime_error_if get_number_of_players get_player_id",
        ),
        (
            parallel,
            "for_range_parallel for_range_opt_multithread multithread get_arg map_reduce map_sum map_sum_opt map_sum_simple tree_reduce_multithread",
        ),
        (printing, "print_ln print_str print_ln_if print_str_if print_both memorize unmemorize write_mem public_input foreach_enumerate"),
        (global_memory, "store_in_mem"),
        (fixed, "print_float_precision"),
    )
    for name in names.split()
} | {"tree_reduce": util.tree_reduce, "reveal": printing.reveal}


class Package(ModuleType):
    """A module of ``Compiler``. All runs share the object, so its attributes cannot be changed."""

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
    """The name ``program`` in modules: forwards to the program of the current run."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Dynamic:
        return getattr(current().program, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(current().program, name, value)


class _NeedsArithmetic:
    """Stands for a type of arithmetic values under protocols on bits alone; every use raises CompilerError."""

    def __init__(self, name: str, protocol: str) -> None:
        self.__name, self.__protocol = name, protocol

    def __refused(self) -> CompilerError:
        can = PROTOCOLS[self.__protocol]
        others = f"{can.ring_protocol} or {can.field_protocol}"
        return CompilerError(f"{can.name} computes on bits alone, {self.__name} needs an arithmetic domain: use sbits, or {others}")

    def __call__(self, *_: object, **__: object) -> Dynamic:
        raise self.__refused()

    def __getattr__(self, attribute: str) -> Dynamic:
        raise self.__refused()


def _set_global_vector_size(size: int) -> None:
    if not is_constant(size) or size != 1:
        raise CompilerError(f"set_global_vector_size({size!r}) is {SUBSET}: give sizes to values, sint(x, size=n)")


_ARITHMETIC_TYPES = ("sint", "sintbit", "sfix", "cfix", "personal", "cint")


def types_of(bits_alone: str) -> Json:
    """The types by name. ``bits_alone``: the name of the protocol, if it has no arithmetic values, else empty."""
    if not bits_alone:
        return _TYPES
    return _TYPES | {name: _NeedsArithmetic(name, bits_alone) for name in _ARITHMETIC_TYPES}


def names_of(bits_alone: str) -> Json:
    """The names that a program has without an import."""
    # In programs, though not in modules, MP-SPDZ has the newer type under the older name as well.
    newer = {"sbitint": bitnumbers.sbitintvec}
    return types_of(bits_alone) | _GC_TYPES | newer | _INSTRUCTIONS | _LIBRARY | _ERRORS


@lru_cache(maxsize=16)
def compiler_package(bits_alone: str) -> dict[str, ModuleType]:
    """The modules of the package ``Compiler``, by full name."""
    types, shared = types_of(bits_alone), {"program": CurrentProgram()}
    modules = {
        "Compiler.types": _module("Compiler.types", {**types, **_INSTRUCTIONS, **_ERRORS, **shared}),
        "Compiler.library": _module("Compiler.library", {**_LIBRARY, **types, **_INSTRUCTIONS, **_ERRORS}),
        "Compiler.GC.types": _module("Compiler.GC.types", _GC_TYPES | _ERRORS),
        "Compiler.instructions": _module("Compiler.instructions", _INSTRUCTIONS | _ERRORS | shared),
        "Compiler.util": _module("Compiler.util", util.NAMES | _ERRORS),
        "Compiler.instructions_base": _module("Compiler.instructions_base", {"set_global_vector_size": _set_global_vector_size}),
        "Compiler.circuit": _module("Compiler.circuit", {"Circuit": circuit_files.Circuit}),
        "Compiler.exceptions": _module("Compiler.exceptions", _ERRORS),
    }
    modules["Compiler.GC"] = _module("Compiler.GC", {"types": modules["Compiler.GC.types"]})
    top = {name.split(".")[1]: module for name, module in modules.items() if name.count(".") == 1}
    modules["Compiler"] = _module("Compiler", top)
    return modules
