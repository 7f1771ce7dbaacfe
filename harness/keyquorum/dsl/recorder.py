"""Recordings of small programs that run repeatedly: the calls of one run are repeated without the program.

Design. A run is the list of its calls to the engine, to the share file and to the input and output, and of the operations on public numbers
between them. If Python's control flow does not depend on data, every run with the same arguments and inputs of the same sizes makes
the same calls, with other data. So one run is recorded:

* A :class:`Recorder` gives the program stand-ins of the engine, the share file and the io. They make each call and append a typed step
  to the engine's recorder (``mpc/src/recording`` in the sources), which refuses inconsistent steps.
* The result of a call is opaque to the program. Vectors of the engine are handles; public numbers are
  :class:`~.recorded.RecordedNumbers`, which record the operations of numpy.
* A call without a step, and any other use of numbers, ends the recording, but not the run: then later runs execute the program. The
  stand-ins forward no unknown call without this.
* Shares, inputs and randomness are those of each run. A recording has only steps and constants: clear vectors, and numbers of the program.

At the end of the run :mod:`.imports` determines whether the program depends on more than its arguments and inputs. The engine alone repeats a
:class:`.Recording`.
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
"""Most bytes of constants in a recording."""
MOST_ELEMENTS = 1 << 22
"""Most elements of all vectors of a recorded run, which stay in memory until its end. At most PENDING_LIMIT of the engine, the elements that may be
queued for a round: a repetition flushes only where the run did."""


class _NotRecordable(Exception):
    """An operand is neither a value of the recorded run nor a constant."""


class Recorder:
    """Records one run. ``engine`` and ``io``: stand-ins for the run. ``kept``: vectors of the engine that outlive the
    run. ``failure``: the reason why the run is not recorded. ``files``: set at the end of a run that can be repeated as long as these files stay."""

    def __init__(self, engine: Operand, io: Operand, kept: Iterable[Operand] = ()) -> None:
        self.failure: str | None = None
        self.files: Sequence[tuple[str, Operand]] | None = None
        self.stored = self.checked = False
        """Whether the run stored shares, and whether the share file has to fit the engine."""
        self._engine, self._kept = engine, kept
        self._steps = _engine.Recorder()
        self._positions: dict[int, int] = {}
        self._constants: dict[int, Operand] = {}
        self._held: list[Operand] = []
        self._calls = self._held_elements = self._constant_bytes = 0
        self.engine = RecordedEngine(self, engine)
        self.io = RecordedIO(self, io)

    def fail(self, why: str) -> None:
        """Ends the recording with a reason; the run continues."""
        if self.failure is None:
            self.failure = why
            self._steps = _engine.Recorder()
            for collection in (self._positions, self._constants, self._held):
                collection.clear()

    def close(self) -> None:
        """Removes the references to the run."""
        self.fail("the recording is over")
        del self.engine, self.io, self._engine

    def recording(self) -> Recording | None:
        """The recording of the run; None after :meth:`fail`."""
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
        return self._call(name, (value,), lambda result, position: RecordedNumbers(self, position, result))

    def clear_vector(self, name: str, *args: Operand) -> Operand:
        """A call to the engine that makes a clear vector. With constant arguments the result is a constant of the recording."""
        if any(isinstance(a, (RecordedNumbers, RecordedShares)) for a in args):
            return self.vector(name, *args)
        result = getattr(self._engine, name)(*args)
        if self.failure is None:
            try:
                self._count_constant(16 * result.size)
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
        return self._call("summand_bits", (value, bits), self._vectors, lambda steps, position, bits: steps.summand_bits(position, summands, bits))

    def _call(
        self, name: str, args: Sequence[object], made: Callable[[Operand, Operand], Operand], step: Callable[..., Operand] | None = None
    ) -> Operand:
        """Calls the engine, and records the call. ``made``: turns the result and its position into the stand-in for the program. ``step``: the step,
        if its name or operands differ from those of the call."""
        positions = self._operands(name, args)
        try:
            result = getattr(self._engine, name)(*plain(args))
        except BaseException:
            if not all(self._is_constant(a) for a in _flat(args)):  # a call on constants fails in every run, and needs no step
                self.fail(f"{name} failed")
            raise
        return self._record(result, positions, step or (lambda steps, *positions: getattr(steps, name)(*positions)), made)

    def numbers(self, result: Operand, step: Callable[..., int], *operands: Operand) -> Operand:
        """Records an operation on numbers, the step ``step(steps, *positions)``. ``result``: its result in this run."""
        positions = self._operands("an operation on numbers", operands, self._number)
        return self._record(result, positions, step, lambda result, position: RecordedNumbers(self, position, result))

    def note(self, step: Callable[..., Operand], *operands: Operand) -> None:
        """Records a step without a result, ``step(steps, *positions)``."""
        self._record(None, self._operands("a step", operands), step, lambda result, position: None)

    def made(self, result: Operand, step: Callable[..., int], *operands: Operand) -> Operand:
        """Records a step that reads numbers or raw shares from the run's input. ``result``: those of this run."""
        kind = RecordedShares if isinstance(result, bytes) else RecordedNumbers
        return self._record(result, self._operands("a step", operands), step, lambda result, position: kind(self, position, result))

    def _record(
        self, result: Operand, positions: list[Operand] | None, step: Callable[..., Operand], made: Callable[[Operand, Operand], Operand]
    ) -> Operand:
        """Records a step with operands at ``positions`` (None: the recording has ended). Returns ``made(result, position)``, the stand-in for the
        program, or the result itself if it is not recorded."""
        if positions is None:
            return result
        self._calls += 1
        if self._calls > MOST_CALLS:
            self.fail(f"more than {MOST_CALLS} calls")
            return result
        try:
            position = step(self._steps, *positions)
        except (_engine.EngineError, OverflowError, TypeError) as problem:  # the run itself is correct, and continues
            self.fail(f"a step was refused: {problem}")
            return result
        return made(result, position)

    # -- results ------------------------------------------------------------------------------------------------------

    def _vector(self, result: Operand, position: int) -> Operand:
        self._held.append(result)
        self._held_elements += result.size
        if self._held_elements > MOST_ELEMENTS:
            self.fail(f"more than {MOST_ELEMENTS} elements in all")
        else:
            self._positions[id(result)] = position
        return result

    def _vectors(self, result: Operand, positions: Operand) -> Operand:
        if len(result) != len(positions):
            self.fail("a call made more vectors than its step")
        for item, position in zip(result, positions, strict=False):
            if self.failure is None:
                (self._vectors if isinstance(item, list) else self._vector)(item, position)
        return result

    # -- operands -----------------------------------------------------------------------------------------------------

    def _operands(self, what: str, args: Sequence[Operand], operand: Callable[[Operand], Operand] | None = None) -> list[Operand] | None:
        """The operands of a step for the arguments of a call; None if the recording has ended. ``operand``: converts one argument."""
        if self.failure is not None:
            return None
        try:
            positions = [(operand or self._operand)(a) for a in args]
        except (_NotRecordable, _engine.EngineError, OverflowError) as problem:
            self.fail(f"{what} takes {problem}")
        return positions if self.failure is None else None

    def _operand(self, arg: Operand) -> Operand:
        """An operand of a call: the position of a vector, of a vector of numbers, or of shares; or a Python number or a circuit, which stays. A number of
        numpy is refused, since it could mean either."""
        if arg is None or arg.__class__ in (int, bool, str, _engine.BitCircuit):
            return arg
        if isinstance(arg, _engine.Value):
            return self._position(arg)
        if isinstance(arg, RecordedShares):
            return self._own(arg)
        if isinstance(arg, (RecordedNumbers, np.ndarray)) and arg.ndim == 1:
            return self._number(arg)
        if arg.__class__ is list:
            return [self._operand(item) for item in arg]
        if isinstance(arg, bytes):
            self._count_constant(len(arg))
            return self._steps.constant_shares(arg)
        raise _NotRecordable(f"a {type(arg).__name__}")

    def _number(self, arg: Operand) -> int:
        """An operand of an operation on numbers, as the position of a vector."""
        if isinstance(arg, RecordedNumbers):
            return self._own(arg)
        words = np.atleast_1d(np.array(arg, dtype=INT) if arg.__class__ in (int, bool) else arg)
        if not isinstance(arg, (int, np.ndarray, np.generic)) or words.ndim != 1 or words.dtype not in (INT, WORD, BYTE, BOOL):
            raise _NotRecordable(f"a {type(arg).__name__}")
        self._count_constant(8 * words.size)
        return self._steps.constant_numbers((words.view(INT) if words.dtype == WORD else words.astype(INT)).tolist())

    def _own(self, arg: RecordedNumbers | RecordedShares) -> int:
        if arg._recorder is not self:
            raise _NotRecordable("numbers of another run")
        return arg._position

    def _is_constant(self, arg: Operand) -> bool:
        if isinstance(arg, _engine.Value):
            return id(arg) in self._constants or any(arg is kept for kept in self._kept)
        return not isinstance(arg, (RecordedNumbers, RecordedShares))

    def _position(self, value: Operand) -> int:
        """The position of a vector. Constants are copied into the recording when a step first uses them."""
        position = self._positions.get(id(value))
        if position is None:
            if id(value) not in self._constants:
                if not any(value is kept for kept in self._kept):
                    raise _NotRecordable("a vector that came from elsewhere")
                self._count_constant(16 * value.size)
                self._constants[id(value)] = value
            position = self._positions[id(value)] = self._steps.constant_value(self._engine, value)
        return position

    def _count_constant(self, size: int) -> None:
        self._constant_bytes += size
        if self._constant_bytes > MOST_CONSTANTS:
            raise _NotRecordable(f"more than {MOST_CONSTANTS} bytes of constants")


def _flat(args: Iterable[object]) -> Iterable[object]:
    for arg in args:
        if arg.__class__ in (list, tuple):
            yield from _flat(arg)
        else:
            yield arg
