"""Runs a program on one party."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyquorum import _engine
from keyquorum._engine import Engine
from keyquorum.model.errors import KeyQuorumError, ProgramError
from keyquorum.model.protocols import PROTOCOLS

from ..context import Dynamic, Run, active
from ..errors import SUBSET, CompilerError
from ..files.program_io import ProgramIO
from ..recording.recorder import Recorder
from .control import Timer
from .imports import Namespace, resolved
from .program import Program, ProgramOptions
from .subset import attribute_refused, operation_refused


@dataclass
class ProgramResult:
    """The cost of a run at this party: of the whole run, and of each timer of the program."""

    total: Timer
    timers: dict[int, Timer] = field(default_factory=dict)
    insecure: str = ""

    def lines(self) -> list[str]:
        """The report in the form of MP-SPDZ, with this party's traffic."""
        result = [f"INSECURE: {self.insecure}"] if self.insecure else []
        result.append(f"Time = {self.total.seconds:.6g} seconds")
        result += [f"Time{i} = {t.seconds:.6g} seconds ({t.bytes_sent / 1e6:.6g} MB, {t.rounds} rounds)" for i, t in sorted(self.timers.items())]
        if self.total.offline_rounds:
            t = self.total
            online = (t.seconds - t.offline_seconds, (t.bytes_sent - t.offline_bytes_sent) / 1e6, t.rounds - t.offline_rounds)
            offline = (t.offline_seconds, t.offline_bytes_sent / 1e6, t.offline_rounds)
            result.append(
                "Spent {:.6g} seconds ({:.6g} MB, {} rounds) on the online phase and ".format(*online)
                + "{:.6g} seconds ({:.6g} MB, {} rounds) on the preprocessing/offline phase".format(*offline)
            )
        result.append(f"Data sent = {self.total.bytes_sent / 1e6:.6g} MB in {self.total.rounds} rounds")
        return result


def run_program(
    engine: Engine,
    path: str | Path,
    args: Sequence[str],
    io: ProgramIO,
    options: ProgramOptions | None = None,
    constants: dict[int, Dynamic] | None = None,
    recorder: Recorder | None = None,
) -> ProgramResult:
    """Runs the program of a file with arguments, on one party; every party runs the same. ``constants``: a dictionary that
    the runs on one engine share, so that equal constants are made once. ``recorder``: records the run; it was made for this engine and
    io.

    Every failure of the program is a ProgramError ``<file>:<line>: <cause and remedy>``. Failures of the
    network, of other parties and of share files are EngineErrors. After an error, outputs that were still postponed
    are lost.
    """
    file = Path(resolved(os.path.abspath(path)))
    shown = _shown(file)
    words = [str(a) for a in args]
    io.bind(engine)
    its_io: Any = io if recorder is None else recorder.io  # a stand-in has the same methods
    program = Program(engine, str(file), file.stem, words, options or ProgramOptions())
    run = Run(engine, its_io, program, constants)
    total = Timer()
    with active(run):
        run.namespace = namespace = Namespace(run)
        total.start(run)
        try:
            _execute(file, namespace)
            if run.branches:
                raise CompilerError("if_e without else_ at the end of the program")
            if any(t.running for t in run.timers.values()):
                for timer in run.timers.values():
                    if timer.running:
                        timer.stop(run)
            run.settle()
            if recorder is not None:
                recorder.files = namespace.repeatable()
        except (Exception, SystemExit) as error:
            failure = _program_error(error, file, shown, namespace.helper_files)
            if failure is None:
                raise
            try:
                raise failure from error
            finally:
                del failure  # its traceback holds this frame
        finally:
            namespace.clear()
        total.stop(run)
    insecure = ""
    if PROTOCOLS[engine.protocol].emulated:
        insecure = f"{engine.protocol} computes on clear text"
    elif engine.insecure:
        insecure = "a test seed replaced the randomness of this run"
    return ProgramResult(total, run.timers, insecure)


def program_failure(error: BaseException, path: str | Path) -> ProgramError | None:
    """The one-line error of a failure in the repetition of a recorded program; None if the program did not cause it."""
    file = Path(resolved(os.path.abspath(path)))
    return _program_error(error, file, _shown(file), [])


def _execute(file: Path, namespace: Namespace) -> None:
    if not file.is_file():
        raise ProgramError(f"no program {file}")
    try:
        namespace.execute(file)
    except SystemExit as stop:
        if isinstance(stop, Exception) or stop.code not in (None, 0):
            raise


def _shown(file: Path) -> str:
    """The path in errors: from the folder ``Programs`` on."""
    parts = file.parts
    if "Programs" in parts[:-1]:
        at = len(parts) - 1 - parts[::-1].index("Programs")
        return "/".join(parts[at:])
    return file.name


def _program_error(error: BaseException, file: Path, shown: str, helpers: list[str]) -> ProgramError | None:
    """The one-line error of a failure that the program caused; None for other failures."""
    if isinstance(error, KeyQuorumError) and not isinstance(error, ProgramError):
        return None
    if isinstance(error, MemoryError):
        return None
    if _is_engine_failure(error):
        return None
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    line = next((n for name, n in reversed(frames) if name == str(file)), None)
    text = _described(error)
    if isinstance(error, SyntaxError):
        if error.filename == str(file):
            line = error.lineno
        elif error.filename:
            text += f" [in {_shown(Path(error.filename))}:{error.lineno}]"
    helper = next(((name, n) for name, n in reversed(frames) if name in helpers), None)
    if helper is not None:
        text += f" [in {_shown(Path(helper[0]))}:{helper[1]}]"
    location = shown if line is None else f"{shown}:{line}"
    return ProgramError(f"{location}: {text}")


def _is_engine_failure(error: BaseException) -> bool:
    """Whether an error is one of network, other parties or share files, which the program did not cause."""
    return isinstance(error, _engine.EngineError) and not isinstance(error, _engine.UsageError)


def _described(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, (CompilerError, ProgramError, SystemExit, _engine.EngineError)):
        return text or type(error).__name__
    if isinstance(error, NameError) and error.name:
        return f"{error.name!r} is not defined here, or {SUBSET}"
    if isinstance(error, UnboundLocalError):
        return f"{text}: a body cannot assign to variables around it, use update(), an Array or a MemValue"
    if isinstance(error, (ImportError, AttributeError)) and SUBSET in text:
        return text
    refused = attribute_refused(error) if isinstance(error, AttributeError) else operation_refused(text) if isinstance(error, TypeError) else None
    if refused is not None:
        return refused
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
