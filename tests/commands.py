"""Commands and workers, each in a process of its own that has the imports already: they take most of the time of a short command."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import keyquorum.cli  # noqa: F401, for the forks

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", __name__])


def _run(module: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], outputs: Sequence[Path]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(outputs, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.argv[1:] = words
    runpy.run_module(module, run_name="__main__", alter_sys=True)


class Forked:
    """``python -m MODULE WORDS`` in a folder."""

    def __init__(self, module: str, folder: Path, *words: object) -> None:
        self._made = TemporaryDirectory(prefix="keyquorum-forked-")
        self._outputs = [Path(self._made.name) / name for name in ("out", "err")]
        self._words = [module, *map(str, words)]
        self._process = _FORKS.Process(target=_run, args=(module, self._words[1:], folder, dict(os.environ), self._outputs))
        self._process.start()

    def ended(self, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Its exit code, and what it printed."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            raise subprocess.TimeoutExpired(self._words, timeout)
        with self._made:
            return subprocess.CompletedProcess(self._words, self._process.exitcode, *(path.read_text() for path in self._outputs))


def command(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """``keyquorum WORDS`` in a folder."""
    return Forked("keyquorum", folder, *words).ended()
