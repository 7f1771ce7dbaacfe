"""Primitives on the embedded engine, and beside them on MP-SPDZ, all parties on this host: small programs that run unmodified on both, one process a party
over encrypted links. Medians. MP-SPDZ's columns need MP_SPDZ_HOME, a built checkout.

``dishonest``: two parties, a dishonest majority. Correlated randomness is made within the measured time, base OTs before it. Figures are those of an item: bytes
and CPU time of both parties together (for MP-SPDZ: CPU time of the whole run, minus that of a run with a hundredth of the items). CPU time depends little on
other work on the machine. The exit code is 1 if ours is slower anywhere.

``verified``: three parties, an honest majority and malicious parties: the protocols that verify all products together, the semi-honest protocols below them, and
MP-SPDZ's executables for malicious parties; those that are not built are left out. What is measured is the whole program, with its preprocessing, and with all
checks before its output: by the clock of the slowest party, of MP-SPDZ by the time that party 0 prints; bytes are those of all parties.

    python -m bench.primitives dishonest [--repeats 5] [--row and_triples]
    python -m bench.primitives verified [--repeats 5] [--items 1000000] [--protocol mal-shamir]
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from keyquorum.backends.mpspdz import Checkout, Players, Way, run_program
from keyquorum.backends.mpspdz.workdir import WorkFolder
from keyquorum.dsl import ProgramIO
from keyquorum.dsl import run_program as run_embedded
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING, RING_WITH_MACS, WITH_MACS, split_options
from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS, Protocol
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.terminal.output import console

from .runner import Arguments, Bench, Options, Row, committee_of, one_of

RING, FIELD = "Z2^64", "F_1152921504606584833"
CPU_BOUND = 0.75
"""Share of the processors' time above which a row counts as bound by the CPU."""
ITEMS = 1_000_000


@dataclass(frozen=True)
class Primitive:
    """A program for ``items`` items, its second argument. If it has timer 1, that is what is measured, and otherwise the whole program."""

    row: str
    protocol: str
    domain: str
    parties: int
    items: int
    source: str


def timed(row: str, protocol: str, domain: str, items: int, before: str, measured: str, after: str) -> Primitive:
    """Of two parties: ``before`` makes operands, ``measured`` runs under the timer, ``after`` uses the result ``z``."""
    lines = ["n = int(program.args[1])", *before.split("; "), "start_timer(1)", measured, "stop_timer(1)", after, ""]
    return Primitive(row, protocol, domain, 2, items, "\n".join([*filter(None, lines), ""]))


ELEMENTS = "x = sint.get_random(size=n); y = sint.get_random(size=n)"
BITS = "; ".join(f"{v} = sint.get_random(size=n).split_to_n_summands(1, 2)[0][0]" for v in "xy")
TOTAL = "print_ln('%s', z.get_vector(0, 1).reveal())"
DISHONEST = [
    timed("random_bits_z2_64", ADDITIVE_RING, RING, 100_000, "", "z = sint.get_random_bit(size=n)", TOTAL),
    timed("random_bits_field", ADDITIVE, FIELD, 100_000, "", "z = sint.get_random_bit(size=n)", TOTAL),
    timed("triples_z2_64", ADDITIVE_RING, RING, 100_000, ELEMENTS, "z = x * y", TOTAL),
    timed("triples_field", ADDITIVE, FIELD, 100_000, ELEMENTS, "z = x * y", TOTAL),
    timed("triples_spdz2k", RING_WITH_MACS, RING, 20_000, ELEMENTS, "z = x * y", TOTAL),
    timed("triples_mascot", WITH_MACS, FIELD, 20_000, ELEMENTS, "z = x * y", TOTAL),
    timed("and_triples", ADDITIVE_RING, RING, 1_000_000, BITS, "z = x & y", "z.reveal()"),
    timed("comparisons_64", ADDITIVE_RING, RING, 10_000, ELEMENTS, "z = x < y", TOTAL),
]
PROGRAMS = {"products": f"{ELEMENTS}; z = x * y", "random_bits": "z = sint.get_random_bit(size=n)"}
"""Programs that are measured as a whole; their output is behind all checks."""
KINDS = ("ps", "sy")
"""MP-SPDZ's other executables for the same shares: postprocessing (Lindell and Nof, CCS 2017), and verification as in SPDZ (Chida et al., CRYPTO 2018)."""


@dataclass(frozen=True)
class Cost:
    """Of all items: seconds of the slowest party, bytes that all parties sent, rounds; processor seconds of all parties (0: not measured)."""

    seconds: float
    bytes: int
    rounds: int
    cpu: float = 0.0


