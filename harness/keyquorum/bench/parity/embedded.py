"""Rows on the embedded engine: one process a party, over TLS."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from keyquorum.dsl import run_program
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.resources import program_path
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.setup import init

from .cases import PARTIES, cases
from .outcome import Case, Measured, Outcome
from .reference import deal, opened, program_io, words

WARM_UP = 5
"""Runs of a process that are not counted: they load code and touch memory. MP-SPDZ's clock starts when it has loaded."""


def _measure(context: PartyContext, protocol: str, case: Case, repeats: int) -> dict[str, Any]:
    """One row, at one party."""
    session, threshold = context.session, context.committee.threshold
    shares = deal(session.engine(protocol, case.domain, "deal", threshold), case.shares, case.modulus)
    start, seconds, traffic = shares.length, [], (0, 0)
    for _ in range(WARM_UP + repeats):
        mine = shares.copy()
        io = program_io(case, context.party, mine)
        engine = session.engine(protocol, case.domain, " ".join([case.program, *case.args]), threshold)
        total = run_program(engine, program_path(case.program), case.args, io).total
        seconds.append(total.seconds)
        traffic = total.bytes_sent, total.rounds
    appended = opened(session.engine(protocol, case.domain, "open", threshold), mine, start, case.modulus)
    return {
        "seconds": seconds[WARM_UP:],
        "sent": traffic[0],
        "rounds": traffic[1],
        "appended": appended,
        "public": words(io.binary_outputs, case.modulus),
        "personal": words(io.personal_outputs, case.modulus),
    }


def parity_job(context: PartyContext, job: dict[str, Any]) -> dict[str, Any]:
    """The job ``parity``: row number ``row`` of ``protocol``, ``repeats`` times; the results of this party."""
    return _measure(context, job["protocol"], cases(job["protocol"])[job["row"]], job["repeats"])


class EmbeddedRows:
    """Runs rows of one protocol among processes of this host, over TLS."""

    def __init__(self, protocol: str, repeats: int) -> None:
        self.protocol, self.repeats = protocol, repeats
        self._temporary = tempfile.TemporaryDirectory(prefix="keyquorum-parity-")
        self._folder = Path(self._temporary.name) / "committee"
        init(self._folder, PARTIES[protocol], protocol)

    def close(self) -> None:
        """Removes the committee."""
        self._temporary.cleanup()

    def measure(self, row: int, case: Case) -> Measured:
        """One row; seconds of party 0, from start to end of the program."""
        job = {"kind": "parity", "protocol": self.protocol, "repeats": self.repeats, "row": row}
        results = run_processes(self._folder, job, io_timeout=600)
        first = results[0]
        personal = {i: r["personal"] for i, r in enumerate(results) if r["personal"]}
        if any((r["appended"], r["public"]) != (first["appended"], first["public"]) for r in results):
            raise KeyQuorumError(f"{case.label}: the parties have different outputs")
        outcome = Outcome(first["appended"], first["public"], personal)
        return Measured(outcome, first["seconds"], sum(r["sent"] for r in results) / 1e6, first["rounds"])
