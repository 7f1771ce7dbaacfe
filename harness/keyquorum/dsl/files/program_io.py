"""Inputs and outputs of a program: words in memory, or files at the paths of MP-SPDZ."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ReferenceType

import numpy as np

from keyquorum._engine import Engine
from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import ProgramError
from keyquorum.model.protocols import PROTOCOLS

from ..context import Dynamic, Ints, Value
from ..errors import CompilerError
from .binding import binding_of
from .share_files import Identity, claim, identity, load_shares, release, save_shares, shares_path
from .share_vector import ShareVector

Number = int | Fraction
"""A number of an input: an integer, or one with digits after the point."""


def _no_words() -> Ints:
    return np.empty(0, dtype=np.int64)


def binary_path(folder: Path, party: int) -> Path:
    """Path of a party's binary input."""
    return folder / "Player-Data" / f"Input-Binary-P{party}-0"


def numbers_path(folder: Path, party: int) -> Path:
    """Path of a party's input as text."""
    return folder / "Player-Data" / f"Input-P{party}-0"


def listed_path(folder: Path, name: str) -> Path:
    """Path of the public input of a program with its arguments."""
    return folder / "Programs" / "Public-Input" / name


def read_binary(folder: Path, party: int) -> Ints:
    """A party's binary input, ``Player-Data/Input-Binary-P<i>-0``; empty if there is none."""
    path = binary_path(folder, party)
    if not path.exists():
        return _no_words()
    data = path.read_bytes()
    if len(data) % 8:
        raise ProgramError(f"{path}: {len(data)} bytes are no whole number of 64-bit words")
    return np.frombuffer(data, dtype="<i8").astype(np.int64)


def as_number(text: str) -> Number:
    """A decimal number of an input: an integer, or a fraction where there is a point or an exponent. Raises ValueError."""
    try:
        return int(text)
    except ValueError:
        return Fraction(text) if "/" not in text else int(text)


def read_numbers(folder: Path, party: int) -> list[Number]:
    """A party's input as text, ``Player-Data/Input-P<i>-0``; empty if there is none."""
    path = numbers_path(folder, party)
    try:
        return [as_number(text) for text in path.read_text().split()] if path.exists() else []
    except ValueError:
        raise ProgramError(f"{path}: input is decimal numbers, separated by white space") from None


def read_listed(folder: Path, name: str) -> Ints:
    """The public input of a program with its arguments, ``Programs/Public-Input/<name>``; empty if there is none."""
    path = listed_path(folder, name)
    try:
        return np.array([int(t) for t in path.read_text().split()], dtype=np.int64) if path.exists() else _no_words()
    except (ValueError, OverflowError):
        raise ProgramError(f"{path}: public input is 64-bit decimal numbers, separated by white space") from None


def shape_of(private: Ints, public: Sequence[Ints], shares: ShareVector) -> tuple[int, ...]:
    """Sizes of inputs and share file, in words, and whether the share file exists."""
    return (len(private), int(shares.exists), shares.length, shares.element_words, *map(len, public))


