"""Stand-ins of the engine, the share file and the io, for the program of a recorded run.

The run's :class:`~.recorder.Recorder` makes and records each call. Calls and attributes without a step are forwarded, and end the
recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .recorded import INT, Operand, Records, plain

_VECTORS = {
    "add", "sub", "mul", "neg", "dot", "matrix_product", "sum", "slice", "repeat", "concat", "gather", "assign", "scatter", "open", "open_low",
    "open_masked", "open_to", "xor", "and_", "not_", "clear_op", "clear_inv", "clear_legendre", "bit_to_arith", "shuffle", "random", "random_bit",
    "random_bits", "circuit", "lookup",
}  # fmt: skip
"""Calls to the engine that make one vector; the steps have the same names and operands."""
_PROPERTIES = {
    "protocol", "domain", "bits", "modulus", "party", "parties", "threshold", "has_binary", "has_edabits", "has_shuffle", "summands", "share_parts",
    "element_bytes", "insecure",
}  # fmt: skip
"""Properties that are the same in all runs on an engine."""
_COUNTERS = {"stats", "preprocessed"}
"""Calls without effect, whose results a program does not see."""


class _StandIn:
    """Stands for an object of a recorded run. Unknown attributes are those of the object, and end the recording."""

    __slots__ = ("_real", "_recorder")

    def __init__(self, recorder: Records, real: Operand) -> None:
        self._recorder, self._real = recorder, real

    def _unknown(self, name: str) -> Operand:
        self._recorder.fail(f"{type(self._real).__name__}.{name} cannot be recorded")
        value = getattr(self._real, name)
        if not callable(value):
            return value
        return lambda *args, **kwargs: value(*_real(args), **{key: _real([item])[0] for key, item in kwargs.items()})


def _real(args: Iterable[Operand]) -> list[Operand]:
    """Arguments with stand-ins replaced by their objects."""
    return [a._real if isinstance(a, _StandIn) else plain(a) for a in args]


class RecordedEngine(_StandIn):
    """The engine of a recorded run."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Operand:
        if name in _VECTORS:
            recorder = self._recorder
            return lambda *args: recorder.vector(name, *args)
        if name in _PROPERTIES or name in _COUNTERS:
            return getattr(self._real, name)
        return self._unknown(name)

    def clear(self, v: Operand) -> Operand:
        """A clear vector."""
        return self._recorder.clear_vector("clear", v)

    def clear_wide(self, v: bytes) -> Operand:
        """A clear vector of longer integers: a constant."""
        return self._recorder.clear_vector("clear_wide", v)

    def clear_bits(self, bits: Operand) -> Operand:
        """Clear bits."""
        return self._recorder.clear_vector("clear_bits", bits)

    def inc(self, *args: int) -> Operand:
        """A clear progression: a constant."""
        return self._recorder.clear_vector("inc", *args)

    def read(self, v: Operand) -> Operand:
        """Reads a vector."""
        return self._recorder.words("read", v)

    def read_bits(self, v: Operand) -> Operand:
        """Reads clear bits."""
        return self._recorder.words("read_bits", v)

    def edabit(self, m: int, n: int) -> Operand:
        """Random numbers with their bits."""
        return self._recorder.edabit(m, n)

    def summand_bits(self, s: Operand, m: int) -> Operand:
        """Bits of summands."""
        return self._recorder.summand_bits(s, m)

    def dabit(self, n: int) -> Operand:
        """Random bits in both domains."""
        bits = self.random_bits(n)
        return self.bit_to_arith(bits), bits

    def import_(self, data: Operand, n: int) -> Operand:
        """Shares of the share file, or of zeros."""
        return self._recorder.vector("import_", data, n)

    def input(self, player: int, n: int, data: Operand = None) -> Operand:
        """Private words of a party. Words of this party must be inputs of the run: other words, such as randomness, end the recording."""
        if isinstance(data, np.ndarray):
            self._recorder.fail("private words that were no input")
        return self._recorder.vector("input", player, n, data)

    def flush(self) -> None:
        """Communicates."""
        self._real.flush()
        self._recorder.note(lambda steps: steps.flush())


