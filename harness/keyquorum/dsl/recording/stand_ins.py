"""Stand-ins of the share file and the io, for the program of a recorded run. They make each call, and give it to the run's :class:`~.recorder.Recorder`.
Calls and attributes without a step are forwarded, and end the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from .recorded import INT, Operand, RecordsNumbers, plain


class _StandIn:
    """Stands for an object of a recorded run. Unknown attributes are those of the object, and end the recording."""

    __slots__ = ("_real", "_recorder")

    def __init__(self, recorder: RecordsNumbers, real: Operand) -> None:
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


class RecordedShareVector(_StandIn):
    """The share file of a recorded run. Recorded are reads before the first store, and stores at the end of the file."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Operand:
        return getattr(self._real, name) if name in ("exists", "length", "element_words", "require_own") else self._unknown(name)

    def check(self, engine: Operand, start: int, count: int) -> None:
        """Records that the share file must fit the engine. Its length is the same in every repetition."""
        with self._recorder.aside():
            self._real.check(engine, start, count)
        self._recorder.checked = True

    def read(self, engine: Operand, start: int, count: int) -> Operand:
        """Raw shares."""
        with self._recorder.aside():
            data = self._real.read(engine, start, count)
        return self._taken(data, lambda: self._recorder.load(start, count))

    def pick(self, engine: Operand, start: int, indices: Operand) -> Operand:
        """Raw shares at the indices ``start + indices``."""
        with self._recorder.aside():
            data = self._real.pick(engine, start, plain(indices))
        return self._taken(data, partial(self._recorder.pick, start), indices)

    def _taken(self, data: bytes, step: Callable[..., int], *operands: Operand) -> Operand:
        if self._recorder.stored:
            self._recorder.fail("the program reads the share file after it has stored something")
        return self._recorder.numbers(data, step, *operands)


class RecordedIO(_StandIn):
    """Input and output of a recorded run."""

    __slots__ = ("shares",)

    def __init__(self, recorder: RecordsNumbers, real: Operand) -> None:
        super().__init__(recorder, real)
        self.shares = RecordedShareVector(recorder, real.shares)

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
        return self._recorder.numbers(self._real.take_public(count), lambda: self._recorder.take_public(count))

    def take_listed(self, count: int) -> Operand:
        """The next public words: recorded runs have no list of public input."""
        return self._recorder.numbers(self._real.take_listed(count), lambda: self._recorder.take_public(count))

    def take_private(self, engine: Operand, owner: int, count: int) -> Operand:
        """The next private words of a party; None at other parties."""
        words = self._real.take_private(engine, owner, count)
        return None if words is None else self._recorder.numbers(words, lambda: self._recorder.take_private(count))

    def output(self, words: Operand, player: int | None = None) -> None:
        """Public numbers to the output."""
        self._written(words, lambda position: self._recorder.output(position, player))  # first, since the io may change the words
        self._real.output(plain(words), player)

    def output_personal(self, words: Operand) -> None:
        """Appends numbers that were revealed to this party alone to the output."""
        self._written(words, self._recorder.output_personal)
        self._real.output_personal(plain(words))

    def _written(self, words: Operand, step: Callable[[int], None]) -> None:
        if words.dtype != INT or words.ndim != 1:
            self._recorder.fail("output of other numbers than vectors of int64")
        self._recorder.note(step, words)

    def store(self, engine: Operand, value: Operand, position: int) -> None:
        """Shares to the end of the share file."""
        if position >= 0:
            self._recorder.fail("shares are stored over others")
        with self._recorder.aside():
            self._real.store(engine, value, position)
        self._recorder.stored = True
        engine.record_store(value)

    def print(self, text: str) -> None:
        """Prints a text, which does not depend on the data. Texts of Python's functions and modules have addresses in memory, and end the
        recording."""
        if " at 0x" in text:
            self._recorder.fail("a text that has an address in memory")
        self._real.print(text)
        self._recorder.print(text)
