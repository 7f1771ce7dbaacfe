"""The share file of a party: a growing vector of shares of one protocol and domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum import _engine
from keyquorum.model.errors import ProgramError

from .errors import CompilerError

Words = NDArray[np.uint64]


class Persistence:
    """One party's share file in memory: a growing vector of shares of one protocol and domain.

    Held as [parts, words]: component j of the share of element i; elements of more than 64 bits take two words.
    """

    def __init__(self) -> None:
        self._words: Words | None = None
        self._used = 0
        self._width = 1

    def __repr__(self) -> str:
        return f"Persistence({self.length} shares)"

    def __del__(self) -> None:
        self.wipe()

    @classmethod
    def from_words(cls, words: NDArray[Any]) -> Persistence:
        """From component vectors, [parts, n] words of at most 64 bits; takes the array over (and wipes it at the
        end)."""
        if words.ndim != 2:
            raise ValueError(f"components must be a matrix [parts, n], not of {words.ndim} dimensions")
        made = cls()
        made._words = np.ascontiguousarray(words, dtype=np.uint64)
        made._used = words.shape[1]
        return made

    @classmethod
    def from_export(cls, data: bytes, parts: int, element_bytes: int = 8) -> Persistence:
        """From what :meth:`export` gives: component after component, little-endian elements of 8 or 16 bytes."""
        made = cls()
        made._width = element_bytes // 8
        made._words = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(parts, -1)
        made._used = made._words.shape[1]
        return made

    @property
    def exists(self) -> bool:
        """Whether anything was ever stored."""
        return self._words is not None

    @property
    def length(self) -> int:
        """Number of shares."""
        return self._used // self._width

    @property
    def words(self) -> Words:
        """The components, [parts, words]; a view."""
        return np.empty((0, 0), dtype=np.uint64) if self._words is None else self._words[:, : self._used]

    def copy(self) -> Persistence:
        """An independent copy."""
        made = Persistence()
        made._words, made._used, made._width = (
            (None if self._words is None else self.words.copy()),
            self._used,
            self._width,
        )
        return made

    def export(self, start: int = 0, count: int | None = None) -> bytes:
        """The shares ``start`` .. ``start + count - 1``, in the engine's form: component after component."""
        count = self.length - start if count is None else count
        self._check_range(start, count)
        w = self._width
        return np.ascontiguousarray(self.words[:, start * w : (start + count) * w]).astype("<u8").tobytes()

    def read(self, engine: Any, start: int, count: int) -> bytes:
        """Same as :meth:`export`, for an engine that the shares must fit."""
        if self._words is not None:
            self._check_form(engine)
        return self.export(start, count)

    def write(self, engine: Any, data: bytes, position: int = -1) -> None:
        """Stores exported shares from ``position`` on, or at the end; a gap is filled with zeros."""
        parts, width = engine.share_parts, engine.element_bytes // 8
        rows = np.frombuffer(data, dtype="<u8").reshape(parts, -1)
        if self._words is None:
            self._words, self._width = np.zeros((parts, rows.shape[1]), dtype=np.uint64), width
        self._check_form(engine)
        start = self._used if position < 0 else position * width
        end = start + rows.shape[1]
        self._reserve(end)
        assert self._words is not None
        self._words[:, start:end] = rows
        self._used = max(self._used, end)

    def wipe(self) -> None:
        """Overwrites the shares with zeros and forgets them."""
        words, self._words, self._used = getattr(self, "_words", None), None, 0
        if words is not None and words.flags.writeable:
            words.fill(0)

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

    def _check_form(self, engine: Any) -> None:
        assert self._words is not None
        if self._words.shape[0] != engine.share_parts or self._width * 8 != engine.element_bytes:
            raise ProgramError(
                f"the share file holds shares of {self._words.shape[0]} parts of {8 * self._width} bytes, "
                f"{engine.protocol} over {engine.domain} has {engine.share_parts} of {engine.element_bytes}: "
                "use one share file per protocol and domain"
            )

    def _check_range(self, start: int, count: int) -> None:
        if start < 0 or count < 0 or start + count > self.length:
            raise CompilerError(
                f"reading shares {start} to {start + count - 1}, but the share file ends after {self.length}: "
                "check the position"
            )


def shares_path(folder: Path, party: int) -> Path:
    """Place of a party's share file in a working folder."""
    return folder / "Persistence" / f"Shares-P{party}"


def _header(engine: Any, length: int) -> dict[str, Any]:
    return {
        "protocol": engine.protocol,
        "domain": engine.domain,
        "parties": engine.parties,
        "threshold": engine.threshold,
        "party": engine.party,
        "key_id": "00" * 16,
        "length": length,
    }


def load_shares(path: Path, engine: Any) -> Persistence:
    """The shares of a file, refused if they are of another protocol, domain or party; empty if there is no file."""
    if not path.exists():
        return Persistence()
    data = _engine.ShareFile.read(str(path), _header(engine, 0))
    return Persistence.from_export(data, engine.share_parts, engine.element_bytes)


def save_shares(path: Path, persistence: Persistence, engine: Any) -> None:
    """Writes a share file, 0600 in a folder of 0700."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _engine.ShareFile.write(str(path), _header(engine, persistence.length), persistence.export())
