"""An engine that stays open for consecutive programs."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from keyquorum.model.protocols import PROTOCOLS

from ..context import Ints
from ..control.imports import resolved, stamp
from ..control.runner import program_failure, run_program
from ..files.program_io import ProgramIO, shape_of
from ..files.share_vector import ShareVector
from .recorder import Recorder
from .recording import Recording, Written

T = TypeVar("T")
MOST_WORDS = 1 << 18
"""Words of inputs and shares of the largest run that is recorded: in larger runs Python takes a small part of the time."""
MOST_RECORDINGS = 64
"""Most recordings of an engine; the first arguments and sizes that occur twice are recorded."""
MOST_SEEN = 4096
"""Most arguments and sizes that an engine stores."""
CHECK_EVERY = 1.0
"""Seconds between two checks whether the files of a program have changed."""
WIDEST = 64
"""Most bits of an element in recorded runs."""


class KeptEngine:
    """An engine, the constants that its programs share, and recordings (:mod:`.recorder`) of small programs that ran twice with the same
    arguments and inputs of the same sizes (None: the program cannot be recorded). ``records``: whether programs are recorded."""

    def __init__(self, engine: Any, records: bool = True) -> None:
        self.engine = engine
        self._everyone = PROTOCOLS[engine.protocol].emulated
        self._records = records and engine.bits <= WIDEST
        self._constants: dict[int, Any] = {}
        self.recordings: dict[object, Recording | None] = {}
        self._seen: set[object] = set()
        self._checked: dict[object, float] = {}

    def run(self, path: str | Path, args: Sequence[str], io: ProgramIO) -> None:
        """As :func:`.run_program`. The second run is recorded, and later ones repeat the recording."""
        shape = io.shape() if self._records else None
        if shape is None or sum(shape) > MOST_WORDS:
            run_program(self.engine, path, args, io, constants=self._constants)
            return
        key = _key(path, args, shape, io.shares)
        recording = self._recording(key)
        if recording is not None:
            io.bind(self.engine)
            for player, personal, words in self._played(recording, path, io.private_inputs, io.public_inputs, io.shares, io.print):
                if personal:
                    io.output_personal(words)
                else:
                    io.output(words, player)
            return
        recorder = None
        if key in self._seen and key not in self.recordings and len(self.recordings) < MOST_RECORDINGS:
            recorder = Recorder(self.engine, io, self._constants.values())
        try:
            run_program(self.engine, path, args, io, constants=self._constants, recorder=recorder)
            if recorder is not None:
                self.recordings[key] = recorder.recording()
        finally:
            if recorder is not None:
                recorder.close()
        if len(self._seen) < MOST_SEEN:
            self._seen.add(key)

    def outputs(self, path: str | Path, args: Sequence[str], private: Ints, public: Sequence[Ints], shares: ShareVector) -> list[Ints]:
        """As :meth:`run` with this input and share file; returns the output of the program."""
        recording = self._recording(_key(path, args, shape_of(private, public, shares), shares))
        if recording is not None and not recording.prints and not self._everyone:
            output, party = self._played(recording, path, private, public, shares, print), self.engine.party
            return [words for player, personal, words in output if personal or player is None or player == party]
        io = ProgramIO(private_inputs=private, public_inputs=list(public), shares=shares)
        self.run(path, args, io)
        return io.file_outputs

    def _played(
        self, recording: Recording, path: str | Path, private: Ints, public: Sequence[Ints], shares: ShareVector, show: Callable[[str], None]
    ) -> list[Written]:  # fmt: skip
        return _playing(lambda: recording.play(self.engine, shares, private, public, show), path)

    def _recording(self, key: object) -> Recording | None:
        """The recording of runs with this key, if the files of its program have not changed."""
        recording = self.recordings.get(key)
        if recording is not None and not self._unchanged(key, recording):
            del self.recordings[key]
            return None
        return recording

    def _unchanged(self, key: object, recording: Recording) -> bool:
        now = time.monotonic()
        if now - self._checked.get(key, -CHECK_EVERY) < CHECK_EVERY:
            return True
        self._checked[key] = now
        try:
            return all(stamp(path) == version for path, version in recording.files)
        except OSError:
            return False


def _key(path: str | Path, args: Sequence[str], shape: tuple[int, ...], shares: ShareVector) -> object:
    """The key of runs that make the same calls: file, arguments and sizes."""
    return resolved(os.path.abspath(path)), tuple(args), shape, shares.mac_key is None


def _playing(play: Callable[[], T], path: str | Path) -> T:
    """Repeats a recording of this program; failures become errors of the program."""
    try:
        return play()
    except Exception as error:
        failure = program_failure(error, path)
        traceback.clear_frames(error.__traceback__)  # the frames reference shares
        if failure is None:
            raise
        try:
            raise failure from error
        finally:
            del failure  # its traceback holds this frame
