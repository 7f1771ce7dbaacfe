"""Runs a program on MP-SPDZ (a built checkout at MP_SPDZ_HOME) with dealt shares, and opens what it appended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from keyquorum.backends.mpspdz import Checkout, Given, MpSpdzRun, Players, Way, run_program
from keyquorum.backends.mpspdz.workdir import WorkFolder
from numpy.typing import NDArray

from tests.protocols import Backend

HOME = os.environ.get("MP_SPDZ_HOME", "")
DEAL = "sint.write_to_file(sint.get_input_from(0, size=int(program.args[1]), binary=True))\n"
OPEN = "sint.read_from_file(int(program.args[1]), size=int(program.args[2]))[1][0].reveal().binary_output()\n"


class MpSpdz:
    """One protocol and domain of MP-SPDZ."""

    def __init__(self, folder: Path, backend: Backend) -> None:
        folder.mkdir(exist_ok=True)
        self.backend, self.checkout, self.work = backend, Checkout.find(HOME), WorkFolder(folder)
        self.deal, self.open = folder / "kq_deal.mpc", folder / "kq_open.mpc"
        self.deal.write_text(DEAL)
        self.open.write_text(OPEN)

    def call(self, program: str | Path, args: list[str], private: Mapping[int, Any], compiler: Sequence[str] = (), **given: Any) -> MpSpdzRun:
        """Runs a program."""
        b = self.backend
        threshold = b.threshold if b.protocol == "shamir" else None
        return run_program(
            Players(self.checkout, b.protocol, b.parties, b.domain, threshold), program, args, Given(private, **given),
            Way(240, self.work, compiler),
        )  # fmt: skip

    def run(
        self,
        program: str,
        arguments: Mapping[str, Any],
        private: Mapping[int, Any] | None = None,
        public: Any = (),
        shares: Any = None,
        appended: int = 0,
        compiler: Sequence[str] = (),
    ) -> tuple[NDArray[np.int64], dict[int, NDArray[np.int64]]]:
        """Deals the shares, runs the program, opens what it appended: (appended values, outputs of each party)."""
        start = 0 if shares is None else len(shares)
        dealt = self.call(self.deal, [str(start)], {0: shares}).shares if start else None
        words = [str(w) for value in arguments.values() for w in (value if isinstance(value, list) else [value])]
        done = self.call(program, words, private or {}, public=public, shares=dealt, compiler=compiler)
        opened = np.empty(0, np.int64)
        if appended:
            opened = self.call(self.open, [str(start), str(appended)], {}, shares=done.shares).outputs[0]
        return opened, dict(enumerate(done.outputs))
