"""Shares of an LWE key for any t of T parties, beside figure 5 of paper 003, which is drawn without numbers; its text has 0.03 ms for a threshold decryption.

A binary key of the paper's dimension and modulus (n = 512, q = 2^32). ``share_ms``, ``share_mb``: the parties make the shares of all subsets from their own, each
a process of this host, over TLS; the median of several runs at the slowest party, and what a party sends in one. ``stored_kb``: shares of a party.
``partial_us``: the dot product of a ciphertext and a share; ``partial_batch_us``: the same of each of 4,096 ciphertexts together; ``combine_us``: the sum of t
of them and its rounding; ``plain_us``: decryption with the key. These three are local: medians in this process, on one core, with numpy.

**Partial decryptions must not be sent**: with the noise of the ciphertext they give the key away. The paper adds smudging noise; here t parties round exactly, by
`round_ltz_circuit`. ``exact_ms``: of a single decryption online, ``exact_batch_us``: of each of 1,024 together; ``wrong``: results that are wrong.

``peak_mb``: memory of the largest process that shared, ``base_mb``: before it shared. ``busy``: cores that did other work at the start. Writes
results/lisss.csv. ``--largest`` measures a sharing near the 64 MB that a party stores at most, and writes results/lisss_largest.csv.

    python -m bench.toprf.lisss [--members 3] [--parties 5] [--largest]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE_RING
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext, peak_memory
from keyquorum.parties.jobs import party_job
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool
from keyquorum.plans.share import share_vector
from keyquorum.programs import signatures
from keyquorum.schemes.keys import SecretVector
from keyquorum.schemes.subset_shares import MOST_BYTES, own_subsets, vector_bytes
from keyquorum.sweep.decryption import common_start

from ..baselines.toprf_lwe.parameters import gate_parameters
from ..baselines.toprf_lwe.tables import gate_rounding
from ..clock import Clock
from ..runner import CIRCUMSTANCES, Bench, Options, Row, committee_of

Words = NDArray[np.uint64]
Half = NDArray[np.uint32]
SET = gate_parameters("lwe32-p2-seed003")
VECTOR = SecretVector(SET.domain, SET.dimension)
ROWS = ((2, 2), (2, 3), (3, 5), (4, 7), (5, 8), (5, 10))
"""Pairs (t, T) of our choice: the paper draws figure 5 without its pairs."""
LARGEST, LARGEST_VECTOR = (8, 16), SecretVector("Z2^64", 1024)
"""(t, T) of a sharing of a key of lwe64-p2, of 52.7 MB at a party."""
RUNS, LOCAL_RUNS, BATCH, EXACT_BATCH = 5, 201, 4096, 1024


@party_job("bench:lisss", {"members": int, "runs": int, "domain": str, "length": int})
def share_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:lisss``: the sharing of a new key, several times. ``shares``: this party's in the first and in the last subset, if it is in them."""
    committee, members, vector = context.committee, job["members"], SecretVector(job["domain"], job["length"])
    protocol, secret = committee.ring_protocol, ShareVector()
    if protocol is None:
        raise KeyQuorumError(f"{committee.protocol} has no shares modulo 2^32: take {ADDITIVE_RING}")
    context.backend.run(protocol, vector.domain, signatures.sample_bits(size=vector.length), shares=secret)
    base, seconds, sent = peak_memory(), list[float](), 0
    made = np.zeros((0, 0), np.uint8)
    for _ in range(job["runs"]):
        common_start(context)
        clock = Clock(context)
        made = share_vector(context, vector, members, secret.words)
        spent = clock.lap()
        seconds.append(spent["seconds"])
        sent = spent["sent"]
    own, subsets = own_subsets(context.parties, members, context.party), list(combinations(range(context.parties), members))
    shares = {place: made[own.index(subsets[place])].tobytes().hex() for place in (0, -1) if subsets[place] in own}
    return {"seconds": statistics.median(seconds), "sent": sent, "stored": made.size, "base": base, "peak": peak_memory(), "shares": shares}


