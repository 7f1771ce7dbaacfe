"""What a program reads and writes: words in memory, or files where MP-SPDZ has them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum import _engine
from keyquorum.model.errors import ProgramError

from .context import Ints, Value
from .errors import CompilerError

Words = NDArray[np.uint64]


def _no_words() -> Ints:
    return np.empty(0, dtype=np.int64)


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


@dataclass
class ProgramIO:
    """Inputs and outputs of one party.

    private_inputs: int64 words that ``get_input_from(us)`` consumes. public_inputs: vectors of words that
    ``fixinput(-1, ...)`` consumes, one after another, the same at all parties. listed_inputs: numbers that ``pubinput``
    consumes (default: the public ones). persistence: the share file. stdout: what prints (default: standard output at
    party 0, nothing elsewhere). other_inputs: private words of parties 1, 2, ... on the protocol ``emulate``, where one
    process stands for all. one_stream: ``fixinput`` reads from the private words, as it does from MP-SPDZ's files.

    Results: binary_outputs (public vectors), personal_outputs (vectors revealed to us alone), both centred int64, and
    file_outputs (both, in order).
    """

    private_inputs: Ints = field(default_factory=_no_words)
    public_inputs: list[Ints] = field(default_factory=list)
    persistence: Persistence = field(default_factory=Persistence)
    stdout: Callable[[str], None] | None = None
    listed_inputs: Ints | None = None
    other_inputs: dict[int, Ints] = field(default_factory=dict)
    one_stream: bool = False
    binary_outputs: list[Ints] = field(default_factory=list)
    personal_outputs: list[Ints] = field(default_factory=list)
    file_outputs: list[Ints] = field(default_factory=list)
    writes_pending: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._places: dict[str, int] = {}
        self._public: Ints | None = None
        self._party, self._everyone = 0, False

    def __repr__(self) -> str:
        return f"ProgramIO(party {self._party})"

    def bind(self, engine: Any) -> None:
        """Attaches to the engine of a run."""
        self._party, self._everyone = engine.party, engine.protocol == "emulate"

    def _take(self, stream: str, words: Ints, count: int, what: str) -> Ints:
        at = self._places.get(stream, 0)
        if at + count > len(words):
            raise CompilerError(
                f"{what} ends after {len(words)} words, the program asks for words {at} to {at + count - 1}"
            )
        self._places[stream] = at + count
        return np.ascontiguousarray(words[at : at + count], dtype=np.int64)

    def take_private(self, engine: Any, owner: int, count: int) -> Ints | None:
        """The next private words of ``owner``; None at other parties."""
        if owner < 0 or (owner >= engine.parties and not self._everyone):
            raise CompilerError(f"there is no party {owner} among {engine.parties}")
        if self._everyone and owner > 0:
            words = self.other_inputs.get(owner, _no_words())
            return self._take(f"private {owner}", words, count, f"the private input of party {owner}")
        if owner != self._party:
            return None
        return self._take("private", self.private_inputs, count, f"the private input of party {owner}")

    def take_public(self, count: int) -> Ints:
        """The next public words."""
        if self.one_stream:
            return self._take("private", self.private_inputs, count, f"the binary input of party {self._party}")
        if self._public is None:
            self._public = np.concatenate([_no_words(), *self.public_inputs])
        return self._take("public", self._public, count, "the public input")

    def take_listed(self, count: int) -> Ints:
        """The next numbers of the public input file."""
        if self.listed_inputs is None:
            return self.take_public(count)
        return self._take("listed", self.listed_inputs, count, "the public input file")

    def output(self, words: Ints, player: int | None = None) -> None:
        """Takes public words to the output (of ``player`` alone)."""
        if player is None or player == self._party or self._everyone:
            self.binary_outputs.append(words)
            self.file_outputs.append(words)

    def output_personal(self, words: Ints) -> None:
        """Takes words revealed to us alone to the output."""
        self.personal_outputs.append(words)
        self.file_outputs.append(words)

    def store(self, engine: Any, value: Value, position: int) -> None:
        """Writes shares to the share file."""
        self.persistence.write(engine, engine.export(value), position)
        self.writes_pending = False

    def print(self, text: str) -> None:
        """Prints a text."""
        if self.stdout is not None:
            self.stdout(text)
        elif self._party == 0:
            sys.stdout.write(text)
            sys.stdout.flush()

    # -- files --------------------------------------------------------------------------------------------------------

    @classmethod
    def from_folder(cls, folder: Path, engine: Any, name: str) -> ProgramIO:
        """Inputs from MP-SPDZ's places in ``folder``: ``Player-Data/Input-Binary-P<i>-0`` (raw int64), ``Programs/
        Public-Input/<name>`` (decimal numbers). Shares from ``Persistence/Shares-P<i>``, which must be of this engine's
        protocol and domain. ``name``: the program's name and arguments, joined with dashes."""

        def binary(party: int) -> Ints:
            path = folder / "Player-Data" / f"Input-Binary-P{party}-0"
            if not path.exists():
                return _no_words()
            data = path.read_bytes()
            if len(data) % 8:
                raise ProgramError(f"{path}: {len(data)} bytes are no whole number of 64-bit words")
            return np.frombuffer(data, dtype="<i8").astype(np.int64)

        listed = folder / "Programs" / "Public-Input" / name
        try:
            numbers = (
                np.array([int(t) for t in listed.read_text().split()], dtype=np.int64)
                if listed.exists()
                else _no_words()
            )
        except (ValueError, OverflowError):
            raise ProgramError(f"{listed}: public input is 64-bit decimal numbers, separated by white space") from None
        return cls(
            private_inputs=binary(engine.party),
            listed_inputs=numbers,
            persistence=load_shares(shares_path(folder, engine.party), engine),
            other_inputs={p: binary(p) for p in range(1, 64)} if engine.protocol == "emulate" else {},
            one_stream=True,
        )

    def save(self, folder: Path, engine: Any) -> None:
        """Writes ``Player-Data/Binary-Output-P<i>-0`` (if there is output) and the share file (if there are shares)."""
        if self.file_outputs:
            path = folder / "Player-Data" / f"Binary-Output-P{engine.party}-0"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(w.astype("<i8").tobytes() for w in self.file_outputs))
        if self.persistence.exists:
            save_shares(shares_path(folder, engine.party), self.persistence, engine)


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
