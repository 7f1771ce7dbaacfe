"""Commands, parties and workers, each in a process of its own that is forked from one with the imports already: they take most of the time of a short command.

:class:`Forked` stands for :class:`subprocess.Popen` of this Python. A server of this module forks the processes; they ask it for further ones. It ends with
the tests.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from keyquorum.model.builds import build_entries
from keyquorum.parties import processes

ROOT = Path(__file__).resolve().parents[1]
MOST_STREAMS = 64
"""Open files that a process may be given."""
PRELOADED = (
    "keyquorum.cli",
    "keyquorum.plans.keygen",
    "keyquorum.plans.pool_jobs",
    "keyquorum.plans.share",
    "keyquorum.plans.round_keys",
    "keyquorum.plans.epochs.refresh",
)


# -- the server ------------------------------------------------------------------------------------------------------------------------


def serve(place: str) -> None:
    """Forks processes until standard input ends."""
    for name in PRELOADED:
        import_module(name)
    with suppress(ImportError):
        import_module("seal")
    with redirect_stdout(io.StringIO()), suppress(SystemExit):  # what the command line loads when it reads arguments
        import_module("keyquorum.cli").app(["parameters"], prog_name="keyquorum")
    build_entries()  # hashes of all files, which a process computes once
    _Server.place = place
    fork_parties()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # else the first collection of each process copies all pages
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(128)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([0, listening], [], [])
            if 0 in ready:
                return
            asked, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _keep(asked)
            asked.close()


def _receive(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    size, streams, _, _ = socket.recv_fds(asked, 8, MOST_STREAMS)
    left, text = int.from_bytes(size, "little"), bytearray()
    while len(text) < left:
        text += asked.recv(left - len(text))
    return json.loads(text), streams


def _keep(asked: socket.socket) -> None:
    """Forks one process, tells its number, waits for its end and tells its status. The number is of no other process before that was told."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams = _receive(asked)
    pid = os.fork()
    if pid == 0:
        asked.close()
        os._exit(_run(request, streams))
    for stream in streams:
        os.close(stream)
    with suppress(OSError):
        asked.sendall(pid.to_bytes(8, "little"))
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    pid, status = os.waitpid(pid, os.WNOHANG)
    with suppress(OSError):
        asked.sendall(status.to_bytes(8, "little"))
    os._exit(0)


def _run(request: Mapping[str, Any], streams: Sequence[int]) -> int:
    """Runs ``-m MODULE WORDS``, ``-c CODE WORDS`` or ``FILE WORDS`` as a new interpreter would; returns its exit code."""
    for number in range(3):
        os.dup2(streams[number], number)
        os.close(streams[number])
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    given = request["words"]
    if given[0] == "-u":
        given = given[1:]
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    option, what, *words = given if given[0] in ("-m", "-c") else ("", *given)
    sys.argv = [what, *words]
    code = 0
    try:
        if option == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        elif option:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_path(what, run_name="__main__")
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return code & 255


# -- those who ask it ------------------------------------------------------------------------------------------------------------------


class _Server:
    """Where the server is. It is started when the first process is wanted."""

    place = ""
    _lock = threading.Lock()
    _running: tuple[TemporaryDirectory[str], subprocess.Popen[str]]

    @classmethod
    def connected(cls) -> socket.socket:
        with cls._lock:
            if not cls.place:
                folder = TemporaryDirectory(prefix="keyquorum-forks-")
                place = str(Path(folder.name) / "server")
                environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
                code = f"from tests.commands import serve; serve({place!r})"
                started = subprocess.Popen(
                    [sys.executable, "-c", code], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
                assert started.stdout is not None and started.stdout.readline() == "ready\n"
                cls._running, cls.place = (folder, started), place
        made = socket.socket(socket.AF_UNIX)
        made.connect(cls.place)
        return made


class Forked(subprocess.Popen[str]):
    """``subprocess.Popen([sys.executable, ...])`` of a module, a text or a file, without the start of an interpreter and its imports."""

    def _execute_child(
        self, args: Sequence[object], executable: object, preexec: object, close: object, kept: Sequence[int], folder: Path | None,
        environment: Mapping[str, str] | None, info: object, flags: object, shell: object, *ends: int,
    ) -> None:  # fmt: skip
        first, *words = map(str, args)
        assert first == sys.executable and not shell and preexec is None and executable is None
        request = {"words": words, "folder": str(folder or os.getcwd()), "environment": dict(os.environ if environment is None else environment)}
        text = json.dumps(request).encode()
        streams = [end if end != -1 else number for number, end in enumerate((ends[0], ends[3], ends[5]))]
        try:
            self._keeper = _Server.connected()
            socket.send_fds(self._keeper, [len(text).to_bytes(8, "little")], [*streams, *kept])
            self._keeper.sendall(text)
            self.pid = int.from_bytes(self._keeper.recv(8, socket.MSG_WAITALL), "little")
            self._child_created = True
        finally:
            self._close_pipe_fds(*ends[:6])  # type: ignore[attr-defined]

    def _status(self, flags: int = 0) -> tuple[int, int]:
        """As :func:`os.waitpid`."""
        with suppress(BlockingIOError):
            told = self._keeper.recv(8, socket.MSG_DONTWAIT if flags & os.WNOHANG else socket.MSG_WAITALL)
            self._keeper.close()
            assert len(told) == 8, "the server of forks has ended"
            return self.pid, int.from_bytes(told, "little")
        return 0, 0

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                pid, status = self._status(os.WNOHANG) if self.returncode is None else (0, 0)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        return self._status(flags)

    def ended(self, timeout: float = 120, typed: str | None = None) -> subprocess.CompletedProcess[str]:
        """Its exit code, and what it printed. ``typed``: its standard input."""
        try:
            out, errors = self.communicate(typed, timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return subprocess.CompletedProcess(self.args, self.returncode, out, errors)


def fork_parties() -> None:
    """Lets the parties of :func:`.run_processes` be forked, in this process."""
    fields = {name: getattr(subprocess, name) for name in ("PIPE", "TimeoutExpired")}
    processes.subprocess = SimpleNamespace(Popen=Forked, **fields)  # type: ignore[attr-defined]


def started(folder: Path, module: str, *words: object) -> Forked:
    """``python -m MODULE WORDS`` in a folder, with pipes."""
    line = [sys.executable, "-m", module, *map(str, words)]
    return Forked(line, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(
    line: Sequence[str], folder: Path, timeout: float = 120, environment: Mapping[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """As :func:`subprocess.run`, of this Python in a folder."""
    with Forked(line, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        return process.ended(timeout, typed)


def command(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """``keyquorum WORDS`` in a folder."""
    return started(folder, "keyquorum", *words).ended()