def _run(context: PartyContext, asked: Primitive, repeats: int) -> list[Json]:
    results = []
    with tempfile.TemporaryDirectory(prefix="keyquorum-primitives-") as folder:
        program = Path(folder) / f"{asked.row}.mpc"
        program.write_text(asked.source)
        for _ in range(1 + repeats):  # the first run of a process loads code
            context.session.compare("start of a run", b"")
            start, cpu = time.monotonic(), time.process_time()
            engine = context.session.engine(asked.protocol, asked.domain, asked.row, context.committee.threshold)
            timer = run_embedded(engine, program, [str(asked.items)], ProgramIO(stdout=lambda _: None)).timers.get(1)
            seconds, cpu, stats = time.monotonic() - start, time.process_time() - cpu, engine.stats()
            if timer is not None:
                seconds, stats = timer.seconds, {"bytes_sent": timer.bytes_sent, "rounds": timer.rounds}
            results.append({"seconds": seconds, "sent": stats["bytes_sent"], "rounds": stats["rounds"], "cpu": cpu})
    return results[1:]


@party_job("bench:primitives", {"primitive": dict, "repeats": int}, verified=True)
def primitives_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:primitives``: a :class:`Primitive`, ``repeats`` times; the costs at this party."""
    return {"runs": _run(context, Primitive(**job["primitive"]), job["repeats"])}


def ours(asked: Primitive, repeats: int) -> Cost:
    """A row on the embedded engine, processes of this host over TLS."""
    with committee_of(asked.protocol, asked.parties) as committee:
        results = run_processes(committee.folder, {"kind": "bench:primitives", "primitive": asdict(asked), "repeats": repeats}, io_timeout=600)
    runs = [[r["runs"][i] for r in results] for i in range(repeats)]
    seconds = statistics.median(max(one["seconds"] for one in run) for run in runs)
    cpu = statistics.median(sum(one["cpu"] for one in run) for run in runs)
    return Cost(seconds, sum(one["sent"] for one in runs[-1]), runs[-1][0]["rounds"], cpu)


def theirs(asked: Primitive, repeats: int, checkout: Checkout, peer: Protocol | None = None) -> Cost:
    """A row on MP-SPDZ; ``peer``: the description of another executable for the same shares. Its timers have party 0's traffic, which in a symmetric protocol
    is that of each party."""
    protocol, folder = PROTOCOLS[asked.protocol], WorkFolder()
    entry = peer or protocol

    def measure(items: int, count: int) -> tuple[list[Cost], float]:
        """Costs of ``count`` runs, and the median of the CPU time of a whole run."""
        costs, used = [], []
        for i in range(1 + count):  # the first run compiles
            before = os.times()
            run = run_program(
                Players(checkout, entry, asked.parties, asked.domain, 1 if entry.chooses_threshold else None), program, [items],
                way=Way(folder=folder, compiler=split_options(protocol, asked.parties), compiled=i > 0),
            )  # fmt: skip
            after = os.times()
            timer = run.result.timers.get(1)
            costs.append(
                Cost(run.seconds, run.bytes_global, run.rounds)
                if timer is None
                else Cost(timer.seconds, asked.parties * timer.bytes_sent, timer.rounds)
            )
            used.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return costs[1:], statistics.median(used[1:])

    try:
        program = folder.path / f"kq_{asked.row}.mpc"
        program.write_text(asked.source)
        costs, cpu = measure(asked.items, repeats)
        few = asked.items // 100
        _, start = measure(few, min(repeats, 3)) if peer is None else ([], cpu)
    finally:
        folder.close()
    spent = max(0.0, cpu - start) / (asked.items - few) * asked.items
    return replace(costs[-1], seconds=statistics.median(cost.seconds for cost in costs), cpu=spent)


def side_by_side(asked: Primitive, repeats: int, mine: Cost, other: Cost | None) -> Row:
    """A row of items of both engines. MP-SPDZ's columns are empty where it was not measured."""
    busy = mine.cpu / mine.seconds / min(os.cpu_count() or 1, asked.parties)
    row: Row = {
        "row": asked.row, "protocol": asked.protocol, "domain": asked.domain, "parties": asked.parties, "items": asked.items, "repeats": repeats,
        "bound_by": "CPU" if busy >= CPU_BOUND else "waiting: for the peer, or for a processor",
        "ratio": "" if other is None else round(other.seconds / mine.seconds, 2),
    }  # fmt: skip
    for name, cost in (("embedded", mine), ("mpspdz", other)):
        row[f"{name}_per_s"] = "" if cost is None else round(asked.items / cost.seconds)
        row[f"{name}_bytes"] = "" if cost is None else round(cost.bytes / asked.items, 2)
        row[f"{name}_rounds"] = "" if cost is None else cost.rounds
        row[f"{name}_cpu_us"] = "" if cost is None else round(1e6 * cost.cpu / asked.items, 3)
    return row


def dishonest(case: Primitive, options: Options) -> Iterator[Row]:
    """A row, one engine right after the other."""
    mine = ours(case, options.repeats)
    yield side_by_side(case, options.repeats, mine, theirs(case, options.repeats, options.checkout) if options.checkout else None)


