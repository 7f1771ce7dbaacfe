"""Feeds mutations of valid inputs to a parser and checks the results."""

from __future__ import annotations

import hashlib
import resource
import signal
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from keyquorum._engine import EngineError
from keyquorum.model.errors import KeyQuorumError

from .mutate import Mutator

FOLDER = Path(__file__).resolve().parents[2] / "build" / "fuzz"
"""Where inputs are saved that fail."""
MEMORY_CAP = 64 << 20
"""Most bytes by which the process may grow, all inputs together."""
SECONDS_CAP = 2.0
"""Most processor time of one input: no valid one takes a hundredth."""
LONGEST_ERROR = 4000
TYPED = (KeyQuorumError, EngineError)
FILE_ERRORS = (*TYPED, OSError)
"""Errors of code that opens files that an input names: the command line prints both in one line."""
STRIDE = 128
"""Inputs between two looks at the clock and at the memory of the process."""
HANG = 20.0
"""Seconds of processor time after which an input is given up."""


@dataclass(frozen=True)
class Target:
    """A parser. ``parse`` raises one of ``errors`` for what it refuses, and nothing else; ``corpus`` makes the valid inputs (they may take
    a while); ``text``, ``mend``: see :class:`Mutator`."""

    name: str
    parse: Callable[[bytes], object]
    corpus: Callable[[], Sequence[bytes]]
    text: bool = False
    mend: Callable[[bytes], bytes] | None = None
    errors: tuple[type[BaseException], ...] = TYPED


@dataclass(frozen=True)
class Report:
    """The result of a run. ``crash``: the error and the path of the input, if there was one."""

    name: str
    seed: str
    inputs: int
    accepted: int
    seconds: float
    crash: str = ""

    def line(self) -> str:
        """One line, as the Rust targets print it."""
        return (
            f"fuzz: target={self.name} seed={self.seed} inputs={self.inputs} accepted={self.accepted} refused={self.inputs - self.accepted} "
            f"rate={self.inputs / max(self.seconds, 1e-9):.0f}/s cap={MEMORY_CAP} crashes={int(bool(self.crash))}"
        )


class Failed(Exception):
    """A parser failed at an input."""


class _Hang(BaseException):
    """An input took far too long."""


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _check_error(error: BaseException) -> None:
    text = str(error)
    if not text or len(text) > LONGEST_ERROR or not text.isprintable():
        raise Failed(f"the error is not one line of 1 to {LONGEST_ERROR} printable characters: {text[:200]!r}")


def try_input(target: Target, data: bytes) -> bool:
    """Whether an input is accepted. Raises :class:`Failed` if the parser failed at it."""
    start = time.perf_counter()
    accepted = _parse(target, data)
    if time.perf_counter() - start > SECONDS_CAP:  # the machine may have been busy with something else
        start = time.process_time()
        _parse(target, data)
        took = time.process_time() - start
        if took > SECONDS_CAP:
            raise Failed(f"took {took:.1f} s, at most {SECONDS_CAP:g} are allowed")
    return accepted


def _parse(target: Target, data: bytes) -> bool:
    try:
        try:
            target.parse(data)
            return True
        except target.errors as error:
            _check_error(error)
            return False
    except (Failed, _Hang, KeyboardInterrupt):
        raise
    except BaseException as error:  # a panic of the engine is no Exception
        raise Failed(f"{type(error).__name__}: {str(error)[:300]}") from error


def _largest(target: Target, inputs: Sequence[bytes]) -> bytes:
    """The input of several that takes the most memory."""

    def peak(data: bytes) -> int:
        tracemalloc.start()
        try:
            try_input(target, data)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return max(inputs, key=peak)


def save(target: Target, data: bytes, folder: Path) -> Path:
    """Stores an input that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target.name}-{hashlib.sha256(data).hexdigest()[:16]}.bin"
    path.write_bytes(data)
    return path


def run(target: Target, seed: str, inputs: int = 0, seconds: float = 0.0, folder: Path = FOLDER) -> Report:
    """Tries ``inputs`` inputs, or inputs for ``seconds``; ends at the first failure. Main thread only."""
    corpus = target.corpus()
    for index, data in enumerate(corpus):
        if not try_input(target, data):
            raise Failed(f"{target.name}: valid input {index} is refused")
    mutator = Mutator(corpus, f"{seed}/{target.name}", target.text, target.mend)
    done = accepted = 0
    recent: list[bytes] = []
    data, limit, seen = b"", _peak() + MEMORY_CAP, -1
    start = time.monotonic()
    end = start + seconds

    def watch(_signal: int, _frame: FrameType | None) -> None:
        nonlocal seen
        if seen == done:
            raise _Hang(f"no end after {HANG:g} s")
        seen = done

    before = signal.signal(signal.SIGVTALRM, watch)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG, HANG)
    crash = ""
    try:
        while done < inputs or (not inputs and (done % STRIDE or time.monotonic() < end)):
            data = mutator.next()
            done += 1
            recent.append(data)
            accepted += try_input(target, data)
            if len(recent) == STRIDE:
                if _peak() > limit:
                    data = _largest(target, recent)
                    raise Failed(f"the process grew by more than {MEMORY_CAP} bytes")
                recent.clear()
    except (Failed, _Hang) as error:
        crash = f"{error} ({save(target, data, folder)})"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return Report(target.name, seed, done, accepted, time.monotonic() - start, crash)
