"""Recordings of small programs that run again and again: what one run asked for, asked for again without the program.

Design. A run is the list of its calls to the engine, to the share file and to the input and output, and of the operations on public numbers
between them. As long as nothing that the data decides steers Python, another run with the same arguments and inputs of the same sizes makes
the same calls, with other data. So one run is recorded:

* A :class:`Recorder` gives the program stand-ins of the engine, the share file and the io. At each call they do the call and append a typed step
  to the engine's recorder (``mpc/src/recording`` in the sources), which refuses steps that do not fit together.
* What a call returns is opaque to the program. Vectors of the engine are handles anyway; public numbers are
  :class:`~.recorded.RecordedNumbers`, which record what numpy does with them.
* Whatever has no step, and whatever looks at numbers by other means, ends the recording, not the run: the program is run every time then. The
  stand-ins let nothing pass that they do not know.
* Shares, inputs and randomness are those of each run. A recording holds its steps and constants: clear vectors, and numbers of the program.

Whether a program depends on anything but its arguments and inputs, :mod:`.imports` says at the end of the run. A :class:`.Recording` is
played by the engine alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from keyquorum import _engine

from .recorded import BOOL, BYTE, INT, WORD, RecordedNumbers, RecordedShares, plain
from .recording import Recording

MOST_CALLS = 8192
"""Steps of the longest recording."""
MOST_CONSTANTS = 1 << 20
"""Bytes of constants that a recording keeps."""
MOST_HELD = 1 << 22
"""Elements of all vectors of a recorded run, which are held until its end. No more than may wait for a round (PENDING_LIMIT of the engine): what
is played sends nothing before it is asked to."""

_VECTORS = {
    "add", "sub", "mul", "neg", "dot", "matrix_product", "sum", "slice", "repeat", "concat", "gather", "assign", "scatter", "open", "open_low",
    "open_to", "xor", "and_", "not_", "clear_op", "clear_inv", "bit_to_arith", "shuffle", "random", "random_bit", "random_bits",
}  # fmt: skip
"""Calls to the engine that make one vector; the steps have the same names and operands."""
_PROPERTIES = {
    "protocol", "domain", "bits", "modulus", "party", "parties", "threshold", "has_binary", "has_edabits", "has_shuffle", "summands", "share_parts",
    "element_bytes", "insecure",
}  # fmt: skip
"""What is the same in all runs on an engine."""
_COUNTERS = {"stats", "material"}
"""Calls that change nothing, and of which a program sees nothing."""

Steps = Any
"""The engine's recorder."""


class _NotRecordable(Exception):
    """An operand that is neither of the recorded run nor a constant."""


