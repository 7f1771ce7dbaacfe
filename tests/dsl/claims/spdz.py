"""MP-SPDZ by its own command line, without the package under test, in a folder of our own."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from keyquorum.backends.mpspdz import Checkout
from keyquorum.backends.mpspdz.certificates import make_certificate

HOME = os.environ.get("MP_SPDZ_HOME", "")
NEEDED = pytest.mark.skipif(not HOME, reason="MP_SPDZ_HOME is not set")
Q60 = 1152921504606584833
FIELD = ("-P", str(Q60))
FOLDERS = ("Programs/Source", "Programs/Bytecode", "Programs/Schedules", "Programs/Public-Input", "Player-Data", "Persistence", "logs")


def encrypted(protocol: str) -> list[str]:
    """Option for encrypted links: dishonest-majority protocols need it, the others have no such option."""
    return ["-e"] if protocol in ("semi2k", "semi", "spdz2k", "mascot") else []


def needs(*protocols: str) -> None:
    """Skips where a protocol is not built."""
    for protocol in protocols:
        if not Checkout.find(HOME).has(protocol):
            pytest.skip(f"{protocol} is not built")


@dataclass
class Done:
    """A finished command. ``failed``: it says so, or (emulation, which ends well) a fatal error is in its output."""

    code: int
    output: str
    printed: list[str]

    @property
    def failed(self) -> bool:
        return self.code != 0 or "Fatal error" in self.output


class Work:
    """A folder of programs, inputs and share files, with certificates for ``parties``."""

    def __init__(self, folder: Path, parties: int = 3) -> None:
        self.folder, self.parties = folder, parties
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        for party in range(parties):
            make_certificate(folder / "Player-Data", party)

    def inputs(self, words: Mapping[int, Sequence[int]]) -> None:
        """Binary inputs of parties."""
        for party, numbers in words.items():
            np.array(numbers, dtype="<i8").tofile(self.folder / "Player-Data" / f"Input-Binary-P{party}-0")

    def output(self, party: int = 0) -> list[int]:
        """Binary output of a party, which is removed."""
        path = self.folder / "Player-Data" / f"Binary-Output-P{party}-0"
        numbers: list[int] = np.fromfile(path, dtype="<i8").tolist()
        path.unlink()
        return numbers

    def shares(self, party: int) -> Path:
        """Share file of a party."""
        return self.folder / "Persistence" / f"Transactions-P{party}.data"

    def source(self, text: str, name: str = "kq_claim") -> None:
        """Writes a program."""
        (self.folder / "Programs" / "Source" / f"{name}.mpc").write_text(textwrap.dedent(text))

    def start(
        self, protocol: str, name: str = "kq_claim", args: Sequence[object] = (), *, compiler: Sequence[str] = (),
        run_time: Sequence[str] = (), names: Mapping[str, str] | None = None, seconds: float = 120.0,
    ) -> Done:  # fmt: skip
        """Compiles and runs a program that is there."""
        command = [sys.executable, f"{HOME}/Scripts/compile-run.py", *compiler, "-E", protocol, name, *map(str, args)]
        environment = dict(os.environ, PLAYERS=str(self.parties), PORT=str(10000 + 20 * secrets.randbelow(1000)))
        environment.update(names or {})
        process = subprocess.Popen(
            [*command, "--", "-OF", "printed", *run_time], cwd=self.folder, env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            output = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + f"\nended after {seconds} s"
        printed = []
        for path in sorted(self.folder.glob("printed-P*-0")):
            printed.append(path.read_text())
            path.unlink()
        return Done(process.returncode, output, printed)

    def run(self, protocol: str, text: str, args: Sequence[object] = (), **options: object) -> Done:
        """Compiles and runs a program, which may fail."""
        self.source(text)
        return self.start(protocol, "kq_claim", args, **options)  # type: ignore[arg-type]

    def lines(self, protocol: str, text: str, args: Sequence[object] = (), **options: object) -> list[str]:
        """What party 0 prints; the program must run."""
        done = self.run(protocol, text, args, **options)
        assert not done.failed, done.output[-2000:]
        return done.printed[0].splitlines()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")
