"""One measurement of threshold decryption with a pool: the job of the parties, and the row of a table. See :mod:`keyquorum.bench.decrypt`."""

from __future__ import annotations

import os
import platform
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import keyquorum
from keyquorum import api
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.plans.pool_store import packed_bytes
from keyquorum.plans.pool_variants import pool_group, variant_of
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.seal.ring_variant import RingVariant
from keyquorum.sharing.field_variant import FieldVariant
from keyquorum.sharing.rounding import RoundingGroup
from keyquorum.sharing.variants import Preprocessing, Variant

from .keygen import Row
from .workloads import Batch, LweWork, Words, workload

BATCH = 4096
"""Decryptions in one batch: the coefficients of one ciphertext of ``bfv-4096``."""
TABLE_BATCH = 1024
"""The same for `round_ltz_table`, whose items take 5 KB each, and 20 KB while they are made."""
TURN = 32
"""Batches between two fillings of the pool."""
LATENCY_RUNS = 101
SETTLING = 0.01
"""Seconds between the moment when the last party was ready and the common start, so that all parties are idle."""
PAUSE = 0.05
"""Seconds after a single decryption until a party prepares the next one, which would slow down parties that have not finished."""
LATENCY_LINK = "rtt=1"
"""1 ms ping: 0.5 ms one way, by the link shaper of the engine."""


@dataclass(frozen=True)
class Configuration:
    """One measurement: a rounding, a parameter set, a committee with its openings, and the number of decryptions."""

    rounding: str
    width: int
    levels: int
    parameters: str
    protocol: str
    parties: int
    items: int
    openings: str = "direct"
    batch: int = 0
    """Decryptions that are made together; 0: BATCH, or TABLE_BATCH."""
    piece: int = 0
    """Ciphertexts of which the phases are made at a time, as they take much memory; 0: the whole batch."""
    link: str = ""
    """The simulated link between parties; empty: none."""

    @property
    def name(self) -> str:
        """The rounding, and the shape of its tables."""
        return self.rounding + (f"-{self.width}x{self.levels}" if self.rounding == "round_ltz_table" else "")


@dataclass(frozen=True)
class Online:
    """Cost of a batch: wall-clock seconds, CPU seconds of this party, wrong messages at the receiver, rounds and sent bytes of the engine."""

    seconds: float
    cpu: float
    wrong: int
    rounds: int
    sent: int


def engine_cost(group: RoundingGroup) -> tuple[int, int]:
    """Rounds of the group's engines so far, and bytes that this party sent in them; zeros at a party that is no member."""
    if group.backend is None:
        return 0, 0
    stats = group.backend.stats()
    return stats["rounds"], stats["bytes_sent"]