class Recorder:
    """Records one run. ``engine`` and ``io`` are what the run gets instead of the given ones; ``kept``: vectors of the engine that outlive the
    run. ``failure``: why there will be no recording. ``files``: set at the end of a run that another one with these files would repeat."""

    def __init__(self, engine: Any, io: Any, kept: Iterable[Any] = ()) -> None:
        self.failure: str | None = None
        self.files: Sequence[tuple[str, Any]] | None = None
        self.stored = self.checked = False
        """Whether the run stored shares, and whether the share file has to fit the engine."""
        self._engine, self._kept = engine, kept
        self._steps: Steps = _engine.Recorder()
        self._places: dict[int, int] = {}
        self._constants: dict[int, Any] = {}
        self._held: list[Any] = []
        self._calls = self._held_elements = self._constant_bytes = 0
        self.engine = RecordedEngine(self, engine)
        self.io = RecordedIO(self, io)

    def fail(self, why: str) -> None:
        """There will be no recording."""
        if self.failure is None:
            self.failure = why
            self._steps = None
            for collection in (self._places, self._constants, self._held):
                collection.clear()

    def close(self) -> None:
        """Forgets the run."""
        self.fail("the recording is over")
        del self.engine, self.io, self._engine

    def recording(self) -> Recording | None:
        """What was recorded."""
        if self.files is None:
            self.fail("the program keeps something, or looks at something that is not its input")
        if self.failure is not None or self.files is None:
            return None
        steps = self._steps.finish()
        return Recording(steps, steps.uses_shares or self.checked, steps.prints, self.files)

    # -- calls --------------------------------------------------------------------------------------------------------

    def vector(self, name: str, *args: Any) -> Any:
        """A call to the engine that makes a vector."""
        return self._call(name, args, lambda result, step, places: self._vector(result, step(*places)))

    def words(self, name: str, value: Any) -> Any:
        """A call to the engine that reads a vector."""
        return self._call(name, (value,), lambda result, step, places: RecordedNumbers(self, step(*places), result))

    def folded(self, name: str, *args: Any) -> Any:
        """A call to the engine that makes a clear vector: a constant, if it is made of constants."""
        if any(isinstance(a, (RecordedNumbers, RecordedShares)) for a in args):
            return self.vector(name, *args)
        result = getattr(self._engine, name)(*args)
        if self.failure is None and self._hold_constant(16 * result.size):
            self._constants[id(result)] = result
        return result

    def edabit(self, bits: int, count: int) -> Any:
        """Random numbers with their bits."""
        return self._call("edabit", (bits, count), lambda result, step, places: self._vectors(result, step(*places)))

    def summand_bits(self, value: Any, bits: int) -> Any:
        """Bits of summands; how many there are, the call tells."""
        return self._call("summand_bits", (value, bits), lambda result, step, places: self._vectors(result, step(places[0], len(result), bits)))

    def _call(self, name: str, args: Sequence[Any], made: Callable[[Any, Callable[..., Any], list[Any]], Any]) -> Any:
        """Calls the engine, and records it. ``made``: what the program gets for the result, given the step's method and operands."""
        places = self._operands(name, args)
        try:
            result = getattr(self._engine, name)(*plain(args))
        except BaseException:
            if not all(self._is_constant(a) for a in _flat(args)):  # with constants alone it always fails, and is no step
                self.fail(f"{name} failed")
            raise
        if places is None or not self._counts():
            return result
        return made(result, getattr(self._steps, name), places)

    def numbers(self, result: Any, step: Callable[..., int], *operands: Any) -> Any:
        """The result of an operation on numbers, as the step ``step(steps, *places)`` makes it."""
        places = self._operands("an operation on numbers", operands, self._number)
        if places is None or not self._counts():
            return result
        return RecordedNumbers(self, step(self._steps, *places), result)

    def note(self, step: Callable[..., Any], *operands: Any) -> None:
        """Records a step without a result, ``step(steps, *places)``."""
        places = self._operands("a step", operands)
        if places is not None and self._counts():
            step(self._steps, *places)

    def made(self, result: Any, step: Callable[..., int], *operands: Any) -> Any:
        """Numbers or raw shares that a step makes of the run's input."""
        places = self._operands("a step", operands)
        if places is None or not self._counts():
            return result
        kind = RecordedShares if isinstance(result, bytes) else RecordedNumbers
        return kind(self, step(self._steps, *places), result)

    def _counts(self) -> bool:
        self._calls += 1
        if self._calls > MOST_CALLS:
            self.fail(f"more than {MOST_CALLS} calls")
        return self.failure is None

    # -- results ------------------------------------------------------------------------------------------------------

    def _vector(self, result: Any, place: int) -> Any:
        self._held.append(result)
        self._held_elements += result.size
        if self._held_elements > MOST_HELD:
            self.fail(f"more than {MOST_HELD} elements in all")
        else:
            self._places[id(result)] = place
        return result

    def _vectors(self, result: Any, places: Any) -> Any:
        for item, place in zip(result, places, strict=True):
            if self.failure is None:
                (self._vectors if isinstance(item, list) else self._vector)(item, place)
        return result

    # -- operands -----------------------------------------------------------------------------------------------------

    def _operands(self, what: str, args: Sequence[Any], operand: Callable[[Any], Any] | None = None) -> list[Any] | None:
        """What a step takes for the arguments of a call; None if there is no recording any more. ``operand``: says it for each."""
        if self.failure is not None:
            return None
        try:
            places = [(operand or self._operand)(a) for a in args]
        except (_NotRecordable, OverflowError) as problem:
            self.fail(f"{what} takes {problem}")
        return places if self.failure is None else None

    def _operand(self, arg: Any) -> Any:
        """An operand of a call: the place of a vector, of a vector of numbers, or of shares; or one of Python's numbers, which stays. A number of
        numpy is neither: it would go as the one or the other."""
        if arg is None or arg.__class__ in (int, bool, str):
            return arg
        if isinstance(arg, _engine.Value):
            return self._place(arg)
        if isinstance(arg, RecordedShares):
            return self._own(arg)
        if isinstance(arg, (RecordedNumbers, np.ndarray)) and arg.ndim == 1:
            return self._number(arg)
        if arg.__class__ is list:
            return [self._operand(item) for item in arg]
        if isinstance(arg, bytes) and not any(arg):
            self._hold_constant(len(arg))
            return self._steps.constant_shares(arg)
        raise _NotRecordable(f"a {type(arg).__name__}")

    def _number(self, arg: Any) -> int:
        """An operand of an operation on numbers, as the place of a vector."""
        if isinstance(arg, RecordedNumbers):
            return self._own(arg)
        words = np.atleast_1d(np.array(arg, dtype=INT) if arg.__class__ in (int, bool) else arg)
        if not isinstance(arg, (int, np.ndarray, np.generic)) or words.ndim != 1 or words.dtype not in (INT, WORD, BYTE, BOOL):
            raise _NotRecordable(f"a {type(arg).__name__}")
        self._hold_constant(words.nbytes)
        place: int = self._steps.constant_numbers((words.view(INT) if words.dtype == WORD else words.astype(INT)).tolist())
        return place

    def _own(self, arg: RecordedNumbers | RecordedShares) -> int:
        if arg._recorder is not self:
            raise _NotRecordable("numbers of another run")
        return arg._place

    def _is_constant(self, arg: Any) -> bool:
        if isinstance(arg, _engine.Value):
            return id(arg) in self._constants or any(arg is kept for kept in self._kept)
        return not isinstance(arg, (RecordedNumbers, RecordedShares))

    def _place(self, value: Any) -> int:
        """The place of a vector. Constants are copied into the recording when a step first takes them."""
        place = self._places.get(id(value))
        if place is None:
            if id(value) not in self._constants:
                if not any(value is kept for kept in self._kept) or not self._hold_constant(16 * value.size):
                    raise _NotRecordable("a vector that came from elsewhere")
                self._constants[id(value)] = value
            place = self._places[id(value)] = self._steps.constant_value(self._engine, value)
        return place

    def _hold_constant(self, size: int) -> bool:
        self._constant_bytes += size
        if self._constant_bytes > MOST_CONSTANTS:
            self.fail(f"more than {MOST_CONSTANTS} bytes of constants")
        return self.failure is None


