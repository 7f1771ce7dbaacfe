"""An engine that stays open for programs one after another."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .imports import resolved, stamp
from .program_io import ProgramIO
from .runner import program_failure, run_program
from .tape import Recorder, Tape

MOST_WORDS = 1 << 18
"""Words of inputs and shares of the largest run that is recorded: in larger ones the program itself takes little of the time."""
MOST_TAPES = 64
"""Tapes that an engine makes: those of the arguments and sizes that came twice first."""
MOST_SEEN = 4096
"""Arguments and sizes that it remembers."""
CHECK_EVERY = 1.0
"""Seconds after which it looks again whether the files of a program are as they were."""
WIDEST = 64
"""Bits of the largest elements of recorded runs."""


class Cost:
    """What an engine has spent from one look to the next."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._stats, self._left = engine.stats(), self._material()

    def _material(self) -> dict[str, int]:
        """Correlated randomness that was not used so far."""
        return {name: made - used for name, (made, used) in self._engine.material().items()}

    def since(self) -> tuple[dict[str, int], dict[str, int]]:
        """The counters of :meth:`Engine.stats` since the last look, and by how much the unused correlated randomness has changed."""
        before, left, now, unused = self._stats, self._left, self._engine.stats(), self._material()
        self._stats, self._left = now, unused
        changed = {name: count - left.get(name, 0) for name, count in unused.items() if count != left.get(name, 0)}
        return {name: value - before[name] for name, value in now.items()}, changed


class KeptEngine:
    """An engine, the constants that its programs share, and tapes (:mod:`.tape`) of small programs that ran twice with the same arguments
    and inputs of the same sizes (None: the program cannot be recorded). ``records``: whether there will be tapes."""

    def __init__(self, engine: Any, records: bool = True) -> None:
        self.engine = engine
        self.cost = Cost(engine)
        self._records = records and engine.bits <= WIDEST
        self._constants: dict[int, Any] = {}
        self.tapes: dict[object, Tape | None] = {}
        self._seen: set[object] = set()
        self._checked: dict[object, float] = {}

    def run(self, path: str | Path, args: Sequence[str], io: ProgramIO) -> None:
        """As :func:`.run_program`. The first run is the program's, the second one is recorded, the others are played."""
        shape = io.shape() if self._records else None
        if shape is None or sum(shape) > MOST_WORDS:
            run_program(self.engine, path, args, io, constants=self._constants)
            return
        key = (resolved(os.path.abspath(path)), tuple(map(str, args)), shape, io.persistence.mac_key is None)
        tape = self.tapes.get(key)
        if tape is not None:
            if self._unchanged(key, tape):
                self._play(tape, path, io)
                return
            del self.tapes[key]
        recorder = None
        if key in self._seen and key not in self.tapes and len(self.tapes) < MOST_TAPES:
            recorder = Recorder(self.engine, io, self._constants.values())
        try:
            run_program(self.engine, path, args, io, constants=self._constants, recorder=recorder)
            if recorder is not None:
                self.tapes[key] = recorder.tape()
        finally:
            if recorder is not None:
                recorder.close()
        if len(self._seen) < MOST_SEEN:
            self._seen.add(key)

    def _unchanged(self, key: object, tape: Tape) -> bool:
        now = time.monotonic()
        if now - self._checked.get(key, -CHECK_EVERY) < CHECK_EVERY:
            return True
        self._checked[key] = now
        try:
            return all(stamp(path) == version for path, version in tape.files)
        except OSError:
            return False

    def _play(self, tape: Tape, path: str | Path, io: ProgramIO) -> None:
        try:
            tape.play(self.engine, io)
        except Exception as error:
            failure = program_failure(error, path)
            traceback.clear_frames(error.__traceback__)  # they hold shares
            if failure is None:
                raise
            raise failure from error