class RecordedPersistence(_StandIn):
    """The share file of a recorded run. Recorded are reads before the first store, and stores at the end of the file."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Operand:
        return getattr(self._real, name) if name in ("exists", "length", "element_words", "require_own") else self._unknown(name)

    def check(self, engine: Operand, start: int, count: int) -> None:
        """Records that the share file must fit the engine. Its length is the same in every repetition."""
        self._real.check(engine._real, start, count)
        self._recorder.checked = True

    def read(self, engine: Operand, start: int, count: int) -> Operand:
        """Raw shares."""
        return self._taken(self._real.read(engine._real, start, count), lambda steps: steps.load(start, count))

    def pick(self, engine: Operand, start: int, indices: Operand) -> Operand:
        """Raw shares at the indices ``start + indices``."""
        return self._taken(self._real.pick(engine._real, start, plain(indices)), lambda steps, at: steps.pick(start, at), indices)

    def _taken(self, data: bytes, step: Callable[..., int], *operands: Operand) -> Operand:
        if self._recorder.stored:
            self._recorder.fail("the program reads the share file after it has stored something")
        return self._recorder.made(data, step, *operands)


class RecordedIO(_StandIn):
    """Input and output of a recorded run."""

    __slots__ = ("persistence",)

    def __init__(self, recorder: Records, real: Operand) -> None:
        super().__init__(recorder, real)
        self.persistence = RecordedPersistence(recorder, real.persistence)

    def __getattr__(self, name: str) -> Operand:
        return self._real.unread if name == "unread" else self._unknown(name)

    @property
    def writes_pending(self) -> bool:
        """See :class:`.ProgramIO`."""
        return bool(self._real.writes_pending)

    @writes_pending.setter
    def writes_pending(self, pending: bool) -> None:
        self._real.writes_pending = pending

    def take_public(self, count: int) -> Operand:
        """The next public words."""
        return self._recorder.made(self._real.take_public(count), lambda steps: steps.take_public(count))

    def take_listed(self, count: int) -> Operand:
        """The next public words: recorded runs have no list of public input."""
        return self._recorder.made(self._real.take_listed(count), lambda steps: steps.take_public(count))

    def take_private(self, engine: Operand, owner: int, count: int) -> Operand:
        """The next private words of a party; None at other parties."""
        words = self._real.take_private(engine._real, owner, count)
        return None if words is None else self._recorder.made(words, lambda steps: steps.take_private(count))

    def output(self, words: Operand, player: int | None = None) -> None:
        """Public numbers to the output."""
        self._written(words, lambda steps, position: steps.output(position, player))  # first, since the io may change the words
        self._real.output(plain(words), player)

    def output_personal(self, words: Operand) -> None:
        """Appends numbers that were revealed to this party alone to the output."""
        self._written(words, lambda steps, position: steps.output_personal(position))
        self._real.output_personal(plain(words))

    def _written(self, words: Operand, step: Callable[..., Operand]) -> None:
        if words.dtype == INT and words.ndim == 1:
            self._recorder.note(step, words)
        else:
            self._recorder.fail("output of other numbers than vectors of int64")

    def store(self, engine: Operand, value: Operand, position: int) -> None:
        """Shares to the end of the share file."""
        if position >= 0:
            self._recorder.fail("shares are stored over others")
        self._real.store(engine._real, value, position)
        self._recorder.stored = True
        self._recorder.note(lambda steps, position: steps.store(position), value)

    def print(self, text: str) -> None:
        """Prints a text, which does not depend on the data. Texts of Python's functions and modules have addresses in memory, and end the
        recording."""
        if " at 0x" in text:
            self._recorder.fail("a text that has an address in memory")
        self._real.print(text)
        self._recorder.note(lambda steps: steps.print(text))
