"""The job ``sweep:program``: one program of a sweep at one party of the embedded engine, several times in one session."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from keyquorum.dsl import ProgramIO, run_program
from keyquorum.dsl.control.control import Timer
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext, PhaseReport, RunReport, peak_memory
from keyquorum.parties.jobs import party_job

from .programs import PROGRAMS, Setting


def phases_of(timer: Timer, cpu_seconds: float = 0.0) -> list[PhaseReport]:
    """The offline phase, if it is not empty, and the online phase. CPU time is known for both together, and is in the last phase."""
    online = PhaseReport(
        "online",
        timer.seconds - timer.offline_seconds,
        timer.bytes_sent - timer.offline_bytes_sent,
        timer.bytes_received - timer.offline_bytes_received,
        timer.rounds - timer.offline_rounds,
        cpu_seconds,
    )
    if not timer.offline_rounds:
        return [online]
    offline = (timer.offline_seconds, timer.offline_bytes_sent, timer.offline_bytes_received, timer.offline_rounds)
    return [PhaseReport("offline", *offline, 0.0, *offline), online]


@party_job("sweep:program", {"suite": str, "name": str, "protocol": str, "batch": int, "warm_up": int, "repeats": int}, verified=True)
def bench_job(context: PartyContext, job: Json) -> Json:
    """The job ``sweep:program``: program ``name`` of ``suite`` under ``protocol``, with ``batch`` results. ``warm_up`` runs are not measured,
    ``repeats`` runs are, with a report each. After ``patience`` seconds, by party 0's clock, no further run starts."""
    program = PROGRAMS.get((job["suite"], job["name"]))
    if program is None:
        raise ParameterError(f"the suite {job['suite']!r} has no program {job['name']!r}: write the job again")
    committee, session = context.committee, context.session
    here = Setting(job["protocol"], context.parties, committee.threshold, job["batch"], context.party)
    words = [str(a) for a in program.arguments(here)]
    rng, reports = np.random.default_rng(), []
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        path = Path(folder) / "bench.mpc"
        if program.source:
            path.write_text(program.source)
        start = time.monotonic()
        for i in range(job["warm_up"] + job["repeats"]):
            impatient = b"1" if time.monotonic() - start > job["patience"] else b"0"
            if i and session.all_gather(impatient)[0] == b"1":
                break
            engine = session.engine(here.protocol, here.domain, f"bench {program.name}", committee.threshold)
            io = ProgramIO(private_inputs=program.inputs(here, rng), stdout=lambda _: None)
            session.compare("start", b"")  # so that the run does not include waiting for a party that still prepares
            cpu = time.process_time()
            result = run_program(engine, path if program.source else program.path, words, io)
            cpu = time.process_time() - cpu
            report = RunReport(context.party, phases_of(result.timers.get(1, result.total), cpu), peak_memory(), cpu)
            report.link = context.report.link
            report.unused = {name: made - used for name, (made, used) in engine.preprocessed().items() if made > used}
            reports.append(report.to_json())
    return {"reports": reports[job["warm_up"] :] or reports[-1:]}
