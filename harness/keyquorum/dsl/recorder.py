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

import numpy as np

from keyquorum import _engine

from .recorded import BOOL, BYTE, INT, WORD, Operand, RecordedNumbers, RecordedShares, plain
from .recording import Recording
from .stand_ins import RecordedEngine, RecordedIO

MOST_CALLS = 8192
"""Steps of the longest recording."""
MOST_CONSTANTS = 1 << 20
"""Bytes of constants that a recording keeps."""
MOST_HELD = 1 << 22
"""Elements of all vectors of a recorded run, which are held until its end. No more than may wait for a round (PENDING_LIMIT of the engine): what
is played sends nothing before it is asked to."""


class _NotRecordable(Exception):
    """An operand that is neither of the recorded run nor a constant."""


class Recorder:
    """Records one run. ``engine`` and ``io`` are what the run gets instead of the given ones; ``kept``: vectors of the engine that outlive the
    run. ``failure``: why there will be no recording. ``files``: set at the end of a run that another one with these files would repeat."""

    def __init__(self, engine: Operand, io: Operand, kept: Iterable[Operand] = ()) -> None:
        self.failure: str | None = None
        self.files: Sequence[tuple[str, Operand]] | None = None
        self.stored = self.checked = False
        """Whether the run stored shares, and whether the share file has to fit the engine."""
        self._engine, self._kept = engine, kept
        self._steps = _engine.Recorder()
        self._places: dict[int, int] = {}
        self._constants: dict[int, Operand] = {}
        self._held: list[Operand] = []
        self._calls = self._held_elements = self._constant_bytes = 0
        self.engine = RecordedEngine(self, engine)
        self.io = RecordedIO(self, io)

    def fail(self, why: str) -> None:
        """There will be no recording."""
        if self.failure is None:
            self.failure = why
            self._steps = _engine.Recorder()
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

    def vector(self, name: str, *args: Operand) -> Operand:
        """A call to the engine that makes a vector."""
        return self._call(name, args, self._vector)

    def words(self, name: str, value: Operand) -> Operand:
        """A call to the engine that reads a vector."""
        return self._call(name, (value,), lambda result, place: RecordedNumbers(self, place, result))

    def folded(self, name: str, *args: Operand) -> Operand:
        """A call to the engine that makes a clear vector: a constant, if it is made of constants."""
        if any(isinstance(a, (RecordedNumbers, RecordedShares)) for a in args):
            return self.vector(name, *args)
        result = getattr(self._engine, name)(*args)
        if self.failure is None:
            try:
                self._hold_constant(16 * result.size)
                self._constants[id(result)] = result
            except _NotRecordable as problem:
                self.fail(str(problem))
        return result

    def edabit(self, bits: int, count: int) -> Operand:
        """Random numbers with their bits."""
        return self._call("edabit", (bits, count), self._vectors)

    def summand_bits(self, value: Operand, bits: int) -> Operand:
        """Bits of summands."""
        summands = self._engine.summands
        return self._call("summand_bits", (value, bits), self._vectors, lambda steps, place, bits: steps.summand_bits(place, summands, bits))

    def _call(
        self, name: str, args: Sequence[object], made: Callable[[Operand, Operand], Operand], step: Callable[..., Operand] | None = None
    ) -> Operand:
        """Calls the engine, and records it. ``made``: what the program gets for the result and its place. ``step``: the step, if it does not have the
        name and the operands of the call."""
        places = self._operands(name, args)
        try:
            result = getattr(self._engine, name)(*plain(args))
        except BaseException:
            if not all(self._is_constant(a) for a in _flat(args)):  # with constants alone it always fails, and is no step
                self.fail(f"{name} failed")
            raise
        return self._record(result, places, step or (lambda steps, *places: getattr(steps, name)(*places)), made)

    def numbers(self, result: Operand, step: Callable[..., int], *operands: Operand) -> Operand:
        """The result of an operation on numbers, as the step ``step(steps, *places)`` makes it."""
        places = self._operands("an operation on numbers", operands, self._number)
        return self._record(result, places, step, lambda result, place: RecordedNumbers(self, place, result))

    def note(self, step: Callable[..., Operand], *operands: Operand) -> None:
        """Records a step without a result, ``step(steps, *places)``."""
        self._record(None, self._operands("a step", operands), step, lambda result, place: None)

    def made(self, result: Operand, step: Callable[..., int], *operands: Operand) -> Operand:
        """Numbers or raw shares that a step makes of the run's input."""
        kind = RecordedShares if isinstance(result, bytes) else RecordedNumbers
        return self._record(result, self._operands("a step", operands), step, lambda result, place: kind(self, place, result))

    def _record(
        self, result: Operand, places: list[Operand] | None, step: Callable[..., Operand], made: Callable[[Operand, Operand], Operand]
    ) -> Operand:
        """Records a step with these operands (None: there is no recording any more). What the program gets for its result: ``made(result, place)``,
        or the result itself where it is not recorded."""
        if places is None:
            return result
        self._calls += 1
        if self._calls > MOST_CALLS:
            self.fail(f"more than {MOST_CALLS} calls")
            return result
        try:
            place = step(self._steps, *places)
        except (_engine.EngineError, OverflowError, TypeError) as problem:  # the run is right, whatever we make of it
            self.fail(f"a step was refused: {problem}")
            return result
        return made(result, place)

    # -- results ------------------------------------------------------------------------------------------------------

    def _vector(self, result: Operand, place: int) -> Operand:
        self._held.append(result)
        self._held_elements += result.size
        if self._held_elements > MOST_HELD:
            self.fail(f"more than {MOST_HELD} elements in all")
        else:
            self._places[id(result)] = place
        return result

    def _vectors(self, result: Operand, places: Operand) -> Operand:
        if len(result) != len(places):
            self.fail("a call made more vectors than its step")
        for item, place in zip(result, places, strict=False):
            if self.failure is None:
                (self._vectors if isinstance(item, list) else self._vector)(item, place)
        return result

    # -- operands -----------------------------------------------------------------------------------------------------

    def _operands(self, what: str, args: Sequence[Operand], operand: Callable[[Operand], Operand] | None = None) -> list[Operand] | None:
        """What a step takes for the arguments of a call; None if there is no recording any more. ``operand``: says it for each."""
        if self.failure is not None:
            return None
        try:
            places = [(operand or self._operand)(a) for a in args]
        except (_NotRecordable, _engine.EngineError, OverflowError) as problem:
            self.fail(f"{what} takes {problem}")
        return places if self.failure is None else None

    def _operand(self, arg: Operand) -> Operand:
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
        if isinstance(arg, bytes):
            self._hold_constant(len(arg))
            return self._steps.constant_shares(arg)
        raise _NotRecordable(f"a {type(arg).__name__}")

    def _number(self, arg: Operand) -> int:
        """An operand of an operation on numbers, as the place of a vector."""
        if isinstance(arg, RecordedNumbers):
            return self._own(arg)
        words = np.atleast_1d(np.array(arg, dtype=INT) if arg.__class__ in (int, bool) else arg)
        if not isinstance(arg, (int, np.ndarray, np.generic)) or words.ndim != 1 or words.dtype not in (INT, WORD, BYTE, BOOL):
            raise _NotRecordable(f"a {type(arg).__name__}")
        self._hold_constant(8 * words.size)
        return self._steps.constant_numbers((words.view(INT) if words.dtype == WORD else words.astype(INT)).tolist())

    def _own(self, arg: RecordedNumbers | RecordedShares) -> int:
        if arg._recorder is not self:
            raise _NotRecordable("numbers of another run")
        return arg._place

    def _is_constant(self, arg: Operand) -> bool:
        if isinstance(arg, _engine.Value):
            return id(arg) in self._constants or any(arg is kept for kept in self._kept)
        return not isinstance(arg, (RecordedNumbers, RecordedShares))

    def _place(self, value: Operand) -> int:
        """The place of a vector. Constants are copied into the recording when a step first takes them."""
        place = self._places.get(id(value))
        if place is None:
            if id(value) not in self._constants:
                if not any(value is kept for kept in self._kept):
                    raise _NotRecordable("a vector that came from elsewhere")
                self._hold_constant(16 * value.size)
                self._constants[id(value)] = value
            place = self._places[id(value)] = self._steps.constant_value(self._engine, value)
        return place

    def _hold_constant(self, size: int) -> None:
        self._constant_bytes += size
        if self._constant_bytes > MOST_CONSTANTS:
            raise _NotRecordable(f"more than {MOST_CONSTANTS} bytes of constants")


def _flat(args: Iterable[object]) -> Iterable[object]:
    for arg in args:
        if arg.__class__ in (list, tuple):
            yield from _flat(arg)
        else:
            yield arg
