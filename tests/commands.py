"""Commands of the command line, each in a process of its own that has the imports already: they take most of the time of a short command."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from keyquorum.cli import main

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", __name__])


def _command(words: Sequence[str], folder: Path, environment: Mapping[str, str], outputs: Sequence[str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(outputs, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.argv[1:] = words
    main()


def command(folder: Path, *words: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """What ``keyquorum WORDS`` in a folder prints, and its exit code."""
    with TemporaryDirectory(prefix="keyquorum-command-") as made:
        outputs = [f"{made}/out", f"{made}/err"]
        process = _FORKS.Process(target=_command, args=([*map(str, words)], folder, dict(os.environ), outputs))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired([*map(str, words)], timeout)
        return subprocess.CompletedProcess([*map(str, words)], process.exitcode, *(Path(path).read_text() for path in outputs))
