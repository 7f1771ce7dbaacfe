"""A checkout of MP-SPDZ: its path, version and executables."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.errors import BackendError, ParameterError
from keyquorum.model.protocols import PROTOCOLS as ALL
from keyquorum.model.protocols import MpSpdz, Protocol

HOME_VARIABLE = "MP_SPDZ_HOME"
OLDEST = (0, 4, 0)
"""The first version whose compiler accepts all of our programs (0.3.9 has no vector ``read_from_file``)."""


PROTOCOLS = {p.name: p for p in ALL.values() if p.mp_spdz is not None}
"""Protocols that MP-SPDZ has, by their names after ``-E``."""


def protocol_named(name: str) -> Protocol:
    """The protocol of a name, or a one-line error that lists them."""
    if name not in PROTOCOLS:
        raise ParameterError(f"unknown protocol {name!r} for MP-SPDZ: choose one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def _entry(protocol: str | Protocol) -> Protocol:
    return protocol_named(protocol) if isinstance(protocol, str) else protocol


def on_mp_spdz(protocol: Protocol) -> MpSpdz:
    """The description of MP-SPDZ's executable for a protocol. Raises ParameterError."""
    if protocol.mp_spdz is None:
        raise ParameterError(f"MP-SPDZ has no protocol {protocol.name!r}: choose one of {', '.join(PROTOCOLS)}")
    return protocol.mp_spdz


@dataclass(frozen=True)
class Checkout:
    """A folder with MP-SPDZ that was checked: see :meth:`find`."""

    path: Path
    version: tuple[int, ...]

    @staticmethod
    def find(directory: Path | str | None = None) -> Checkout:
        """The checkout at ``directory``, or at MP_SPDZ_HOME. Raises :class:`BackendError` if it is none or too old."""
        given = str(directory or os.environ.get(HOME_VARIABLE, ""))
        if not given:
            raise BackendError(f"the mp-spdz backend needs a built checkout of MP-SPDZ: set {HOME_VARIABLE}, or name it with --mp-spdz DIR")
        path = Path(given).resolve()
        if not path.is_dir():
            raise BackendError(f"{path}: no such folder: set {HOME_VARIABLE} or --mp-spdz to a checkout of MP-SPDZ")
        if not (path / "Compiler").is_dir() or not (path / "Scripts").is_dir():
            raise BackendError(f"{path} is not a checkout of MP-SPDZ (no Compiler, no Scripts): set {HOME_VARIABLE} or --mp-spdz to one")
        version = _version(path)
        for script in ("Scripts/compile-run.py", "compile.py"):
            if not (path / script).is_file() or version < OLDEST:
                raise BackendError(
                    f"{path} is too old (MP-SPDZ {_dotted(version)}, {script} "
                    f"{'found' if (path / script).is_file() else 'missing'}): check out {_dotted(OLDEST)} or newer"
                )
        return Checkout(path, version)

    @property
    def compile_run(self) -> Path:
        """MP-SPDZ's script that compiles and runs."""
        return self.path / "Scripts" / "compile-run.py"

    @property
    def compiler(self) -> Path:
        """MP-SPDZ's script that compiles."""
        return self.path / "compile.py"

    @property
    def commit(self) -> str:
        """The commit that is checked out, or the version where there is no git."""
        try:
            done = subprocess.run(
                ["git", "-C", str(self.path), "rev-parse", "HEAD"],
                capture_output=True, text=True, timeout=10, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return _dotted(self.version)
        return done.stdout.strip() if done.returncode == 0 else _dotted(self.version)

    def has(self, protocol: str | Protocol) -> bool:
        """Whether the executable of a protocol is built."""
        return (self.path / on_mp_spdz(_entry(protocol)).binary).is_file()

    def binary(self, protocol: str | Protocol) -> Path:
        """The executable of a protocol. Raises :class:`BackendError` with the make target if it is not built."""
        name = on_mp_spdz(_entry(protocol)).binary
        path = self.path / name
        if not path.is_file():
            raise BackendError(f"{path} is not built: make -C {self.path} {name}")
        if not os.access(path, os.X_OK):
            raise BackendError(f"{path} is not executable: build it again, make -C {self.path} -B {name}")
        return path


def check_parties(protocol: Protocol, parties: int, threshold: int | None = None) -> None:
    """Refuses a number of parties or corruptions that a protocol does not have."""
    if protocol.parties is not None and parties != protocol.parties:
        raise ParameterError(f"{protocol.name} is for {protocol.parties} parties, not {parties}")
    if parties < protocol.least_parties:
        raise ParameterError(f"{protocol.name} needs at least {protocol.least_parties} parties, not {parties}")
    if protocol.chooses_threshold and threshold is not None and not 1 <= threshold <= protocol.most_corruptions(parties):
        raise ParameterError(f"{protocol.name} needs 1 <= t < n/2, not n={parties}, t={threshold}")


def _version(path: Path) -> tuple[int, ...]:
    """The version of the newest entry of its CHANGELOG.md; (0,) if there is none."""
    try:
        match = re.search(r"^##\s+v?(\d+(?:\.\d+)+)", (path / "CHANGELOG.md").read_text(errors="replace"), re.M)
    except OSError:
        match = None
    return tuple(int(n) for n in match.group(1).split(".")) if match else (0,)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version)) if version != (0,) else "of unknown version"
