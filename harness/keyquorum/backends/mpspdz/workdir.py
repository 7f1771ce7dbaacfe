"""A working folder for MP-SPDZ, with all files that it reads and writes, except its executables.

``Programs/Source`` links our programs, ``Programs/Library`` our modules; ``Player-Data`` has certificates, inputs,
outputs and MAC keys; ``ShareVector`` the share files. The folder has mode 0700 and secret files 0600.
:meth:`WorkFolder.close` overwrites the secrets before it removes the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.errors import BackendError, ProgramError
from keyquorum.model.resources import program_path, resource_folder

from .checkout import Checkout

Ints = NDArray[np.int64]
FOLDERS = (
    "Programs/Source", "Programs/Bytecode", "Programs/Schedules", "Programs/Public-Input", "Programs/Functions",
    "Player-Data", "Persistence", "logs",
)  # fmt: skip
SECRETS = ("Player-Data", "Persistence", "logs")
PREFIX = "mp-spdz-"


class WorkFolder:
    """A fresh folder below ``parent`` (default: the system's temporary folder). Use it as a context, or call
    :meth:`close`."""

    def __init__(self, parent: Path | None = None) -> None:
        self.path, self._lock = _locked_folder(parent)
        for name in FOLDERS:
            (self.path / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.path / "Programs" / "Library").symlink_to(resource_folder("Programs") / "Library")

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def player_data(self) -> Path:
        """Certificates, inputs, outputs, MAC keys."""
        return self.path / "Player-Data"

    def close(self) -> None:
        """Overwrites the secrets with zeros and removes the folder."""
        _remove(self.path)
        os.close(self._lock)

    def link_program(self, program: str, checkout: Checkout) -> str:
        """Makes a program (a name of the collection, or a path of an .mpc file) visible; returns its name.

        Other files of the program's folder stay invisible. Raises :class:`BackendError` if MP-SPDZ has a program of
        that name.
        """
        path = program_path(program).resolve()
        name = path.stem
        link = self.path / "Programs" / "Source" / f"{name}.mpc"
        link.unlink(missing_ok=True)
        for theirs in ((checkout.path / "Programs" / "Source" / name).with_suffix(e) for e in (".mpc", ".py")):
            if theirs.resolve() == path:
                return name  # already linked into the checkout: a second link would be ambiguous
            if theirs.exists():
                raise BackendError(f"MP-SPDZ has a program {name} of its own ({theirs}): rename yours")
        link.symlink_to(path)
        return name

    # Inputs and outputs: raw int64, a party's private words before the public ones

    def input_path(self, party: int) -> Path:
        """Binary input of a party."""
        return self.player_data / f"Input-Binary-P{party}-0"

    def write_input(self, party: int, private: Ints | None, public: Sequence[Ints]) -> None:
        """Writes the binary input of a program at a party: the private words, then the public ones."""
        words = [np.asarray(w, dtype="<i8") for w in ([] if private is None else [private])] + [np.asarray(w, dtype="<i8") for w in public]
        write_secret(self.input_path(party), b"".join(w.tobytes() for w in words))

    def write_listed(self, name: str, words: Sequence[int] | Ints) -> None:
        """Writes the public input file (``pubinput``) of a program with its arguments."""
        path = self.path / "Programs" / "Public-Input" / name
        path.write_text(" ".join(map(str, words)) + "\n")

    def take_output(self, party: int) -> Ints:
        """The words of a party's ``binary_output``, centred int64; the file is wiped."""
        path = self.player_data / f"Binary-Output-P{party}-0"
        if not path.exists():
            return np.empty(0, dtype=np.int64)
        data = path.read_bytes()
        wipe_file(path)
        if len(data) % 8:
            raise ProgramError(f"{path.name}: {len(data)} bytes are no whole number of 64-bit words")
        return np.frombuffer(data, dtype="<i8").astype(np.int64)

    # Share files

    def shares_path(self, party: int) -> Path:
        """Share file of a party."""
        return self.path / "Persistence" / f"Transactions-P{party}.data"

    def clear_run(self, parties: Sequence[int]) -> None:
        """Wipes inputs, outputs, share files and MAC keys of a run, so that the next run does not read them."""
        for path in self.player_data.glob("*/Player-MAC-Keys-*"):
            wipe_file(path)
        for party in parties:
            for path in (
                self.input_path(party),
                self.player_data / f"Binary-Output-P{party}-0",
                self.shares_path(party),
                self.path / "Persistence" / f"Transactions-gf2n-P{party}.data",
            ):
                wipe_file(path)


def _locked_folder(parent: Path | None) -> tuple[Path, int]:
    """A new folder and the descriptor of its lock, which is held while the folder is in use, so that :func:`sweep` skips it. A folder that was swept
    before it was locked is replaced by another."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
        lock = _lock(path)
        if lock is not None:
            return path, lock


def _lock(folder: Path) -> int | None:
    """Locks a working folder. Returns the descriptor; None if another process has locked or removed the folder."""
    path = folder / "lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.stat(), os.fstat(lock)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None


def sweep(parent: Path) -> None:
    """Overwrites and removes the working folders of killed processes in ``parent``. Other processes may sweep and make folders there at the same
    time."""
    for path in parent.glob(f"{PREFIX}*"):
        lock = _lock(path)
        if lock is None:
            continue  # in use, or another process sweeps it
        try:
            # The new name, which a sweep finds as well, stops a process that made this folder and has not locked it yet from writing into it.
            swept = path.with_name(f"{PREFIX}swept-{secrets.token_hex(8)}")
            with contextlib.suppress(FileNotFoundError):  # its owner just removed it
                path.rename(swept)
            _remove(swept)
        finally:
            os.close(lock)


def _remove(folder: Path) -> None:
    for name in SECRETS:
        for where, _, files in os.walk(folder / name):
            for file in files:
                wipe_file(Path(where, file))
    shutil.rmtree(folder, ignore_errors=True)


def write_secret(path: Path, data: bytes) -> None:
    """Writes a file of mode 0600, and replaces an existing one."""
    wipe_file(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def wipe_file(path: Path) -> None:
    """Overwrites a file with zeros and removes it; links are only removed."""
    try:
        if path.is_symlink():
            path.unlink()
        elif path.is_file():
            size = path.stat().st_size
            with path.open("r+b") as file:
                left = size
                while left:
                    left -= file.write(bytes(min(left, 1 << 20)))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
    except FileNotFoundError:
        pass