def below(protocol: Protocol) -> Protocol:
    """The semi-honest protocol whose products are verified."""
    same = (protocol.sharing, protocol.field, protocol.ring)
    return next(p for p in PROTOCOLS.values() if p.adversary == "semi-honest" and (p.sharing, p.field, p.ring) == same)


def peers(protocol: Protocol) -> Iterator[tuple[str, Protocol]]:
    """MP-SPDZ's executables for a protocol and malicious parties, with their descriptions. Their scripts have the names of MP-SPDZ's ``-E``."""
    assert protocol.mp_spdz is not None, "verified protocols have a peer"
    own = protocol.mp_spdz.long_name
    for executable in (own, *(f"{kind}-{own.split('-', 1)[1]}" for kind in KINDS)):
        name = protocol.name if executable == own else executable
        yield executable, replace(protocol, name=name, mp_spdz=replace(protocol.mp_spdz, binary=f"{executable}-party.x"))


def whole_programs(options: Options) -> list[Primitive]:
    """Each program under each protocol that verifies products."""
    return [
        Primitive(row, p.name, FIELD if p.field else RING, 3, options.items, "\n".join(["n = int(program.args[1])", *text.split("; "), TOTAL, ""]))
        for p in PROTOCOLS.values()
        if p.verifies_products
        for row, text in PROGRAMS.items()
    ]


def verified(case: Primitive, options: Options) -> list[Row]:
    """The rows of a program: the embedded engine's two, and MP-SPDZ's executables."""
    protocol, checkout = PROTOCOLS[case.protocol], options.checkout
    plain = replace(case, protocol=below(protocol).name)
    found = [("embedded", each.protocol, ours(each, options.repeats)) for each in (plain, case)]
    if checkout is not None:
        found += [("MP-SPDZ", name, theirs(case, options.repeats, checkout, peer)) for name, peer in peers(protocol) if checkout.has(peer)]
    rows: list[Row] = [
        {
            "row": case.row, "protocol": protocol.name, "engine": engine, "program_of": name, "items": case.items, "seconds": round(cost.seconds, 4),
            "mb": round(cost.bytes / 1e6, 2), "rounds": cost.rounds, "cpu_seconds": round(cost.cpu, 3) if cost.cpu else "", "repeats": options.repeats,
        }
        for engine, name, cost in found
    ]  # fmt: skip
    console.print(f"{case.row} of {protocol.name}: {factors(rows)}", markup=False, soft_wrap=True)
    return rows


def factors(rows: Sequence[Row]) -> str:
    """Time and bytes of the verified protocol divided by those of the semi-honest one, and by the least of MP-SPDZ's."""
    plain, mine, others = rows[0], rows[1], rows[2:]
    text = f"{float(mine['seconds']) / float(plain['seconds']):.2f} times the time of {plain['program_of']}, {float(mine['mb']) / float(plain['mb'] or 1):.2f} times the bytes"
    if others:
        time_of, bytes_of = (min(float(other[key]) for other in others) for key in ("seconds", "mb"))
        text += f"; {float(mine['seconds']) / time_of:.2f} times the time of MP-SPDZ, {float(mine['mb']) / bytes_of:.2f} times the bytes"
    return text


def slower(rows: Sequence[Row]) -> bool:
    """Whether an executable of MP-SPDZ is faster than the verified protocol."""
    mine = {
        (row["row"], row["protocol"]): float(row["seconds"]) for row in rows if row["engine"] == "embedded" and row["program_of"] == row["protocol"]
    }
    return any(float(row["seconds"]) < mine[row["row"], row["protocol"]] for row in rows if row["engine"] != "embedded")


REPEATS: Arguments = {"repeats": {"type": int, "default": 5, "help": "runs of each row (default 5)"}}
ORIGIN = ("version", "mpspdz_commit", "machine", "cores")
BENCHES = {
    "dishonest": Bench(
        "dishonest", lambda options: DISHONEST, dishonest,
        (
            "row", "protocol", "domain", "parties", "items", "repeats", "bound_by", "embedded_per_s", "embedded_bytes", "embedded_rounds", "embedded_cpu_us",
            "mpspdz_per_s", "mpspdz_bytes", "mpspdz_rounds", "mpspdz_cpu_us", "ratio", *ORIGIN,
        ),
        axes=("row",), options=REPEATS, failed=lambda rows: any(row["ratio"] != "" and float(row["ratio"]) < 1 for row in rows),
    ),
    "verified": Bench(
        "verified", whole_programs, verified,
        ("row", "protocol", "engine", "program_of", "items", "seconds", "mb", "rounds", "cpu_seconds", "repeats", *ORIGIN),
        axes=("row", "protocol"), restricting=("items",), failed=slower,
        options={**REPEATS, "items": {"type": int, "default": ITEMS, "help": f"products or bits (default {ITEMS:,}: with others no table is written)"}},
    ),
}  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(one_of(BENCHES))
