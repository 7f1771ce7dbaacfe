"""An operation on public numbers of a recorded run is repeated in every run, or ends the recording."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ShareVector
from keyquorum.dsl.recording.recorded import RecordedNumbers
from keyquorum.dsl.recording.recorder import Recorder

from .test_tape import words


def recorded(public: np.ndarray, *more: np.ndarray) -> tuple[Recorder, Any]:
    """A run that is being recorded, on an engine of its own, and its public numbers."""
    engine = _engine.local_sessions(1, 30.0)[0].engine("emulate", "Z2^64", "test")
    io = ProgramIO(public_inputs=[public, *more])
    io.bind(engine)
    recorder = Recorder(engine, io)
    recorder.files = ()
    return recorder, recorder.io.take_public(len(public))


def replayed(domain: str, operation: Callable[[_engine.Engine, Any], _engine.Value]) -> None:
    """Tests that the recording of an operation on public numbers gives with other numbers what the operation gives."""
    engine = _engine.local_sessions(1, 30.0)[0].engine("emulate", domain, "test")

    def result(x: Any) -> Any:
        made = operation(engine, x)
        return engine.read(engine.open(made) if made.kind == "s" else made).view(np.int64)

    io = ProgramIO(public_inputs=[np.arange(16, dtype=np.int64)])
    io.bind(engine)
    recorder = Recorder(engine, io)
    recorder.files = ()
    recorder.io.output(result(recorder.io.take_public(16)))
    recording = recorder.recording()
    assert recording is not None, recorder.failure
    recorder.close()
    for numbers in (np.arange(16, dtype=np.int64), np.random.default_rng(5).integers(-(1 << 40), 1 << 40, 16)):
        [(_, _, found)] = recording.play(engine, ShareVector(), words(), [numbers], print)
        assert np.array_equal(found, result(numbers))


def aside(recorder: Recorder) -> _engine.Value:
    """A vector that is not of the recorded run."""
    with recorder.aside():
        return recorder.engine.clear(words(1))


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "sums": lambda x: x + 3 + words(1, 2, 3),
    "differences": lambda x: 5 - x - np.int64(2),
    "negation": lambda x: -x,
    "products": lambda x: x * x * words(1 << 62, -1, 7),
    "quotients": lambda x: (x // -7) + (x // words(1, -2, 3)),
    "shifts": lambda x: (x << np.int64(61)) + (x >> 1),
    "shifts of unsigned words": lambda x: (x.view(np.uint64) >> np.uint64(3)).view(np.int64),
    "bits": lambda x: (x & 12) | (x ^ words(1, 2, 3)),
    "comparisons": lambda x: np.where((x < 5) & (x >= words(-9, 4, 4)), x, -x),
    "equality": lambda x: x + (x == 4) + ((x != 4) != (x > 0)),
    "a choice of numbers": lambda x: np.where(x <= 4, np.int64(7), x),
    "a type": lambda x: x.astype(np.uint64).astype(np.uint8).astype(np.int64) + (x > 1).astype(np.uint8).astype(np.uint64).astype(np.int64),
    "a part": lambda x: x[1:] + x[-1] + x[0],
    "joined": lambda x: np.concatenate([x, words(9), x[::2]]),
    "a copy": lambda x: x.copy().contiguous() if isinstance(x, RecordedNumbers) else x,
}


@pytest.mark.parametrize("what", OPERATIONS)
def test_operations_on_recorded_numbers_are_numpy_s(what: str) -> None:
    """Also at the ends of the range, in the recorded run and in those with other numbers."""
    runs_of = [words(1, 2, 3), words(-9, 4, 5), words(-(1 << 63), (1 << 63) - 1, 0), words(-7, 8, 1 << 40)]
    recorder, x = recorded(runs_of[0])
    result = OPERATIONS[what](x)
    assert isinstance(result, RecordedNumbers) and result.dtype == np.int64
    recorder.io.output(result)
    recording = recorder.recording()
    assert recording is not None, recorder.failure
    engine = recorder.engine
    for numbers in runs_of:
        [(player, personal, found)] = recording.play(engine, ShareVector(), words(), [numbers], print)
        with np.errstate(over="ignore"):
            assert (player, personal) == (None, False) and found.tolist() == OPERATIONS[what](numbers).tolist()


ENDS: dict[str, Callable[[Recorder, Any], Any]] = {
    "a list": lambda recorder, x: np.concatenate([x, [1, 2, 3]]),
    "a keyword": lambda recorder, x: np.add(x, x, dtype=np.int64),
    "an array to write to": lambda recorder, x: np.add(x, x, out=words(1, 2, 3)),
    "another function of numpy": lambda recorder, x: np.sqrt(x),
    "a reduction": lambda recorder, x: np.add.reduce(x),
    "a sum": lambda recorder, x: x.sum(),
    "fractions": lambda recorder, x: x + 1.5,
    "mixed words": lambda recorder, x: x.view(np.uint64) + x,
    "a comparison of unsigned words": lambda recorder, x: x.view(np.uint64) < np.uint64(5),
    "a division by numbers of the run": lambda recorder, x: 7 // x,
    "a shift by numbers of the run": lambda recorder, x: 7 << x,
    "a shift beyond the word": lambda recorder, x: x << 64,
    "a matrix": lambda recorder, x: x + np.ones((2, 3), dtype=np.int64),
    "places that numbers name": lambda recorder, x: x[x > 1],
    "a choice of places": lambda recorder, x: np.where(x > 1),
    "a type of bits": lambda recorder, x: x.view(np.uint8),
    "a number": lambda recorder, x: int(x[0]),
    "a branch": lambda recorder, x: bool(x[0] > 1),
    "iteration": lambda recorder, x: list(x),
    "a text": lambda recorder, x: str(x),
    "in place": lambda recorder, x: x.__setitem__(0, 1),
    "a number of numpy as a number of the engine": lambda recorder, x: recorder.engine.random(x[1]),
    "a method that is not known": lambda recorder, x: recorder.engine.read_wide(recorder.engine.clear(x)),
    "private words that were no input": lambda recorder, x: recorder.engine.input(0, 3, words(1, 2, 3)),
    "a vector from elsewhere": lambda recorder, x: recorder.engine.neg(aside(recorder)),
    "words of the share file": lambda recorder, x: recorder.io.shares.words,
    "another attribute of the io": lambda recorder, x: recorder.io.private_inputs,
    "output of unsigned words": lambda recorder, x: recorder.io.output(x.view(np.uint64)),
    "too many constants": lambda recorder, x: recorder.engine.gather(recorder.engine.clear(x), np.zeros(1 + _engine.MOST_CONSTANTS // 8, np.int64)),
    "too many constants of the engine": lambda recorder, x: recorder.engine.neg(
        recorder.engine.clear(np.zeros(1 + _engine.MOST_CONSTANTS // 16, np.int64))
    ),
    "an assignment to a constant": lambda recorder, x: recorder.engine.assign(
        recorder.engine.clear(words(1, 2)), 0, 1, recorder.engine.clear(words(3))
    ),
    "private bits that were no input": lambda recorder, x: recorder.engine.input_bits(0, 1, np.ones(1, np.uint8)),
    "shares of secrets": lambda recorder, x: recorder.engine.import_(b"\1" + bytes(7), 1),
    "a text with a place in memory": lambda recorder, x: recorder.io.print(f"{words}"),
    "shares over others": lambda recorder, x: recorder.io.store(recorder.engine, recorder.engine.random(1), 0),
}


@pytest.mark.parametrize("what", ENDS)
def test_what_has_no_step_ends_the_recording(what: str) -> None:
    recorder, x = recorded(words(1, 2, 3))
    assert recorder.failure is None
    ENDS[what](recorder, x)
    assert recorder.failure is not None and recorder.recording() is None


def test_what_fails_in_a_recorded_run_ends_the_recording() -> None:
    recorder, x = recorded(words(1, 2, 3))
    with pytest.raises(_engine.UsageError):
        recorder.engine.gather(recorder.engine.clear(x), words(3))
    assert recorder.failure == "Gather failed"
    recorder, x = recorded(words(1, 2, 3))
    with pytest.raises(_engine.UsageError):  # of constants alone: it fails in every run
        recorder.engine.gather(recorder.engine.clear(words(1)), words(3))
    assert recorder.failure is None


def test_recordings_repeat_inputs_of_bits() -> None:
    replayed("Z2^64", lambda run, x: run.bit_to_arith(run.input_bits(0, 16, (x & 1).astype(np.uint8))))


def test_recordings_repeat_words() -> None:
    replayed("Z2^64", lambda run, x: run.mul(run.clear_words(np.full(1, 1 << 63, dtype=np.uint64)), run.clear(x)))


def test_numbers_of_another_run_are_not_recorded() -> None:
    (recorder, x), (_, y) = recorded(words(1, 2, 3)), recorded(words(4, 5, 6))
    assert (x + y).tolist() == [5, 7, 9]
    assert recorder.failure is not None


def test_threads_record_at_once() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def steps(_: int) -> int:
        recorder, x = recorded(words(1, 2, 3))
        for i in range(1, 200):
            x = x + i
        made = recorder.recording()
        return 0 if made is None else len(made.steps)

    try:
        with ThreadPoolExecutor(3) as pool:
            assert set(pool.map(steps, range(60))) == {200}
    finally:
        sys.setswitchinterval(interval)