def _flat(args: Iterable[Any]) -> Iterable[Any]:
    for arg in args:
        if arg.__class__ in (list, tuple):
            yield from _flat(arg)
        else:
            yield arg


class _StandIn:
    """Stands for an object of a recorded run. What it does not know goes to the object, and ends the recording."""

    __slots__ = ("_real", "_recorder")

    def __init__(self, recorder: Recorder, real: Any) -> None:
        self._recorder, self._real = recorder, real

    def _unknown(self, name: str) -> Any:
        self._recorder.fail(f"{type(self._real).__name__}.{name} cannot be recorded")
        value = getattr(self._real, name)
        if not callable(value):
            return value
        return lambda *args, **kwargs: value(*_real(args), **{key: _real([item])[0] for key, item in kwargs.items()})


def _real(args: Iterable[Any]) -> list[Any]:
    """Arguments with the objects that stand-ins stand for."""
    return [a._real if isinstance(a, _StandIn) else plain(a) for a in args]


class RecordedEngine(_StandIn):
    """The engine of a recorded run."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in _VECTORS:
            recorder = self._recorder
            return lambda *args: recorder.vector(name, *args)
        if name in _PROPERTIES or name in _COUNTERS:
            return getattr(self._real, name)
        return self._unknown(name)

    def clear(self, v: Any) -> Any:
        """A clear vector."""
        return self._recorder.folded("clear", v)

    def clear_wide(self, v: bytes) -> Any:
        """A clear vector of longer integers: a constant."""
        return self._recorder.folded("clear_wide", v)

    def clear_bits(self, bits: Any) -> Any:
        """Clear bits."""
        return self._recorder.folded("clear_bits", bits)

    def inc(self, *args: int) -> Any:
        """A clear progression: a constant."""
        return self._recorder.folded("inc", *args)

    def read(self, v: Any) -> Any:
        """Reads a vector."""
        return self._recorder.words("read", v)

    def read_bits(self, v: Any) -> Any:
        """Reads clear bits."""
        return self._recorder.words("read_bits", v)

    def edabit(self, m: int, n: int) -> Any:
        """Random numbers with their bits."""
        return self._recorder.edabit(m, n)

    def summand_bits(self, s: Any, m: int) -> Any:
        """Bits of summands."""
        return self._recorder.summand_bits(s, m)

    def dabit(self, n: int) -> Any:
        """Random bits in both domains."""
        bits = self.random_bits(n)
        return self.bit_to_arith(bits), bits

    def import_(self, data: Any, n: int) -> Any:
        """Shares of the share file, or of zeros."""
        return self._recorder.vector("import_", data, n)

    def input(self, player: int, n: int, data: Any = None) -> Any:
        """Private words of a party; ours are input of the run, not randomness that the front end drew."""
        if isinstance(data, np.ndarray):
            self._recorder.fail("private words that were no input")
        return self._recorder.vector("input", player, n, data)

    def flush(self) -> None:
        """Communicates."""
        self._real.flush()
        self._recorder.note(lambda steps: steps.flush())


class RecordedPersistence(_StandIn):
    """The share file of a recorded run. It may be read before something is stored, and stored to at its end."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name) if name in ("exists", "length", "element_words", "require_own") else self._unknown(name)

    def check(self, engine: Any, start: int, count: int) -> None:
        """Only the form of a share file can be another in another run: its length is the same."""
        self._real.check(engine._real, start, count)
        self._recorder.checked = True

    def read(self, engine: Any, start: int, count: int) -> Any:
        """Raw shares."""
        return self._taken(self._real.read(engine._real, start, count), lambda steps: steps.load(start, count))

    def pick(self, engine: Any, start: int, indices: Any) -> Any:
        """Raw shares at some places."""
        return self._taken(self._real.pick(engine._real, start, plain(indices)), lambda steps, at: steps.pick(start, at), indices)

    def _taken(self, data: bytes, step: Callable[..., int], *operands: Any) -> Any:
        if self._recorder.stored:
            self._recorder.fail("the program reads the share file after it has stored something")
        return self._recorder.made(data, step, *operands)


