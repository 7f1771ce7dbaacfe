"""Batches on MP-SPDZ, all parties on this host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keyquorum.backends.mpspdz import Checkout, Given, Players, Way, run_program
from keyquorum.backends.mpspdz.workdir import WorkFolder
from keyquorum.model.errors import ProgramError

from .batch import Batch, Observed
from .targets import Target


class MpSpdz:
    """A checkout and a working folder."""

    def __init__(self, checkout: Checkout, folder: WorkFolder) -> None:
        self.checkout, self.folder = checkout, folder

    def run_text(
        self, text: str, target: Target, folder: Path,
        private: dict[int, list[int]] | None = None, listed: Sequence[int] = (),
    ) -> Observed:  # fmt: skip
        """Compiles and runs a program at all parties."""
        path = folder / "kq_differential.mpc"
        path.write_text(text)
        options = [] if target.domain.ring else ["-F", str(target.domain.length)]
        if target.protocol == "emulate":
            options += ["-Z", "3"]  # as for ring, where it is the default
        try:
            run = run_program(
                Players(self.checkout, target.protocol, target.parties, target.domain.name), path,
                given=Given(private or {}, listed=list(listed)), way=Way(300, self.folder, options),
            )  # fmt: skip
        except ProgramError as error:
            return Observed(error=str(error))
        fatal = [line for line in run.stdout.splitlines() if line.startswith("Fatal error")]
        if fatal:  # emulation ends well after it
            return Observed(error=fatal[0])
        return Observed(
            {p: text.splitlines() for p, text in enumerate(run.printed)},
            {p: words.tolist() for p, words in enumerate(run.outputs)},
        )

    def run_batch(self, batch: Batch, folder: Path) -> Observed:
        """Runs a batch with the inputs that it consumes."""
        private = {p: batch.private(p) for p in range(batch.target.parties)}
        return self.run_text(batch.text, batch.target, folder, private, batch.listed)