@dataclass
class ProgramIO:
    """Inputs and outputs of one party.

    private_inputs: int64 words that ``get_input_from(us)`` consumes. public_inputs: vectors of words that
    ``fixinput(-1, ...)`` consumes, one after another, the same at all parties. listed_inputs: numbers that ``pubinput``
    consumes (default: the public ones). shares: the share file. stdout: the function that prints (default: standard output at
    party 0, none elsewhere). other_inputs: private words of parties 1, 2, ... under the protocol ``emulate``, where one
    process stands for all. numbers: private decimal numbers by party, whose bits ``sbits.get_input_from`` takes (a process
    needs only its own). one_stream: ``fixinput`` reads from the private words, as it does from MP-SPDZ's files.

    Results: binary_outputs (public vectors), personal_outputs (vectors revealed to us alone), both centred int64, and
    file_outputs (both, in order).
    """

    private_inputs: Ints = field(default_factory=_no_words)
    public_inputs: list[Ints] = field(default_factory=list)
    shares: ShareVector = field(default_factory=ShareVector)
    stdout: Callable[[str], None] | None = None
    listed_inputs: Ints | None = None
    other_inputs: dict[int, Ints] = field(default_factory=dict)
    one_stream: bool = False
    numbers: dict[int, list[Number]] = field(default_factory=dict)
    binary_outputs: list[Ints] = field(default_factory=list)
    personal_outputs: list[Ints] = field(default_factory=list)
    file_outputs: list[Ints] = field(default_factory=list)
    writes_pending: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._places: dict[str, int] = {}
        self._place = 0, 0  # index of the vector and offset of the next public word
        self._party, self._everyone = 0, False
        self.unread: list[ReferenceType[Dynamic]] = []
        """Vectors from the share file that were not read yet."""
        self._folder: Path | None = None
        self._claimed: tuple[Path, int] | None = None
        self._loaded: Identity = None
        """The share file that this run has claimed, and the rounds of the engine before it did."""
        self._typed = False
        self._name = ""

    def __repr__(self) -> str:
        return f"ProgramIO(party {self._party})"

    @property
    def folder(self) -> Path | None:
        """The working folder, where inputs come from files."""
        return self._folder

    def shape(self) -> tuple[int, ...] | None:
        """Sizes of all inputs and of the share file, in words, and whether the share file exists. None if one process reads the inputs of several
        parties, or inputs come from files."""
        if self.one_stream or self.other_inputs or self.numbers or self.listed_inputs is not None:
            return None
        return shape_of(self.private_inputs, self.public_inputs, self.shares)

    def bind(self, engine: Engine) -> None:
        """Attaches to the engine of a run."""
        self._party, self._everyone = engine.party, PROTOCOLS[engine.protocol].emulated

    def _too_short(self, file: Path, form: str, has: int, wants: int, other: Path | None = None) -> CompilerError:
        """The error for an input file that is missing or has too few values."""
        found = f"{file} has {has} value{'s' * (has != 1)}" if file.exists() else f"no input file {file}"
        text = f"{found}, the program wants at least {wants}: {form}"
        if other is not None and other.exists():
            text += f"; {other} is not read here"
        return CompilerError(text)

    def _take(self, stream: str, words: Ints, count: int, what: str, party: int | None = None) -> Ints:
        at = self._places.get(stream, 0)
        if at + count > len(words):
            if party is not None and self._folder is not None:
                form = f"64-bit words of party {party} (raw int64, little-endian)"
                raise self._too_short(binary_path(self._folder, party), form, len(words), at + count, numbers_path(self._folder, party))
            if stream == "listed" and self._folder is not None:
                raise self._too_short(listed_path(self._folder, self._name), "decimal numbers, the same at all parties", len(words), at + count)
            raise CompilerError(f"{what} ends after {len(words)} words, the program asks for words {at} to {at + count - 1}")
        self._places[stream] = at + count
        return np.ascontiguousarray(words[at : at + count], dtype=np.int64)

    def take_private(self, engine: Engine, owner: int, count: int) -> Ints | None:
        """The next private words of ``owner``; None at other parties."""
        if owner < 0 or (owner >= engine.parties and not self._everyone):
            raise CompilerError(f"there is no party {owner} among {engine.parties}")
        if self._everyone and owner > 0:
            words = self.other_inputs.get(owner, _no_words())
            return self._take(f"private {owner}", words, count, f"the private input of party {owner}", owner)
        if owner != self._party:
            return None
        return self._take("private", self.private_inputs, count, f"the private input of party {owner}", owner)

    def take_number(self, engine: Any, owner: int) -> int | None:
        """The next private number of ``owner``, an integer; None at other parties."""
        number = self.take_decimal(engine, owner)
        if isinstance(number, Fraction):
            raise CompilerError(f"the input {float(number):g} of party {owner} is no integer: use sfix.get_input_from")
        return number

    def take_decimal(self, engine: Any, owner: int) -> Number | None:
        """The next private number of ``owner``; None at other parties."""
        if owner < 0 or (owner >= engine.parties and not self._everyone):
            raise CompilerError(f"there is no party {owner} among {engine.parties}")
        if owner != self._party and not self._everyone:
            return None
        at, numbers = self._places.get(f"numbers {owner}", 0), self.numbers.get(owner, [])
        if at == len(numbers):
            if self._typed:
                raise CompilerError(f"the numbers typed for party {owner} end after {at}, the program asks for more")
            if self._folder is not None:
                form, other = f"decimal numbers of party {owner}", binary_path(self._folder, owner)
                raise self._too_short(numbers_path(self._folder, owner), form, at, at + 1, other)
            raise CompilerError(f"the numbers of party {owner} (Player-Data/Input-P{owner}-0) end after {at}, the program asks for more")
        self._places[f"numbers {owner}"] = at + 1
        return numbers[at]

    def take_public(self, count: int) -> Ints:
        """The next public words."""
        if self.one_stream:
            words = self._take("private", self.private_inputs, count, f"the binary input of party {self._party}", self._party)
            if self._everyone:
                self._skip_public(words)
            return words
        part, at = self._place
        if part < len(self.public_inputs) and at + count <= len(self.public_inputs[part]):  # the common case: one vector has all words
            whole = self.public_inputs[part]
            self._place = (part, at + count) if at + count < len(whole) else (part + 1, 0)
            return np.ascontiguousarray(whole[at : at + count], dtype=np.int64)
        given = sum(len(p) for p in self.public_inputs)
        start = sum(len(p) for p in self.public_inputs[:part]) + at
        if start + count > given:
            raise CompilerError(f"the public input ends after {given} words, the program asks for words {start} to {start + count - 1}")
        pieces: list[Ints] = []
        while count:
            words = self.public_inputs[part][at : at + count]
            pieces.append(words)
            count -= len(words)
            part, at = (part + 1, 0) if at + len(words) == len(self.public_inputs[part]) else (part, at + len(words))
        self._place = part, at
        return np.concatenate([_no_words(), *pieces])

    def _skip_public(self, words: Ints) -> None:
        """Skips the same public words in the files of the other parties, for which this process stands. Raises CompilerError if they differ."""
        for party, stream in self.other_inputs.items():
            if party != self._party and len(stream):
                own = self._take(f"private {party}", stream, len(words), f"the binary input of party {party}", party)
                if not np.array_equal(own, words):
                    raise CompilerError(f"public words differ between the binary inputs of parties 0 and {party}")

    def take_listed(self, count: int) -> Ints:
        """The next numbers of the public input file."""
        if self.listed_inputs is None:
            return self.take_public(count)
        return self._take("listed", self.listed_inputs, count, "the public input file")

    def output(self, words: Ints, player: int | None = None) -> None:
        """Appends public words to the output (of ``player`` alone)."""
        if player is None or player == self._party or self._everyone:
            words = words if words.flags.writeable else words.copy()
            self.binary_outputs.append(words)
            self.file_outputs.append(words)

    def output_personal(self, words: Ints) -> None:
        """Appends words that were revealed to this party alone to the output."""
        self.personal_outputs.append(words)
        self.file_outputs.append(words)

    def store(self, engine: Engine, value: Value, position: int) -> None:
        """Writes shares to the share file."""
        if position >= 0:  # vectors that were read from the file before keep their values
            for reference in self.unread:
                vector = reference()
                _ = None if vector is None else vector.value
            self.unread.clear()
        self.shares.write(engine, engine.export(value), position)
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
    def from_folder(cls, folder: Path, engine: Engine, name: str) -> ProgramIO:
        """Inputs from MP-SPDZ's paths in ``folder``: ``Player-Data/Input-Binary-P<i>-0`` (raw int64), ``Player-Data/Input-P<i>-0``
        and ``Programs/Public-Input/<name>`` (decimal numbers). Shares come from ``Persistence/Shares-P<i>``; if another
        protocol or domain wrote them, programs that read or store shares are refused. ``name``: the program's name and arguments, joined with
        dashes."""

        loaded = identity(shares_path(folder, engine.party))
        made = cls(
            private_inputs=read_binary(folder, engine.party),
            listed_inputs=read_listed(folder, name),
            shares=load_shares(shares_path(folder, engine.party), engine, if_needed=True),
            other_inputs={p: read_binary(folder, p) for p in range(1, 64)} if PROTOCOLS[engine.protocol].emulated else {},
            one_stream=True,
            numbers={p: read_numbers(folder, p) for p in (range(64) if PROTOCOLS[engine.protocol].emulated else [engine.party])},
        )
        made._folder, made._name, made._loaded = folder, name, loaded
        made.shares.begin_run(engine)
        if binding_of(engine.protocol).marks_files:
            made.shares.claim = partial(made._claim, engine)
        return made

    def _claim(self, engine: Engine) -> None:
        assert self._folder is not None
        path = shares_path(self._folder, engine.party)
        if self._loaded is not None:
            claim(path, self._loaded)
            self._claimed = path, engine.stats()["rounds"]

    def take_typed(self, folder: Path, parties: Iterable[int], engine: Any) -> None:
        """Reads numbers as text from ``folder`` instead of the working folder: those of this party, or of all ``parties`` of a run in the clear."""
        self._typed = True
        self.numbers = {p: read_numbers(folder, p) for p in parties if self._is_ours(p, engine)}

    @staticmethod
    def _is_ours(party: int, engine: Any) -> bool:
        return bool(PROTOCOLS[engine.protocol].emulated or party == engine.party)

    def save(self, folder: Path, engine: Any) -> None:
        """Writes ``Player-Data/Binary-Output-P<i>-0`` (if there is output) and the share file (if there are shares; where products are verified, if the run changed
        them)."""
        if self.file_outputs:
            path = folder / "Player-Data" / f"Binary-Output-P{engine.party}-0"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, b"".join(w.astype("<i8").tobytes() for w in self.file_outputs))
        path = shares_path(folder, engine.party)
        # Where products are verified, this is a toss among all: nobody replaces its file before all have got here, past the last check.
        if self.shares.end_run(engine):
            save_shares(path, self.shares, engine)
            if self._loaded is None and binding_of(engine.protocol).marks_files:
                release(path)  # of a file that somebody took away

    @contextmanager
    def run(self, engine: Any) -> Iterator[None]:
        """A run of a program, to the time when everything is saved. Where products are verified, a share file that the run has read stays marked, and is refused later, if the run
        does not come to its end. Unless nothing was sent after it was read."""
        try:
            yield
        except BaseException:
            if self._claimed is not None and engine.stats()["rounds"] == self._claimed[1]:
                release(self._claimed[0])
            raise
        if self._claimed is not None:
            release(self._claimed[0])