class RecordedIO(_StandIn):
    """Input and output of a recorded run."""

    __slots__ = ("persistence",)

    def __init__(self, recorder: Recorder, real: Any) -> None:
        super().__init__(recorder, real)
        self.persistence = RecordedPersistence(recorder, real.persistence)

    def __getattr__(self, name: str) -> Any:
        return self._real.unread if name == "unread" else self._unknown(name)

    @property
    def writes_pending(self) -> bool:
        """As of the io."""
        return bool(self._real.writes_pending)

    @writes_pending.setter
    def writes_pending(self, pending: bool) -> None:
        self._real.writes_pending = pending

    def take_public(self, count: int) -> Any:
        """The next public words."""
        return self._recorder.made(self._real.take_public(count), lambda steps: steps.take_public(count))

    def take_listed(self, count: int) -> Any:
        """The next public words: recorded runs have no others."""
        return self._recorder.made(self._real.take_listed(count), lambda steps: steps.take_public(count))

    def take_private(self, engine: Any, owner: int, count: int) -> Any:
        """The next private words of a party, if they are ours."""
        words = self._real.take_private(engine._real, owner, count)
        return None if words is None else self._recorder.made(words, lambda steps: steps.take_private(count))

    def output(self, words: Any, player: int | None = None) -> None:
        """Public numbers to the output."""
        self._written(words, lambda steps, place: steps.output(place, player))  # before the words are the caller's
        self._real.output(plain(words), player)

    def output_personal(self, words: Any) -> None:
        """Numbers revealed to us alone, to the output."""
        self._written(words, lambda steps, place: steps.output_personal(place))
        self._real.output_personal(plain(words))

    def _written(self, words: Any, step: Callable[..., Any]) -> None:
        if words.dtype == INT and words.ndim == 1:
            self._recorder.note(step, words)
        else:
            self._recorder.fail("output of other numbers than vectors of int64")

    def store(self, engine: Any, value: Any, position: int) -> None:
        """Shares to the end of the share file."""
        if position >= 0:
            self._recorder.fail("shares are stored over others")
        self._real.store(engine._real, value, position)
        self._recorder.stored = True
        self._recorder.note(lambda steps, place: steps.store(place), value)

    def print(self, text: str) -> None:
        """Prints a text, which does not depend on the data."""
        self._real.print(text)
        self._recorder.note(lambda steps: steps.print(text))