@party_job("bench:lisss-exact", {})
def exact_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:lisss-exact``: exact roundings of single phases and of a batch, among parties that are as many as a subset has."""
    group, variant = pool_group(context), gate_rounding(context.committee, SET)
    pool = Pool(context, group, variant)
    wrong, singles, batch = 0, list[float](), 0.0
    try:
        pool.fill(2 * EXACT_BATCH + RUNS + 1)
        for count in (*[1] * (RUNS + 1), EXACT_BATCH, EXACT_BATCH):  # the first run of each form is not counted
            messages = np.arange(count, dtype=np.uint64) % np.uint64(2)
            z = np.zeros((group.parts, count), np.uint64)
            if 0 in group.held:
                z[group.held.index(0)] = (messages << np.uint64(SET.noise_length)) + np.uint64(1 << (SET.noise_length - 1))
            common_start(context)
            start = time.perf_counter()
            words = pool.decrypt(z, f"{count} phases", "all")
            batch = time.perf_counter() - start
            assert words is not None
            wrong += int((variant.messages(words[0]) != messages.astype(np.int64)).sum())
            if count == 1:
                singles.append(batch)
    finally:
        pool.close()
    return {"single": statistics.median(singles[1:]), "batch": batch / EXACT_BATCH, "wrong": wrong}


def _median_us(function: Callable[[int], object]) -> float:
    """Microseconds of a call, given its number."""
    spent = []
    for number in range(LOCAL_RUNS):
        start = time.perf_counter()
        function(number)
        spent.append(time.perf_counter() - start)
    return 1e6 * statistics.median(spent)


def local_steps(shares: list[Half]) -> tuple[dict[str, float], int]:
    """Microseconds of the local steps of a decryption, and wrong results. ``shares``: of all members of a subset."""
    rng, secret = np.random.default_rng(), sum(shares[1:], shares[0].copy())
    a = rng.integers(0, 1 << 32, (BATCH, SET.dimension), np.uint32)
    bits = rng.integers(0, 2, BATCH, np.uint32)
    noise = rng.integers(-(1 << SET.noise_bound), 1 << SET.noise_bound, BATCH).astype(np.uint32)
    b = a @ secret + noise + (bits << np.uint32(SET.noise_length))
    half, shift = np.uint32(1 << (SET.noise_length - 1)), np.uint32(SET.noise_length)

    def combined(i: int, parts: list[Half]) -> Half:
        """An array of one word, whose arithmetic is modulo 2^32."""
        total = b[i : i + 1].copy()
        for part in parts:
            total -= part[i : i + 1]
        return (total + half) >> shift

    partials = [a @ share for share in shares]
    wrong = sum(int(combined(i, partials)[0] != bits[i]) for i in range(BATCH))
    return {
        "partial_us": _median_us(lambda i: a[i] @ shares[0]),
        "partial_batch_us": _median_us(lambda i: a @ shares[0]) / BATCH,
        "combine_us": _median_us(lambda i: combined(i, partials)),
        "plain_us": _median_us(lambda i: (b[i : i + 1] - a[i] @ secret + half) >> shift),
    }, wrong


def _committee_results(parties: int, job: Json) -> list[Json]:
    with committee_of(ADDITIVE_RING, parties) as committee:
        return run_processes(committee.folder, job, io_timeout=900)


def _subset_shares(results: list[Json], place: str) -> list[Half]:
    found = [bytes.fromhex(result["shares"][place]) for result in results if place in result["shares"]]
    return [np.frombuffer(data, "<u4").astype(np.uint32) for data in found]


def sharing(members: int, parties: int, vector: SecretVector = VECTOR, runs: int = RUNS) -> tuple[list[Json], Row]:
    """What the parties measured of the sharing of a vector, and the columns of it. Raises KeyQuorumError if a party stored more than it may."""
    job = {"kind": "bench:lisss", "members": members, "runs": runs, "domain": vector.domain, "length": vector.length}
    results = _committee_results(parties, job)
    stored = comb(parties - 1, members - 1) * vector_bytes(vector.length, int(vector.domain[3:]))
    if any(result["stored"] != stored for result in results) or stored > MOST_BYTES:
        raise KeyQuorumError(f"{members} of {parties}: a party stored other bytes than {stored:,}: this is a bug")
    return results, {
        "t": members, "T": parties, "n": vector.length, "share_ms": f"{1e3 * max(r['seconds'] for r in results):.2f}",
        "share_mb": f"{max(r['sent'] for r in results) / 1e6:.6f}", "stored_kb": f"{stored / 1e3:.3f}",
        "peak_mb": f"{max(r['peak'] for r in results) / 1e6:.1f}", "base_mb": f"{max(r['base'] for r in results) / 1e6:.1f}", "runs": runs,
    }  # fmt: skip


def measure(members: int, parties: int) -> Row:
    """The row of a pair (t, T)."""
    results, shared = sharing(members, parties)
    first, last = (_subset_shares(results, place) for place in ("0", "-1"))
    assert len(first) == len(last) == members
    steps, wrong = local_steps(first)
    secrets = [sum(shares[1:], shares[0].copy()) for shares in (first, last)]
    wrong += int((secrets[0] != secrets[1]).sum()) + int((secrets[0] > 1).sum())
    several = _committee_results(members, {"kind": "bench:lisss-exact"})
    return {
        **shared, **{name: f"{us:.3f}" for name, us in steps.items()}, "exact_ms": f"{1e3 * max(r['single'] for r in several):.3f}",
        "exact_batch_us": f"{1e6 * max(r['batch'] for r in several):.3f}", "wrong": wrong + max(r["wrong"] for r in several),
    }  # fmt: skip


def published_lines() -> Iterator[str]:
    """What the paper's text says of a threshold decryption (figures 3 and 5 are drawn without numbers), and its formulas of figure 4 for our t."""
    (row,) = [row for row in published.load("003_sections1_3_timings") if row["operation"] == "threshold decryption"]
    yield f"lisss: paper=003 operation='threshold decryption' us={1e3 * float(str(row['ms'])):g} (cited, for any t and T, on another machine)"
    for row in published.load("003_section3_communication"):
        if row["direction"] == "both" and row["mb_fixed"] is not None:
            each, fixed = float(str(row["mb_per_threshold"])), float(str(row["mb_fixed"]))
            for t in dict.fromkeys(members for members, _ in ROWS):
                yield f"lisss: paper=003 figure=4 version={row['version']} t={t} mb={each * t + fixed:.2f} (its formula, for an evaluation of AES)"


@dataclass(frozen=True)
class Case:
    """A pair (t, T); ``largest``: a sharing alone."""

    members: int
    parties: int
    largest: bool = False


def cases(options: Options) -> list[Case]:
    """The six pairs, or the largest sharing."""
    return [Case(*LARGEST, True)] if options.largest else [Case(*pair) for pair in ROWS]


def measured(case: Case, given: Options) -> list[Row]:
    """The row of a pair."""
    return [sharing(*LARGEST, LARGEST_VECTOR, 1)[1] if case.largest else measure(case.members, case.parties)]


SHARED = ("t", "T", "n", "share_ms", "share_mb", "stored_kb", "peak_mb", "base_mb", "runs")
STEPS = ("partial_us", "partial_batch_us", "combine_us", "plain_us", "exact_ms", "exact_batch_us", "wrong")
BENCH = Bench(
    "lisss", cases, measured, (*SHARED, *STEPS, *CIRCUMSTANCES), published_lines, table=lambda given: "lisss_largest" if given.largest else "lisss",
    axes=("members", "parties"), options={"largest": {"action": "store_true", "help": "a sharing near the limit on the disk, once"}},
    failed=lambda rows: any(row.get("wrong") for row in rows),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