@party_job("bench:decrypt", {"parameters": str, "rounding": str, "width": int, "levels": int, "items": int, "single": bool}, verified=True)
def bench_decrypt_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:decrypt``: fields of :class:`Configuration`; ``single``: ciphertexts one by one instead of batches;
    ``noise``, ``batch`` and ``piece`` (optional): the fraction of :func:`.workloads.noise_for`, and fields of :class:`Configuration`. The pool is filled and
    used in turns, which bounds its size on the disk. For single ciphertexts it is filled once, as small fillings cost much with MACs. The results ``offline``,
    ``offline_cpu``, ``offline_bytes`` and ``offline_bytes_received`` are those of one item of the pool."""
    variant, group = variant_of(context.committee, job), pool_group(context)
    work = workload(context, group, variant, float(job.get("noise", 0)))
    pool = Pool(context, group, variant) if group.member else None
    chunk = TABLE_BATCH if variant.rounding == "round_ltz_table" else BATCH
    batch = work.item_count if job["single"] else min(job.get("batch") or chunk, job["items"])

    def decrypt(size: int) -> Online:
        """Phases of a batch in pieces, each from a common start on; then the batch is rounded."""
        before, phases, messages = engine_cost(group), [], []
        seconds = cpu_seconds = 0.0
        piece = job.get("piece") or size
        for first in range(0, size, piece):
            asked = work.batch(min(piece, size - first))
            start, cpu = common_start(context), time.process_time()
            phases.append(work.phases(asked))
            seconds, cpu_seconds = seconds + time.monotonic() - start, cpu_seconds + time.process_time() - cpu
            messages.append(asked)
            if isinstance(work, LweWork):
                messages[-1] = Batch(None, asked.messages)
        z = phases[0] if len(phases) == 1 else np.concatenate(phases, axis=-1)
        # a batch in one piece is rounded as soon as its phases are there
        start, cpu = time.monotonic() if len(phases) == 1 else common_start(context), time.process_time()
        words = None if pool is None else pool.decrypt(z, "bench", 0)
        seconds, cpu_seconds = seconds + time.monotonic() - start, cpu_seconds + time.process_time() - cpu
        if job["single"]:
            time.sleep(PAUSE)
        rounds, sent = (now - then for now, then in zip(engine_cost(group), before, strict=True))
        wrong = 0 if words is None else sum(work.wrong(*each) for each in _pieces(messages, words))
        return Online(seconds, cpu_seconds, wrong, rounds, sent)

    offline = offline_cpu = 0.0
    sent = received = filled = 0

    def fill(count: int) -> None:
        """Fills the pool, and adds up what it costs."""
        nonlocal offline, offline_cpu, sent, received, filled
        start, cpu, before = time.perf_counter(), time.process_time(), context.backend.stats()
        if pool is not None:
            pool.fill(count, chunk)
        offline, offline_cpu, filled = offline + time.perf_counter() - start, offline_cpu + time.process_time() - cpu, filled + count
        after = context.backend.stats()
        sent += after["bytes_sent"] - before["bytes_sent"]
        received += after["bytes_received"] - before["bytes_received"]

    try:
        warming, counted = 2 * batch, 1 if job["single"] else 512
        if job["single"]:
            fill(warming + job["items"] + counted)
        elif pool is not None:
            pool.fill(warming, chunk)
        decrypt(batch)
        decrypt(batch)  # caches are warm
        runs: list[Online] = []
        left = job["items"]
        while left:
            turn = left if job["single"] else min(left, TURN * batch)
            if not job["single"]:
                fill(turn)
            runs += [decrypt(min(batch, turn - first)) for first in range(0, turn, batch)]
            left -= turn
        rounds, bits, bits_received = 0, 0.0, 0.0
        if pool is not None:
            items, bound = pool.take(counted, "count") if job["single"] else (variant.make(group, counted), b"")
            rounds, bits, bits_received = _online_cost(group, variant, items, counted, bound)
    finally:
        if pool is not None:
            pool.close()
    context.session.compare("end of the bench", b"")
    return {
        "offline": offline / filled,
        "online": sum(run.seconds for run in runs),
        "offline_cpu": offline_cpu / filled,
        "online_cpu": sum(run.cpu for run in runs),
        "median": statistics.median(run.seconds for run in runs),
        "wrong": sum(run.wrong for run in runs),
        "rounds": rounds,
        "bits": bits,
        "rounds_in_all": statistics.mean(run.rounds for run in runs),
        "bits_in_all": 8 * sum(run.sent for run in runs) / job["items"],
        "bits_received": bits_received,
        "offline_bytes": sent / filled,
        "offline_bytes_received": received / filled,
        "storage": packed_bytes(variant.sections, variant.parts(group), 1024) / 1024,
    }


def _pieces(batches: list[Batch], words: Words) -> Iterator[tuple[Batch, Words]]:
    """Batches that were decrypted together, and the words of each."""
    first = 0
    for batch in batches:
        last = first + batch.messages.size
        yield batch, words[:, first:last]
        first = last


def common_start(context: PartyContext) -> float:
    """Waits for a start time that all parties have agreed on, by the clock of this host, when they are idle; returns it."""
    ready = context.session.all_gather(struct.pack("<d", time.monotonic()))
    start: float = max(struct.unpack("<d", data)[0] for data in ready) + SETTLING
    time.sleep(max(0.0, start - time.monotonic()))
    return start


def _online_cost(group: RoundingGroup, variant: Variant, items: Preprocessing, size: int, bound: bytes) -> tuple[int, float, float]:
    """Rounds, and bits for each decryption that this party sends to all others and receives, of the online program's own openings and ANDs, for ``size`` decryptions at
    once with these items. ``bound``: the context of their messages."""
    assert group.backend is not None
    parts = variant.parts(group)
    shape = (
        (parts, size * variant.words)
        if isinstance(variant, LweVariant | RingVariant)
        else (1 if isinstance(variant, FieldVariant) else 2, parts, size)
    )
    z = np.zeros(shape, dtype=np.uint64)
    before = group.backend.stats()
    variant.use(group, z, items, 0, context=bound)
    after = group.backend.stats()
    spent = {k: after[k] - before[k] for k in after}
    online = {k: spent[k] - spent.get(f"offline_{k}", 0) for k in ("rounds", "bytes_sent", "bytes_received")}
    return online["rounds"], 8 * online["bytes_sent"] / size, 8 * online["bytes_received"] / size


def measure(row: Configuration, single: bool = False, noise: float = 0.0, runs: int = LATENCY_RUNS) -> tuple[str, Row]:
    """Runs a configuration; returns its closing line and the row of the table. ``noise``: see :func:`noise_for`. ``runs``: decryptions, if they are ``single``."""
    job: Json = {
        "kind": "bench:decrypt", "parameters": row.parameters, "rounding": row.rounding, "width": row.width, "levels": row.levels,
        "items": runs if single else row.items, "single": single, "noise": noise, "batch": row.batch, "piece": row.piece,
    }  # fmt: skip
    if single or row.link:
        job["link"] = row.link or LATENCY_LINK
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        committee = api.init(Path(folder) / "committee", row.parties, row.protocol, openings=row.openings)
        protocol = committee.ring_protocol or committee.field_protocol
        results = run_processes(committee.folder, job, io_timeout=1200)
    first, last = results[0], results[committee.threshold if committee.capabilities.quorum is not None else -1]
    items = int(job["items"])
    values: Row = {
        "variant": row.name,
        "parameters": row.parameters,
        "protocol": protocol,
        "n": row.parties,
        "items": items,
        "online_us": round(1e6 * first["online"] / items, 2),
        "offline_us": round(1e6 * first["offline"], 2),
        "rounds": first["rounds"],
        "bits": round(last["bits"], 1),
        "per_s": round(items / first["online"]),
        "rounds_in_all": round(first["rounds_in_all"], 1),
        "bits_in_all": round(last["bits_in_all"], 1),
        "online_cpu_us": round(1e6 * sum(r["online_cpu"] for r in results) / items, 2),
        "offline_cpu_us": round(1e6 * sum(r["offline_cpu"] for r in results), 2),
        "storage_bytes": round(first["storage"], 1),
        "offline_bytes": round(sum(r["offline_bytes"] for r in results)),
        "wrong": first["wrong"],
        "latency_ms": round(1e3 * first["median"], 2) if single else 0,
        "cores": os.cpu_count() or 0,
        "machine": platform.machine(),
        "version": keyquorum.__version__,
    }
    shown = (
        "variant", "protocol", "n", "online_us", "offline_us", "rounds", "bits", "per_s",
        "rounds_in_all", "bits_in_all", "online_cpu_us", "offline_cpu_us", "parameters", "storage_bytes", "wrong",
    )  # fmt: skip
    return "decrypt: " + " ".join(f"{key}={values[key]}" for key in shown), values
