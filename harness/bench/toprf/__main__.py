"""AES-128 under a shared key, the pseudorandom function of a threshold OPRF, beside the figures of paper 003 (params/published/003_table1_oprf.csv).

Systems H and H-128 are the paper's evaluation on LWE ciphertexts without its dealer (:mod:`.lwe`): H with the paper's dimension, H-128 with about 128
bits of security; ``method`` is the rounding, ``wrong`` the blocks that differ from `aes_blocks`.

System F is TFHE-rs's evaluation under jointly made keys (:mod:`.tfhe`); its row is left out where the bridge is not built.

System legendre: the Legendre PRF of 128 symbols (`legendre_prf`), the other function of the service; a block is 16 bytes of output under both. ``method`` is
the degree of its polynomials: ``degree-2`` is what is served, ``degree-1`` the construction of eprint 2024/544. Its random squares are in the online figures.

System native: ``circuit`` evaluates S-boxes by ANDs (`aes_blocks`), ``table`` by one-hot vectors that were made before (`aes_hot`, `aes_blocks_table`). Every party is a
process of this host, over TLS. Blocks and results are shared, as those of a client: its messages to and from the parties are not in the figures.

``ms``: a batch online, the median of several, at the slowest party, without the correlated randomness that it used; ``mb``: what a party sends in it.
``all_mb``: what all parties send in it, as the paper counts bytes of all servers. ``offline_ms``, ``offline_mb``: correlated randomness of a batch (``circuit``: triples
where products take them, ``table``: one-hot vectors), the mean of the counted runs. A small batch uses triples that an earlier one left over, so these two are of use
for batches of 64 and more. ``per_s`` and ``offline_per_s``: blocks a second. ``wrong``: blocks of the last batch that their inverse does not give back. ``busy``: cores that did other work at the
start. Writes results/toprf.csv. The rows of 120 and 180 blocks over the links ``paper004-lan`` and ``paper004-wan`` stand beside tables 8 and 7 of GMPFHE.

    python -m bench.toprf [--system native] [--method table] [--protocol semi2k] [--parties 2,4] [--batch 1,64,4096] [--link none,rtt=1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE_RING, REPLICATED, REPLICATED_RING, RING_WITH_MACS
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.terminal.output import console

from ..runner import CIRCUMSTANCES, Bench, Options, Row, committee_of
from .legendre import LEGENDRE_BATCHES, LEGENDRE_METHODS
from .lwe import ROUNDINGS, SETS
from .native import METHODS
from .tfhe import METHOD, SYSTEM, bridge_is_built, measure_tfhe

LWE_COMMITTEES = ((REPLICATED_RING, 3), (ADDITIVE_RING, 2), (ADDITIVE_RING, 4))
COMMITTEES = ((REPLICATED_RING, 3), (ADDITIVE_RING, 2), (ADDITIVE_RING, 4), (ADDITIVE_RING, 8), (RING_WITH_MACS, 2))
BATCHES, LINKS = (1, 64, 4096), ("none", "rtt=1")
MOST_BY_TABLE = 64
"""Blocks of the largest batch by tables: a block takes 42,240 shares, each a word of 8 bytes in memory."""
MOST_WITH_MACS = 1
AES_BATCHES, AES_LINKS = (120, 180), ("paper004-lan", "paper004-wan")
"""Blocks of tables 8 and 7 of GMPFHE, and its links: AES on shares of two parties, without homomorphic encryption."""
COLUMNS = (
    "system", "method", "protocol", "n", "ms", "mb", "per_s", "batch", "link", "offline_ms", "offline_mb", "offline_per_s", "rounds", "runs", "wrong",
    "request_mb", "bootstraps", "answer_mb", "all_mb", *CIRCUMSTANCES,
)  # fmt: skip
"""Of the table. ``request_mb``, ``answer_mb``, ``bootstraps``: of system F alone: what the client sends to the server that evaluates, and the 128 encrypted bits
that the server sends back, which the parties decrypt."""


@dataclass(frozen=True)
class Measurement:
    """One row."""

    method: str
    protocol: str
    parties: int
    batch: int
    link: str
    system: str = "native"


def job_of(asked: Measurement) -> Json:
    """The job of the parties."""
    job: Json = {"kind": "bench:toprf", "method": asked.method, "batch": asked.batch}
    if asked.system == "legendre":
        job = {"kind": "bench:toprf-legendre", "degree": LEGENDRE_METHODS[asked.method], "batch": asked.batch}
    if asked.system in SETS:
        job = {"kind": "bench:toprf-lwe", "parameters": SETS[asked.system], "rounding": ROUNDINGS[asked.method]}
    return job if asked.link == "none" else {**job, "link": asked.link}


def per_second(batch: int, seconds: float) -> int | str:
    """Blocks a second; nothing where there is no work."""
    return round(batch / seconds) if seconds * 1e9 > 1 else ""


def measure(asked: Measurement) -> Row:
    """The row of a measurement."""
    named: Row = {
        "system": asked.system, "method": asked.method, "protocol": asked.protocol, "n": asked.parties, "batch": asked.batch, "link": asked.link,
    }  # fmt: skip
    if asked.system == SYSTEM:
        return {**named, **measure_tfhe(asked.protocol, asked.parties)}
    with committee_of(asked.protocol, asked.parties) as committee:
        results = run_processes(committee.folder, job_of(asked), io_timeout=600)
    online, offline = (max(r[name] for r in results) for name in ("online", "offline"))
    return {
        **named, "ms": f"{1e3 * online:.2f}", "mb": f"{max(r['sent'] for r in results) / 1e6:.6f}", "per_s": per_second(asked.batch, online),
        "offline_ms": f"{1e3 * offline:.2f}", "offline_mb": f"{max(r['offline_sent'] for r in results) / 1e6:.6f}",
        "offline_per_s": per_second(asked.batch, offline), "rounds": results[0]["rounds"], "runs": min(r["runs"] for r in results),
        "wrong": max(r["wrong"] for r in results), "all_mb": f"{sum(r['sent'] for r in results) / 1e6:.6f}",
    }  # fmt: skip


def published_lines() -> Iterator[str]:
    """The figures of the paper, for an evaluation of one block."""
    for row in published.load("003_table1_oprf"):
        parties = "" if row["parties"] is None else f" n={row['parties']}"
        yield f"toprf: paper=003 protocol={row['protocol']!r}{parties} batch=1 seconds={row['seconds']} mb={row['mb']} (cited, on another machine)"
    for n in (2, 4):
        yield f"toprf: paper=003 formula=2.25t+0.63 n={n} batch=1 mb={2.25 * n + 0.63:.2f}"


def measurements() -> list[Measurement]:
    """All rows, some minutes. Preprocessing with MACs and that of many blocks by tables are left out, since they take longer; so is the largest batch over a
    simulated link, whose latency does not count there."""
    rows = []
    for protocol, parties in COMMITTEES:
        for method in METHODS:
            for batch in BATCHES:
                if batch > (MOST_WITH_MACS if protocol == RING_WITH_MACS else MOST_BY_TABLE if method == "table" else max(BATCHES)):
                    continue
                links = LINKS if batch < max(BATCHES) else LINKS[:1]
                rows += [Measurement(method, protocol, parties, batch, link) for link in links]
    rows += [Measurement("circuit", ADDITIVE_RING, 2, batch, link) for batch in AES_BATCHES for link in AES_LINKS]
    rows += [Measurement(METHOD, REPLICATED, 3, 1, "none", SYSTEM)]
    for method in LEGENDRE_METHODS:
        rows += [Measurement(method, REPLICATED_RING, 3, batch, link, "legendre") for batch in LEGENDRE_BATCHES for link in LINKS]
    systems = [(system, *committee) for system in SETS for committee in LWE_COMMITTEES]
    rows += [Measurement(method, protocol, n, 1, link, system) for system, protocol, n in systems for method in METHODS for link in LINKS]
    return rows


def job(case: Measurement, options: Options) -> Iterator[Row]:
    """A measurement; none of system F without its bridge."""
    if case.system == SYSTEM and not bridge_is_built():
        console.print(f"system {SYSTEM} is left out: the bridge to TFHE-rs is not built (make tfhe-bridge)", markup=False)
        return
    yield measure(case)


BENCH = Bench(
    "toprf", lambda options: measurements(), job, COLUMNS, published_lines, axes=("system", "method", "protocol", "parties", "batch", "link"),
    failed=lambda rows: any(row["wrong"] for row in rows),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
