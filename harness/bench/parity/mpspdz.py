"""Rows on MP-SPDZ: compiled once, then run as often as on the embedded engine."""

from __future__ import annotations

from collections.abc import Iterator

from keyquorum.backends.mpspdz import Checkout, Given, Players, Way, run_program
from keyquorum.backends.mpspdz.workdir import WorkFolder
from keyquorum.dsl import ShareVector

from .cases import PARTIES
from .outcome import Case, Ints, Measured, Outcome, centred

DEAL = "sint.write_to_file(sint.get_input_from(0, size=int(program.args[1]), binary=True))\n"
OPEN = "sint.read_from_file(int(program.args[1]), size=int(program.args[2]))[1][0].reveal().binary_output()\n"


class MpSpdzRows:
    """Runs rows of one protocol in one working folder."""

    def __init__(self, checkout: Checkout, protocol: str, repeats: int, timeout: float = 1800.0) -> None:
        self.checkout, self.protocol, self.repeats, self.timeout = checkout, protocol, repeats, timeout
        self.parties = PARTIES[protocol]
        self.folder = WorkFolder()
        self._deal, self._open = self.folder.path / "kq_deal.mpc", self.folder.path / "kq_open.mpc"
        self._deal.write_text(DEAL)
        self._open.write_text(OPEN)

    def close(self) -> None:
        """Removes the working folder."""
        self.folder.close()

    def measure(self, case: Case) -> Measured:
        """One row; seconds as MP-SPDZ's party 0 prints them."""
        shares = self._dealt(case)
        start = 0 if case.shares is None else len(case.shares)
        seconds = []
        for i in range(self.repeats):
            run = run_program(
                self._players(case), case.program, case.args, Given(case.private, () if case.public is None else case.public, shares=shares),
                Way(self.timeout, self.folder, compiled=i > 0),
            )  # fmt: skip
            seconds.append(run.seconds)
        appended: list[int] = []
        if case.appended:
            appended = self._words(case, str(self._open), [start, case.appended], run.shares)
        public, personal = self._split(case, run.outputs)
        return Measured(Outcome(appended, public, personal), seconds, run.bytes_global / 1e6, run.rounds)

    def _dealt(self, case: Case) -> list[ShareVector] | None:
        """Share files with the clear values of the row. Shares with a MAC need its key at the start even if there are none."""
        if case.shares is None:
            return None
        values = [int(v) for v in centred(case.shares.tolist(), case.modulus)]
        run = run_program(self._players(case), self._deal, [len(values)], Given({0: values}), Way(self.timeout, self.folder))
        return run.shares

    def _players(self, case: Case) -> Players:
        return Players(self.checkout, self.protocol, self.parties, case.domain)

    def _words(self, case: Case, program: str, args: list[int], shares: list[ShareVector]) -> list[int]:
        run = run_program(self._players(case), program, args, Given(shares=shares), Way(self.timeout, self.folder))
        return centred(run.outputs[0].tolist(), case.modulus)

    def _split(self, case: Case, outputs: list[Ints]) -> tuple[list[int], dict[int, list[int]]]:
        """Public words are those that all parties have; a program of the collection has outputs of one kind."""
        words: list[list[int]] = [centred(o.tolist(), case.modulus) for o in outputs]
        if all(w == words[0] for w in words):
            return words[0], {}
        return [], dict(_present(words))


def _present(words: list[list[int]]) -> Iterator[tuple[int, list[int]]]:
    for party, vector in enumerate(words):
        if vector:
            yield party, vector
