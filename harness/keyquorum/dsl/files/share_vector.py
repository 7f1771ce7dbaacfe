"""The share file of a party in memory: a growing vector of shares of one protocol and domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import Engine
from keyquorum.model.errors import ProgramError

from ..errors import CompilerError
from .binding import StatedOrigins, Words, binding_of
from .origin import Origin

Unsigned = NDArray[np.unsignedinteger[Any]]
"""Unsigned words of the width in which they are stored."""


class ShareVector:
    """One party's share file in memory: a growing vector of shares of one protocol and domain.

    The array has shape [parts, words]: component j of the share of element i; elements of more than 64 bits take two words. :meth:`bind`, or
    the first engine that reads or stores shares, fixes their protocol and domain; others are refused.
    ``mac_key``, ``origins``: what they state of the runs that made them, by which parties see that theirs belong together (:mod:`.binding`).
    ``claim``: called before the first shares are read.
    """

    def __init__(self) -> None:
        self._joined: Words | None = None
        self._sections: list[Unsigned] = []
        self._borrowed = 0
        self._used = 0
        self._width = 1
        self._of: tuple[str, str] | None = None
        self._refusal: str | None = None
        self._stated = StatedOrigins()
        self.claim: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"ShareVector({self.length} shares)"

    def __del__(self) -> None:
        self.wipe()

    @classmethod
    def refused(cls, reason: str) -> ShareVector:
        """Stands for a share file that this run must not read or change: every access raises :class:`ProgramError` with ``reason``."""
        made = cls()
        made._refusal = reason
        return made

    def require_own(self) -> None:
        """Raises :class:`ProgramError` if this stands for the share file of another protocol or domain."""
        if self._refusal is not None:
            raise ProgramError(self._refusal)

    @classmethod
    def from_words(cls, words: Unsigned, element_words: int = 1) -> ShareVector:
        """From component vectors, [parts, n * element_words] words. Takes ownership of the array, and wipes it at the end."""
        if words.ndim != 2:
            raise ValueError(f"components must be a matrix [parts, n], not of {words.ndim} dimensions")
        made = cls()
        made._words = np.ascontiguousarray(words, dtype=np.uint64)
        made._used = words.shape[1]
        made._width = element_words
        return made

    @classmethod
    def from_sections(cls, sections: Sequence[Unsigned], element_words: int = 1) -> ShareVector:
        """From consecutive sections of the file, each [parts, n_i] of unsigned words of any size (64-bit words if an element takes
        several), aligned in memory. The caller keeps ownership and wipes them.

        Only entries that a program reads are widened to 64 bits: of large tables it reads few.
        """
        if not all(section.flags.aligned for section in sections):
            raise ValueError("a part of a share file is not aligned in memory: copy it")
        made = cls()
        made._sections, made._borrowed = list(sections), len(sections)
        made._used, made._width = sum(s.shape[1] for s in sections), element_words
        return made

    @property
    def _words(self) -> Words | None:
        if self._sections:
            self._joined = np.concatenate(self._sections, axis=1, dtype=np.uint64, casting="safe")
            self._forget_sections()
        return self._joined

    @_words.setter
    def _words(self, words: Words | None) -> None:
        self._forget_sections()
        self._joined = words

    def _forget_sections(self) -> None:
        sections, self._sections = getattr(self, "_sections", []), []
        for section in sections[getattr(self, "_borrowed", 0) :]:
            section.fill(0)

    @classmethod
    def from_export(cls, data: bytes, parts: int, element_bytes: int = 8) -> ShareVector:
        """From the bytes of :meth:`export`: component after component, little-endian elements of 8 or 16 bytes."""
        made = cls()
        made._width = element_bytes // 8
        made._words = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(parts, -1)
        made._used = made._words.shape[1]
        return made

    def bind(self, protocol: str, domain: str) -> None:
        """Fixes protocol and domain (``Z2^k``, ``F_q``) of the shares, until they are wiped.

        Raises :class:`ProgramError` if they are of others."""
        self.require_own()
        if self._of is None:
            self._of = protocol, domain
        elif self._of != (protocol, domain):
            raise ProgramError(
                f"the share file holds shares of {self._of[0]} over {self._of[1]}, this run computes with {protocol} over {domain}: "
                "use one share file per protocol and domain"
            )

    @property
    def mac_key(self) -> Words | None:
        """This party's share of the MAC key, for authenticated shares whose key outlives a run."""
        return self._stated.mac_key

    @mac_key.setter
    def mac_key(self, key: Words | None) -> None:
        self._stated.mac_key = key

    @property
    def origins(self) -> list[Origin]:
        """With MACs one from each session that made some of the shares; where products are verified the name of the run that stored shares last."""
        return self._stated.origins

    @origins.setter
    def origins(self, origins: list[Origin]) -> None:
        self._stated.origins = origins

    @property
    def exists(self) -> bool:
        """Whether anything was ever stored."""
        return bool(self._sections) or self._joined is not None

    @property
    def length(self) -> int:
        """Number of shares."""
        return self._used // self._width

    @property
    def element_words(self) -> int:
        """Words of a component of one share."""
        return self._width

    @property
    def words(self) -> Words:
        """The components, [parts, words], as a view. This object wipes them at its end: copy what is needed longer."""
        return np.empty((0, 0), dtype=np.uint64) if self._words is None else self._words[:, : self._used]

    @property
    def sections(self) -> list[Unsigned]:
        """The consecutive sections of the file, [parts, words] each: views, in their original width."""
        return self._sections or ([] if self._joined is None else [self._joined[:, : self._used]])

    def tail(self, count: int) -> Words:
        """A copy of the last ``count`` words of the components, [parts, count]."""
        if self._sections and self._sections[-1].shape[1] >= count:
            last = self._sections[-1]
            return last[:, last.shape[1] - count :].astype(np.uint64)
        return self.words[:, self._used - count :].copy()

    def copy(self) -> ShareVector:
        """An independent copy."""
        made = ShareVector()
        made._words, made._used, made._width = (
            (None if self._words is None else self.words.copy()),
            self._used,
            self._width,
        )
        made._of, made._stated.changed = self._of, self._stated.changed
        made.take_mac(self)
        return made

    def head(self, count: int) -> ShareVector:
        """An independent copy of the first ``count`` shares."""
        self._check_range(0, count)
        made = ShareVector.from_words(self.words[:, : count * self._width].copy(), self._width)
        made._of = self._of
        made.take_mac(self)
        return made

    def take_mac(self, other: ShareVector) -> None:
        """Copies the share of the MAC key and the origins of ``other``, under whose MAC key these shares are."""
        self.mac_key = None if other.mac_key is None else other.mac_key.copy()
        self.take_origins(other.origins)

    def take_origins(self, origins: Sequence[Origin]) -> None:
        """Takes copies of the origins, in place of those that these shares have."""
        self.origins = [origin.copy() for origin in origins]

    def export_mac(self) -> bytes:
        """Bytes that are stored with the shares: this party's share of the MAC key, and the origin; without MACs the origin, or nothing."""
        return bytes(self._stated)

    def import_mac(self, protocol: str, data: bytes) -> None:
        """Reads the bytes of :meth:`export_mac`, of shares of ``protocol``. Raises :class:`ProgramError` if their length does not fit these shares."""
        binding_of(protocol).parse(self._stated, data, 8 * self._width)

    def export(self, start: int = 0, count: int | None = None) -> bytes:
        """The shares ``start`` .. ``start + count - 1``, in the engine's form: component after component."""
        count = self.length - start if count is None else count
        self._check_range(start, count)
        w = self._width
        return self.words[:, start * w : (start + count) * w].astype("<u8", copy=False).tobytes()

    def read(self, engine: Engine, start: int, count: int) -> bytes:
        """Same as :meth:`export`, after :meth:`check`."""
        self.require_own()
        if self.exists:
            self._check_form(engine)
        self._claim()
        section = self._section(start, count)
        if section is None:
            return self.export(start, count)
        return section.astype("<u8").tobytes()

    def check(self, engine: Engine, start: int, count: int) -> None:
        """Raises ProgramError if the shares do not fit the engine, and CompilerError if they are beyond the end."""
        self._check_form(engine)
        self._check_range(start, count)

    def pick(self, engine: Engine, start: int, indices: NDArray[np.int64]) -> bytes:
        """The shares ``start + indices`` in the engine's form; the caller has checked the range."""
        self._claim()
        count = int(indices.max()) + 1 if indices.size else 0
        rows, width = self._section(start, count), self._width
        if rows is None:
            assert self._words is not None
            rows = self._words[:, start * width : (start + count) * width]
        if width > 1:
            rows = rows.reshape(rows.shape[0], -1, width)
        return rows.take(indices, axis=1).astype("<u8", copy=False).tobytes()

    def _claim(self) -> None:
        if self.claim is not None:
            self.claim()
            self.claim = None

    def _section(self, start: int, count: int) -> Unsigned | None:
        """The shares start .. start + count - 1 if they are in one section that is not widened yet, else None."""
        start, count = start * self._width, count * self._width
        for section in self._sections:
            if start < section.shape[1]:
                return section[:, start : start + count] if start + count <= section.shape[1] else None
            start -= section.shape[1]
        return None

    @property
    def _parts(self) -> int:
        if self._sections:
            return int(self._sections[0].shape[0])
        return 0 if self._joined is None else int(self._joined.shape[0])

    def write(self, engine: Engine, data: bytes, position: int = -1) -> None:
        """Stores exported shares from ``position`` on, or at the end; a gap is filled with zeros."""
        self.require_own()
        rows = np.frombuffer(data, dtype="<u8").reshape(engine.share_parts, -1)
        if self._sections and position < 0:
            self._check_form(engine)
            self.append(engine, rows.astype(np.uint64))
        else:
            self._put(engine, rows, position)

    def append(self, engine: Engine, rows: Words) -> None:
        """Stores shares [parts, words] at the end. Takes ownership of the array, and wipes it."""
        self.require_own()
        if self._sections:
            self._check_form(engine)
            self._sections.append(rows)
            self._used += rows.shape[1]
            binding_of(engine.protocol).written(self._stated, engine)
        else:
            self._put(engine, rows, -1)
            rows.fill(0)

    def _put(self, engine: Engine, rows: NDArray[Any], position: int) -> None:
        """Copies shares to ``position``, or to the end."""
        parts, width, binding = engine.share_parts, engine.element_bytes // 8, binding_of(engine.protocol)
        if self._words is None:
            self._words, self._width = np.zeros((parts, rows.shape[1]), dtype=np.uint64), width
            binding.first_written(self._stated, engine)
        self._check_form(engine)
        start = self._used if position < 0 else position * width
        end = start + rows.shape[1]
        self._reserve(end)
        assert self._words is not None
        self._words[:, start:end] = rows
        self._used = max(self._used, end)
        binding.written(self._stated, engine)

    def append_joint(self, protocol: str, domain: str, shares: bytearray, parts: int, name: bytes | None = None) -> None:
        """Stores shares of joint integers (``JointIntegers.shares``) at the end, and wipes ``shares``. Elements have one word, shares ``parts`` elements. ``name``
        (``JointIntegers.name``): of their draw, where products are verified (:meth:`.Binding.joined`). For protocols without MACs."""
        binding = binding_of(protocol)
        binding.check_joint(self._stated, name, self.exists)
        self.bind(protocol, domain)
        data = np.frombuffer(shares, dtype="<u8")
        rows = data.reshape(parts, -1)
        if self._words is None:
            self._words, self._width = np.zeros((rows.shape[0], rows.shape[1]), dtype=np.uint64), 1
        start = self._used
        self._reserve(start + rows.shape[1])
        self._words[:, start : start + rows.shape[1]] = rows
        self._used = start + rows.shape[1]
        data.fill(0)
        binding.joined(self._stated, name, start)

    def replace(self, other: ShareVector) -> None:
        """Takes over the shares of ``other``, which is empty afterwards."""
        self.wipe()
        self._words, self._used, self._width, self._of = other._words, other._used, other._width, other._of
        self._stated.take_over(other._stated)
        other._words, other._used, other._of = None, 0, None

    def wipe(self) -> None:
        """Overwrites the shares with zeros and removes them."""
        words, self._words, self._used, self._of = getattr(self, "_joined", None), None, 0, None
        if words is not None and words.flags.writeable:
            words.fill(0)
        if hasattr(self, "_stated"):
            self._stated.wipe()

    def _reserve(self, end: int) -> None:
        assert self._words is not None
        parts, capacity = self._words.shape
        if end > capacity:
            grown = np.zeros((parts, max(end, capacity + capacity // 2)), dtype=np.uint64)
            grown[:, : self._used] = self._words[:, : self._used]
            if self._words.flags.writeable:
                self._words.fill(0)
            self._words = grown
        elif not self._words.flags.writeable:
            self._words = self._words.copy()

    def _check_form(self, engine: Engine) -> None:
        self.require_own()
        if self._parts != engine.share_parts or self._width * 8 != engine.element_bytes:
            raise ProgramError(
                f"the share file holds shares of {self._parts} parts of {8 * self._width} bytes, "
                f"{engine.protocol} over {engine.domain} has {engine.share_parts} of {engine.element_bytes}: "
                "use one share file per protocol and domain"
            )
        self.bind(engine.protocol, engine.domain)
        binding_of(engine.protocol).check(self._stated, engine, self.exists)

    def begin_run(self, engine: Engine) -> None:
        """A program begins, which may use these shares that were read from a file (:meth:`.Binding.begin_run`)."""
        binding_of(engine.protocol).begin_run(self._stated, engine, self.exists)

    def end_run(self, engine: Engine) -> bool:
        """A program has come to its end. Whether these shares are written to a file, with what they state then (:meth:`.Binding.end_run`)."""
        return binding_of(engine.protocol).end_run(self._stated, engine, self.exists)

    def derive_origin(self, protocol: str, domain: str, purpose: str, origins: Sequence[Origin]) -> None:
        """Gives shares that were computed locally from shares of these origins an origin of their own, where products are verified (:meth:`.Binding.derive`)."""
        self.bind(protocol, domain)
        binding_of(protocol).derive(self._stated, purpose, origins)

    def _check_range(self, start: int, count: int) -> None:
        if start < 0 or count < 0 or start + count > self.length:
            raise CompilerError(f"reading shares {start} to {start + count - 1}, but the share file ends after {self.length}: check the position")


@contextmanager
def wiped_on_failure(*shares: ShareVector) -> Iterator[None]:
    """Overwrites shares if what follows fails: a traceback may keep them alive."""
    try:
        yield
    except BaseException:
        for share in shares:
            share.wipe()
        raise
