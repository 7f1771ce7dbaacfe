"""ANDs of our key generation (appendix A of the paper), and powers by tuples or by triples (section 4.3)."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keyquorum._engine import Engine, Session
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ProgramIO
from keyquorum.dsl import run_program as run_embedded
from keyquorum.dsl.control.control import Timer
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.schemes.seal.keygen import SealRequest, generate

from ..runner import Row, committee_of
from .beside import Asked, Cost, compare, paper_figure
from .cnn import KEY_SETS, QUICK_SET
from .methods import BATCH, PRIMES, QUICK_BATCH

OTHERS = {"squares": "squares", "bits": "bits that are converted"}
"""Other correlated randomness of a key generation: nothing of the paper is beside it."""
POWERS = {
    "quartic tuple": (
        "r = sint.get_random(size=n)", "start_timer(1)", "t = [1, r, r * r]", "t += [r * t[2], t[2] * t[2]]", "stop_timer(1)",
        "start_timer(2)", "e = (x - r).reveal()", "e2 = e * e", "e3, e4 = e2 * e, e2 * e2", "a = t[2] + 2 * e * r + e2", "b = t[3] + 3 * e * t[2] + 3 * e2 * r + e3",
        "c = t[4] + 4 * e * t[3] + 6 * e2 * t[2] + 4 * e3 * r + e4", "stop_timer(2)",
    ),
    "triples": ("start_timer(2)", "y = x + 1", "a = x * y - x", "b = a * x", "y = a + 1", "c = a * y - a", "stop_timer(2)"),
}  # fmt: skip
"""Programs for a = x^2, b = x^3 and c = x^4 of a secret x: from a tuple (r, r^2, r^3, r^4), made under timer 1, with one opening; or by three triples (x (x + 1) - x is
a product of two factors, where this engine would take a square)."""
SAVED = {"online": 83, "offline": 50}
"""Percent of the cost of triples that the paper's tuples save, by its text: it does not say for how many parties, or whether in time or in bytes."""


class _Watched:
    """A session that remembers its engines."""

    def __init__(self, session: Session) -> None:
        self._session, self.engines = session, list[Engine]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def engine(self, *words: Any) -> Engine:
        """As that of the session."""
        self.engines.append(self._session.engine(*words))
        return self.engines[-1]


@party_job("bench:paper004-ands", {"parameters": str, "error_law": str})
def ands_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:paper004-ands``: one key generation; the items of correlated randomness that its programs used, by kind."""
    watched: Any = _Watched(context.session)
    counting = PartyContext(context.session, context.committee, backend=Embedded(watched))
    generate(counting, SealRequest(load_parameters(job["parameters"], warn=False), error_law=job["error_law"]))
    used: Counter[str] = Counter()
    for engine in watched.engines:
        used.update({name: count for name, (_, count) in engine.preprocessed().items()})
    return {"used": dict(used)}


def and_rows(asked: Asked) -> Iterator[Row]:
    """Appendix A: the ANDs of a whole key generation, counted, beside those that the paper computes for key generation by binary circuits alone."""
    name = QUICK_SET if asked.quick else KEY_SETS[0].name
    with committee_of(ADDITIVE, asked.parties) as committee:
        results = run_processes(
            committee.folder, {"kind": "bench:paper004-ands", "parameters": name, "error_law": KEY_SETS[0].error_law}, io_timeout=900
        )
    used = results[0]["used"]
    row: Row = {"table": "A", "row": f"ANDs of key generation {name}", "cell": "CKKS", "method": "counted", "best": "yes", "q_bits": "", "batch": 1}
    paper = None if asked.quick else paper_figure("A", {"protocol": "CKKS"}, 0, "total_and_gates")
    yield compare(row | asked.columns | {"runs": 1}, "total_and_gates", used["ands"], paper)
    for kind, text in OTHERS.items():
        yield compare(row | asked.columns | {"row": f"{text} of key generation {name}", "runs": 1}, "count", used[kind], None)


def _source(way: str) -> str:
    """The program of a way. It prints by how much its first results are wrong."""
    wrong = [
        f"print_ln('%s', ({value} - {power}).get_vector(0, 1).reveal()[0])"
        for value, power in (("a", "x * x"), ("b", "x * x * x"), ("c", "x * x * x * x"))
    ]
    return "\n".join(["n = int(program.args[1])", "x = sint.get_random(size=n)", *POWERS[way], *wrong, ""])


def _spent(seconds: float, sent: int) -> Json:
    return {"seconds": seconds, "sent": sent, "cpu": 0.0}


@party_job("bench:paper004-powers", {"way": str, "size": int, "repeats": int})
def powers_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:paper004-powers``: powers of ``size`` secrets, ``repeats`` times after one run that is not counted. Offline is what does not depend on the
    secret: the correlated randomness of triples, or tuples and their own products."""
    protocol, domain, threshold = context.committee.field_protocol, f"F_{PRIMES[60]}", context.committee.threshold
    runs: dict[str, list[Json]] = {"online": [], "offline": []}
    printed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="keyquorum-powers-") as folder:
        program = Path(folder) / "powers.mpc"
        program.write_text(_source(job["way"]))
        for _ in range(1 + job["repeats"]):
            context.session.compare("start of a run", b"")
            engine = context.session.engine(protocol, domain, job["way"], threshold)
            timers = run_embedded(engine, program, [str(job["size"])], ProgramIO(stdout=printed.append)).timers
            whole, made = timers[2], timers.get(1, Timer())
            runs["online"].append(_spent(whole.seconds - whole.offline_seconds, whole.bytes_sent - whole.offline_bytes_sent))
            runs["offline"].append(_spent(made.seconds + whole.offline_seconds, made.bytes_sent + whole.offline_bytes_sent))
    return {**{name: spent[1:] for name, spent in runs.items()}, "wrong": sum(line.strip() != "0" for line in printed)}


def power_rows(asked: Asked) -> Iterator[Row]:
    """Section 4.3: time and bytes of the powers by both ways, online and offline, and what tuples save, beside the two percentages of the text."""
    size, saved = QUICK_BATCH if asked.quick else BATCH, dict[tuple[str, str, str], float]()
    base: Row = {"table": "4.3", "cell": "powers", "best": "yes", "q_bits": 60, "batch": size, **asked.columns}
    for way in POWERS:
        with committee_of(ADDITIVE, asked.parties) as committee:
            job = {"kind": "bench:paper004-powers", "way": way, "size": size, "repeats": asked.repeats, **asked.job}
            results = run_processes(committee.folder, job, io_timeout=900)
        for phase in SAVED:
            cost = Cost.of([r[phase] for r in results], size)
            row: Row = base | {"row": f"powers up to 4, {phase}", "method": way, "wrong": sum(int(r["wrong"]) for r in results)}
            saved[way, phase, "time"], saved[way, phase, "bytes"] = cost.seconds, cost.sent_by_all
            yield compare(row, "us", cost.seconds, None)
            yield compare(row, "communication_kb", cost.sent, None, {"ours_all_parties": cost.sent_by_all, "sent_by_a_party": cost.sent})
    for phase, percent in SAVED.items():
        for what in ("time", "bytes"):
            tuples, triples = saved["quartic tuple", phase, what], saved["triples", phase, what]
            row = base | {"row": f"powers up to 4, {phase}, {what} that tuples save", "method": "quartic tuple"}
            yield compare(row, "saved_percent", 100 * (1 - tuples / triples) if triples else 0.0, percent)


__all__ = ["SAVED", "and_rows", "power_rows"]
