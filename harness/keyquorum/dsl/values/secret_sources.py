"""Sources of secret vectors: randomness and private inputs."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..context import Dynamic, Ints, Value, current
from ..errors import CompilerError
from . import masks
from .base import checked_size, is_constant, public_int
from .binary import sbits
from .clear import secret_type


class Sources:
    """Constructors of sint from randomness and private inputs."""

    __slots__ = ()

    @classmethod
    def get_random(cls, *, size: int = 1) -> Dynamic:
        """Uniform secret elements of the domain."""
        return secret_type()._wrap(current().engine.random(checked_size(size)))

    @classmethod
    def get_random_bit(cls, *, size: int = 1) -> Dynamic:
        """Uniform secret bits 0 and 1."""
        return secret_type()._wrap(current().engine.random_bit(checked_size(size)))

    @classmethod
    def get_random_int(cls, bits: int, *, size: int = 1) -> Dynamic:
        """Uniform secret integers in [0, 2^bits), ``bits`` a compile-time number. Each costs ``bits`` random bits."""
        run = current()
        if not is_constant(bits) or bits < 1:
            raise CompilerError(f"get_random_int takes a positive number of bits, not {bits!r}")
        most = run.bits if run.is_ring else run.bits - 1
        if bits > most:
            raise CompilerError(f"random integers of {bits} bits do not fit {run.engine.domain}: take at most {most}, or get_random")
        return secret_type()._wrap(masks.random_integers(run, int(bits), checked_size(size)))

    @classmethod
    def get_input_from(cls, player: object, binary: bool = False, n_bytes: int | None = None, *, size: int = 1) -> Dynamic:
        """The next ``size`` numbers of ``player``'s private input, reduced into the domain: from its text, or from its int64 words if ``binary``.
        One round."""
        if n_bytes not in (None, 0, 8):
            raise CompilerError(f"binary input has 8 bytes a number, not {n_bytes}")
        run = current()
        owner, count = public_int(player, "get_input_from"), checked_size(size)
        words = run.io.take_private(run.engine, owner, count) if binary else _numbers_as_words(run, owner, count)
        return secret_type()._wrap(run.engine.input(0 if run.emulated else owner, count, words))

    @classmethod
    def scaled_input(cls, player: int, size: int, f: int) -> Dynamic:
        """The next ``size`` decimal numbers of ``player``'s text, times 2^f, rounded to the nearest integer. One round."""
        run = current()
        return secret_type()._wrap(run.engine.input(0 if run.emulated else player, size, _scaled_words(run, player, size, f)))

    @classmethod
    def get_dabit(cls, *, size: int = 1) -> tuple[Dynamic, Dynamic]:
        """Random bits as (sint, sbits). For bits alone use the rows of get_edabit, which cost less."""
        engine, bits = _random_bits(checked_size(size))
        return secret_type()._wrap(engine.bit_to_arith(bits)), sbits._wrap(bits)

    @classmethod
    def get_edabit(cls, n_bits: int, strict: bool = False, *, size: int = 1) -> tuple[Dynamic, list[Dynamic]]:
        """Random ``n_bits``-bit numbers as (sint, list of sbits rows).

        If the protocol has edaBits (MACs), and the sint is used before any row, numbers and bits are made together. Otherwise the rows
        are random bits, and the sint is converted from them at its first use: rows alone cost only random bits."""
        if not is_constant(n_bits) or n_bits < 1:
            raise CompilerError(f"get_edabit takes a positive number of bits, not {n_bits!r}")
        run = current()
        _need_random_bits(run)
        made = _Edabit(run, int(n_bits), checked_size(size))
        if run.engine.has_edabits:
            return secret_type()._lazy(size, made.number), [sbits._lazy(size, partial(made.row, i)) for i in range(n_bits)]
        return secret_type()._lazy(size, made.number), [sbits._wrap(made.row(i)) for i in range(n_bits)]


def _numbers_as_words(run: Dynamic, owner: int, count: int) -> Ints | None:
    """The next ``count`` numbers of ``owner``'s text as input words; None at other parties."""
    return _words(run, owner, [run.io.take_number(run.engine, owner) for _ in range(count)])


def _scaled_words(run: Dynamic, owner: int, count: int, f: int) -> Ints | None:
    numbers = [run.io.take_decimal(run.engine, owner) for _ in range(count)]
    return _words(run, owner, [None if n is None else round(n * (1 << f)) for n in numbers])


def _words(run: Dynamic, owner: int, numbers: list[Dynamic]) -> Ints | None:
    if numbers and numbers[0] is None:
        return None
    if run.bits <= 64:
        half = run.modulus // 2
        return np.array([(n + half) % run.modulus - half for n in numbers], dtype=np.int64)
    for n in numbers:
        if not -(1 << 63) <= n < 1 << 63:
            raise CompilerError(f"the input {n} of party {owner} is longer than 64 bits")
    return np.array(numbers, dtype=np.int64)


def _need_random_bits(run: Dynamic) -> None:
    if not run.engine.has_binary:
        raise CompilerError(f"{run.engine.protocol} has no binary domain in this engine, so no (e)daBits: use get_random_bit")


def _random_bits(size: int) -> tuple[Dynamic, Value]:
    run = current()
    _need_random_bits(run)
    return run.engine, run.engine.random_bits(size)


class _Edabit:
    """Random numbers and their bits, made at the first use of one of them."""

    def __init__(self, run: Dynamic, length: int, size: int) -> None:
        self._run, self._length, self._size = run, length, size
        self._rows: list[Value] | None = None
        self._number: Value | None = None

    def number(self) -> Value:
        """The numbers."""
        if self._number is None:
            if self._rows is None:
                self._number, self._rows = self._run.engine.edabit(self._length, self._size)
            else:
                self._number = masks.weighted(self._run, [self._run.engine.bit_to_arith(r) for r in self._rows])
        return self._number

    def row(self, index: int) -> Value:
        """Row ``index`` of the bits."""
        if self._rows is None:
            self._rows = [self._run.engine.random_bits(self._size) for _ in range(self._length)]
        return self._rows[index]
