"""What programs see as ``program``: arguments and compile-time settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import is_constant
from .errors import CompilerError

WORD = 64
"""Integer length of programs on bits alone (``-B``)."""


@dataclass(frozen=True)
class ProgramOptions:
    """Options of a run, those of MP-SPDZ's compiler. field: integer bit length over a prime field (``-F``), 0 for the
    default of 64. security: statistical security of masks in bits."""

    field: int = 0
    security: int = 40


class _Options:
    """``program.options``: ring is the ring size as text, or 0 over a field; field the length given with -F as text, or 0; a
    prime is known at run time only."""

    def __init__(self, ring: int, field: int) -> None:
        self.ring: str | int = str(ring) if ring else 0
        self.field: str | int = str(field) if field else 0
        self.prime: int | None = None
        self.binary = 0
        self.garbled = False


class Program:
    """``args``: name and arguments. ``bit_length``: default length of integers in comparisons."""

    def __init__(self, engine: Any, path: str, name: str, args: list[str], options: ProgramOptions) -> None:
        self._engine = engine
        self.args = [name, *args]
        self.infile = path
        self.name = "-".join([name, *(a.replace("/", "_") for a in args)])
        self.programs_dir = "Programs"
        ring = engine.modulus is None
        bits_alone = engine.domain == "bits"
        self.options = _Options(engine.bits if ring and not bits_alone else 0, 0 if ring else options.field)
        self.options.binary = WORD if bits_alone else 0
        self.prime: int | None = None
        self.bit_length: int = engine.bits - 1 if ring and not bits_alone else options.field or 64
        self._security = options.security
        self._edabit = bool(engine.has_edabits)

    @property
    def security(self) -> int:
        """Statistical security of masked comparisons, in bits."""
        return self._security

    @security.setter
    def security(self, security: int) -> None:
        self.set_security(security)

    def set_security(self, security: int) -> None:
        """Changes the statistical security of what follows."""
        if not is_constant(security) or security < 1:
            raise CompilerError(f"the security parameter is a positive number of bits, not {security!r}")
        self._security = security

    def use_split(self, change: object = None) -> Any:
        """Number of summands into which shares split, or False (fields). ``emulate`` counts as 3 parties on rings."""
        if self._engine.protocol == "emulate":
            available = 3 if self._engine.modulus is None else 0
        else:
            available = self._engine.summands if self._engine.modulus is None else 0
        if change is None:
            return available or False
        if change and change != available:
            raise CompilerError(f"shares of {self._engine.protocol} over {self._engine.domain} split into {available} summands, not {change}")
        return None

    def use_edabit(self, change: object = None) -> Any:
        """Whether edaBits cost less than single bits; a setting that programs may change. Conversions here choose for themselves."""
        if change is None:
            return self._edabit
        self._edabit = bool(change)
        return None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"program.{name} is outside the supported subset of the language (docs/pages/dsl.md)")
