"""The run of a program on one party: its engine, inputs and outputs, and helpers on raw engine values.

One run belongs to one thread: several parties of one process run in threads of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyquorum import _engine
from keyquorum.model.protocols import PROTOCOLS

from .errors import CompilerError

Dynamic = Any
"""A value of the language or an operand of its operators: a sint, cint, regint, bits, a container or a Python number. The type is known at run time
only."""
ElementType = Any
"""A class of the language whose objects are vectors or rows: sint, cint, regint, or bits of some length."""
Value: TypeAlias = _engine.Value
"""A handle of the engine on a vector: clear (c), secret (s), clear bits (cb), secret bits (sb) or personal (p)."""

Ints = NDArray[np.int64]
Integers = NDArray[Any]
"""Vectors of int64, or of Python integers where 64 bits are too few (dtype object)."""

_CACHED_CONSTANTS = 1 << 12


class Run:
    """State of one run. ``program``: the object of that name in programs. ``constants``: clear values that the runs on this
    engine share. ``namespace``: the globals and imports."""

    namespace: Any = None

    def __init__(self, engine: _engine.Engine, io: Any, program: Any, constants: dict[int, Value] | None = None) -> None:
        self.engine = engine
        self.io = io
        self.program = program
        self.bits: int = engine.bits
        self.modulus: int = engine.modulus or 1 << engine.bits
        self.is_ring: bool = engine.modulus is None
        self.emulated: bool = PROTOCOLS[engine.protocol].emulated
        self.timers: dict[int, Any] = {}
        self.branches: list[bool] = []
        self.lengths_of_bits: dict[str, int] = {}
        self.memory: dict[str, dict[int, tuple[Any, int]]] = {}
        self.thread_argument = 0
        self.circuits: dict[tuple[object, tuple[int, ...]], _engine.BitCircuit] = {}
        self.precision: Any = None
        self._deferred: list[Callable[[], None]] = []
        self._constants: dict[int, Value] = {} if constants is None else constants
        self._secret_zero: Value | None = None
        self._clear_bits_lift: bool | None = None

    # -- clear values -------------------------------------------------------------------------------------------------

    def constant(self, value: int) -> Value:
        """A clear value of size 1. Raises CompilerError if it is longer than the domain, as MP-SPDZ's compiler does."""
        known = self._constants.get(value)
        if known is None:
            self._check_length(value)
            known = self.clear_ints((value,))
            if len(self._constants) < _CACHED_CONSTANTS:
                self._constants[value] = known
        return known

    def constants(self, values: Sequence[int]) -> Value:
        """A clear vector of constants, each checked as in :meth:`constant`."""
        for value in values:
            self._check_length(value)
        return self.clear_ints(values)

    def _check_length(self, value: int) -> None:
        length = int(value).bit_length()
        if length > self.bits and (self.is_ring or length > 32):
            raise CompilerError(f"a constant of {length} bits does not fit {self.engine.domain}: take a larger domain")

    def clear_ints(self, values: Iterable[int]) -> Value:
        """A clear vector of any Python integers of at most 127 bits, reduced into the domain."""
        values = [int(v) for v in values]
        if all(-(1 << 63) <= v < 1 << 63 for v in values):
            return self.engine.clear(np.array(values, dtype=np.int64))
        mask = (1 << 128) - 1
        return self.engine.clear_wide(b"".join((v & mask).to_bytes(16, "little") for v in values))

    def canonical(self, value: Value) -> Integers:
        """Reads a clear or personal vector: integers in [0, M), as uint64, or as Python integers if M exceeds a word."""
        if self.bits <= 64:
            words: Integers = self.engine.read(value)
            return words
        raw = self.engine.read_wide(value)
        wide = [int.from_bytes(raw[i : i + 16], "little") for i in range(0, len(raw), 16)]
        out: Integers = np.empty(len(wide), dtype=object)
        out[:] = wide
        return out

    def centred(self, value: Value) -> Integers:
        """Reads a clear or personal vector: integers in (-M/2, M/2], int64, or Python integers beyond 64 bits."""
        words = self.canonical(value)
        if self.bits > 64 and not self.is_ring:
            return np.where(words > self.modulus // 2, words - self.modulus, words)
        if self.bits > 64:
            return np.where(words >= 1 << (self.bits - 1), words - (1 << self.bits), words)
        if not self.is_ring:
            signed: Ints = words.view(np.int64)
            return np.where(signed > self.modulus // 2, signed - self.modulus, signed)
        shift = np.int64(64 - self.bits)
        return (words.view(np.int64) << shift) >> shift

    def int64s(self, value: Value) -> Ints:
        """The integers for conversion to regint, comparisons and outputs: centred, and truncated to 64 bits. Over a field
        (q-1)/2 counts as -(q+1)/2, as on MP-SPDZ. Raises CompilerError for longer integers over a field: there is nothing to truncate."""
        if not self.is_ring and self.bits > 64:
            longer = self.centred(value)
            if any(not -(1 << 63) <= v < 1 << 63 for v in longer):
                raise CompilerError(f"a public value over {self.engine.domain} is longer than 64 bits: a regint, an index or an output has no more")
            return longer.astype(np.int64)
        if not self.is_ring:
            signed: Ints = self.canonical(value).view(np.int64)
            return np.where(signed >= self.modulus // 2, signed - self.modulus, signed)
        centred = self.centred(value)
        if centred.dtype == np.int64:
            return centred
        return np.array([int(v) & ((1 << 64) - 1) for v in centred], dtype=np.uint64).view(np.int64)

    def compared(self, value: Value) -> Integers:
        """The integers for comparisons of public values."""
        return self.int64s(value) if self.bits <= 64 else self.centred(value)

    # -- kinds --------------------------------------------------------------------------------------------------------

    def secret_zero(self) -> Value:
        """A share of zero, size 1. In every linear scheme zeros are valid shares of zero."""
        if self._secret_zero is None:
            engine = self.engine
            self._secret_zero = engine.import_(bytes(engine.share_parts * engine.element_bytes), 1)
        return self._secret_zero

    def to_secret(self, value: Value) -> Value:
        """The value as a share; a public value becomes one locally."""
        return value if value.kind == "s" else self.engine.add(self.secret_zero(), value)

    def bits_to_clear(self, bits: Value) -> Value:
        """Clear bits as clear elements 0 and 1. Does not wait for an opening if the engine can convert clear bits itself."""
        engine = self.engine
        if self._clear_bits_lift is None:
            try:
                engine.bit_to_arith(engine.clear_bits(np.zeros(1, dtype=np.uint8)))
                self._clear_bits_lift = True
            except Exception:  # an engine without this conversion, or without bits: read the opened bits instead
                self._clear_bits_lift = False
        if self._clear_bits_lift:
            return engine.bit_to_arith(bits)
        return engine.clear(engine.read_bits(bits).astype(np.int64))

    def clear_rows(self, value: Value, count: int) -> list[Value]:
        """Rows of the low ``count`` bits of a clear vector, as clear bits. Waits for the vector."""
        words = self.canonical(value)
        rows = []
        for i in range(count):
            if words.dtype == object:
                row = np.array([(w >> i) & 1 for w in words], dtype=np.uint8)
            elif i < 64:
                row = ((words >> np.uint64(i)) & np.uint64(1)).astype(np.uint8)
            else:
                row = np.zeros(len(words), dtype=np.uint8)
            rows.append(self.engine.clear_bits(row))
        return rows

    # -- outputs ------------------------------------------------------------------------------------------------------

    def defer(self, action: Callable[[], None]) -> None:
        """Postpones an output until its values have been computed for another reason, so that outputs cost no rounds of their own."""
        self._deferred.append(action)

    def settle(self) -> None:
        """Runs all communication and all postponed outputs, in order."""
        self.engine.flush()
        actions, self._deferred = self._deferred, []
        for action in actions:
            action()


_local = threading.local()


def current_or_none() -> Run | None:
    """The run of this thread, if there is one."""
    return getattr(_local, "run", None)


def current() -> Run:
    """The run of this thread."""
    try:
        run: Run = _local.run
    except AttributeError:
        raise CompilerError("values of a program exist during its run only: start it with run_program") from None
    return run


def running() -> Run | None:
    """The run of this thread, if there is one."""
    return getattr(_local, "run", None)


@contextmanager
def active(run: Run) -> Iterator[Run]:
    """Makes a run the current one of this thread."""
    before = running()
    _local.run = run
    try:
        yield run
    finally:
        if before is None:
            del _local.run
        else:
            _local.run = before
