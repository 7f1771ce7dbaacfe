"""Rows on the embedded engine: one process a party, over TLS."""

from __future__ import annotations

import tempfile
from pathlib import Path

from keyquorum import _engine
from keyquorum.dsl import run_program
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.model.resources import program_path
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.parties.setup import init

from .cases import PARTIES, cases
from .outcome import Case, Measured, Outcome
from .reference import deal, opened, program_io, words

WARM_UP = 5
"""Runs of a process that are not counted: they load code and touch memory. MP-SPDZ's clock starts when it has loaded."""


def run_case(session: _engine.Session, protocol: str, threshold: int, case: Case, repeats: int) -> Json:
    """A row, `repeats` times with the same shares, at one party: seconds of each, bytes sent, rounds, and what the last gave."""
    shares = deal(session.engine(protocol, case.domain, "deal", threshold), case.shares, case.modulus)
    start, seconds, traffic = shares.length, [], (0, 0)
    for _ in range(repeats):
        mine = shares.copy()
        io = program_io(case, session.party, mine)
        engine = session.engine(protocol, case.domain, " ".join([case.program, *case.args]), threshold)
        total = run_program(engine, program_path(case.program), case.args, io).total
        seconds.append(total.seconds)
        traffic = total.bytes_sent, total.rounds
    appended = opened(session.engine(protocol, case.domain, "open", threshold), mine, start, case.modulus)
    return {
        "seconds": seconds,
        "sent": traffic[0],
        "rounds": traffic[1],
        "appended": appended,
        "public": words(io.binary_outputs, case.modulus),
        "personal": words(io.personal_outputs, case.modulus),
    }


def together(case: Case, results: list[Json]) -> Outcome:
    """What the parties got in common. KeyQuorumError: they got different values."""
    first = results[0]
    if any((r["appended"], r["public"]) != (first["appended"], first["public"]) for r in results):
        raise KeyQuorumError(f"{case.label}: the parties have different outputs")
    return Outcome(first["appended"], first["public"], {i: r["personal"] for i, r in enumerate(results) if r["personal"]})


@party_job("bench:parity", {"protocol": str, "repeats": int, "row": int}, verified=True)
def parity_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:parity``: row number ``row`` of ``protocol``, ``repeats`` times; the results of this party."""
    protocol, case = job["protocol"], cases(job["protocol"])[job["row"]]
    result = run_case(context.session, protocol, context.committee.threshold, case, WARM_UP + job["repeats"])
    return result | {"seconds": result["seconds"][WARM_UP:]}


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
        job = {"kind": "bench:parity", "protocol": self.protocol, "repeats": self.repeats, "row": row}
        results = run_processes(self._folder, job, io_timeout=600)
        first = results[0]
        return Measured(together(case, results), first["seconds"], sum(r["sent"] for r in results) / 1e6, first["rounds"])
