"""Runs a program on MP-SPDZ (a built checkout at MP_SPDZ_HOME), in a folder of its own, through MP-SPDZ's own files.

The checkout needs the executables of the protocols and certificates (`Scripts/setup-ssl.sh 5`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .costs import PROGRAMS
from .running import Backend

HOME = os.environ.get("MP_SPDZ_HOME", "")
FOLDERS = ("Programs/Source", "Programs/Bytecode", "Programs/Schedules", "Programs/Public-Input", "Player-Data", "Persistence", "logs")
DEAL = "sint.write_to_file(sint.get_input_from(0, size=int(program.args[1]), binary=True))\n"
OPEN = "sint.read_from_file(int(program.args[1]), size=int(program.args[2]))[1][0].reveal().binary_output()\n"


class MpSpdz:
    """One working folder: the share file stays from run to run."""

    def __init__(self, folder: Path, backend: Backend) -> None:
        self.folder, self.backend = folder, backend
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        for path in (Path(HOME) / "Player-Data").glob("*"):
            if path.suffix in (".pem", ".key", ".0"):
                (folder / "Player-Data" / path.name).symlink_to(path)
        for path in PROGRAMS.glob("*.mpc"):
            (folder / "Programs" / "Source" / path.name).symlink_to(path)
        (folder / "Programs" / "Library").symlink_to(PROGRAMS.parent / "Library")
        (folder / "Programs" / "Source" / "kq_deal.mpc").write_text(DEAL)
        (folder / "Programs" / "Source" / "kq_open.mpc").write_text(OPEN)

    def call(self, program: str, args: list[str], private: Mapping[int, Any], public: Any = ()) -> dict[int, NDArray[np.int64]]:
        """Runs a program; returns each party's binary output. A party's private words come before the public ones."""
        outputs = [self.folder / "Player-Data" / f"Binary-Output-P{i}-0" for i in range(self.backend.parties)]
        for i, path in enumerate(outputs):
            path.unlink(missing_ok=True)
            words = np.concatenate([np.asarray(private.get(i, []), np.int64), np.asarray(public, np.int64)])
            words.tofile(self.folder / "Player-Data" / f"Input-Binary-P{i}-0")
        command = [f"{HOME}/Scripts/compile-run.py", "-E", self.backend.protocol, program, *args, "--"]
        if self.backend.domain.startswith("F_"):
            command += ["-P", self.backend.domain[2:]]
        environment = dict(os.environ, PLAYERS=str(self.backend.parties))
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return {i: np.fromfile(path, "<i8") if path.exists() else np.empty(0, np.int64) for i, path in enumerate(outputs)}

    def run(
        self, program: str, arguments: Mapping[str, Any], private: Mapping[int, Any] | None = None, public: Any = (),
        shares: Any = None, appended: int = 0,
    ) -> tuple[NDArray[np.int64], dict[int, NDArray[np.int64]]]:
        """Deals the shares, runs the program, opens what it appended: (appended values, outputs of each party)."""
        for path in (self.folder / "Persistence").glob("*"):
            path.unlink()
        start = 0 if shares is None else len(shares)
        if start:
            self.call("kq_deal", [str(start)], {0: shares})
        words = [str(w) for value in arguments.values() for w in (value if isinstance(value, list) else [value])]
        outputs = self.call(program, words, private or {}, public)
        opened = self.call("kq_open", [str(start), str(appended)], {})[0] if appended else np.empty(0, np.int64)
        return opened, outputs
