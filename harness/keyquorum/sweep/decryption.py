"""The job ``sweep:decrypt``: threshold decryption with a pool at one party, offline and online.

Offline: a pool is filled, on disk. Online: phases, agreement on the pool and the synced claim (if none was made ahead), the rounding, the opening to party 0.
The noise of the ciphertexts is distributed over the whole range that a rounding allows, and is fresh for `round_mask_open`.
"""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.plans.pool_store import packed_bytes
from keyquorum.plans.pool_variants import pool_group, variant_of
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.seal.ring_variant import RingVariant
from keyquorum.sharing.field_variant import FieldVariant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import Preprocessing, Variant

from .workloads import Batch, LweWork, Words, workload

BATCH = 4096
"""Decryptions in one batch: the coefficients of one ciphertext of ``bfv-4096``."""
TABLE_BATCH = 1024
"""The same for `round_ltz_table`, whose items take 2.2 KB each, 5 KB in memory, and 20 KB while they are made."""
TURN = 32
"""Batches between two fillings of the pool."""
SETTLING = 0.01
"""Seconds between the moment when the last party was ready and the common start, so that all parties are idle."""
PAUSE = 0.05
"""Seconds after a single decryption until a party prepares the next one, which would slow down parties that have not finished."""


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


@dataclass
class _Filled:
    """What the filling of a pool costs: items, seconds, CPU seconds, bytes sent and received."""

    items: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    sent: int = 0
    received: int = 0


class _Measurement:
    """The decryptions of a job at one party."""

    def __init__(self, context: PartyContext, job: Json) -> None:
        self.context, self.job = context, job
        self.variant, self.group = variant_of(context.committee, job), pool_group(context)
        self.work = workload(context, self.group, self.variant, float(job.get("noise", 0)))
        self.pool = Pool(context, self.group, self.variant) if self.group.member else None
        self.chunk = TABLE_BATCH if self.variant.rounding == "round_ltz_table" else BATCH
        self.batch: int = self.work.item_count if job["single"] else min(job.get("batch") or self.chunk, job["items"])
        self.filled = _Filled()

    def decrypt(self, size: int) -> Online:
        """Phases of a batch in pieces, each from a common start on; then the batch is rounded."""
        context, work = self.context, self.work
        before, phases, messages = engine_cost(self.group), [], []
        seconds = cpu_seconds = 0.0
        piece = self.job.get("piece") or size
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
        words = None if self.pool is None else self.pool.decrypt(z, "bench", 0)
        seconds, cpu_seconds = seconds + time.monotonic() - start, cpu_seconds + time.process_time() - cpu
        if self.job["single"]:
            time.sleep(PAUSE)
        rounds, sent = (now - then for now, then in zip(engine_cost(self.group), before, strict=True))
        wrong = 0 if words is None else sum(work.wrong(*each) for each in _pieces(messages, words))
        return Online(seconds, cpu_seconds, wrong, rounds, sent)

    def fill(self, count: int) -> None:
        """Fills the pool, and adds up what it costs."""
        start, cpu, before = time.perf_counter(), time.process_time(), self.context.backend.stats()
        if self.pool is not None:
            self.pool.fill(count, self.chunk)
        so_far, after = self.filled, self.context.backend.stats()
        so_far.items += count
        so_far.seconds += time.perf_counter() - start
        so_far.cpu += time.process_time() - cpu
        so_far.sent += after["bytes_sent"] - before["bytes_sent"]
        so_far.received += after["bytes_received"] - before["bytes_received"]

    def run(self) -> tuple[list[Online], tuple[int, float, float]]:
        """The costs of all batches, and the online cost of an item: rounds, and bits sent and received."""
        single, left = self.job["single"], self.job["items"]
        warming, counted = 2 * self.batch, 1 if single else 512
        if single:
            self.fill(warming + left + counted)
        elif self.pool is not None:
            self.pool.fill(warming, self.chunk)
        self.decrypt(self.batch)
        self.decrypt(self.batch)  # caches are warm
        runs: list[Online] = []
        while left:
            turn = left if single else min(left, TURN * self.batch)
            if not single:
                self.fill(turn)
            runs += [self.decrypt(min(self.batch, turn - first)) for first in range(0, turn, self.batch)]
            left -= turn
        if self.pool is None:
            return runs, (0, 0.0, 0.0)
        items, bound = self.pool.take(counted, "count") if single else (self.variant.make(self.group, counted), b"")
        return runs, _online_cost(self.group, self.variant, items, counted, bound)


@party_job("sweep:decrypt", {"parameters": str, "rounding": str, "width": int, "levels": int, "items": int, "single": bool}, verified=True)
def decrypt_job(context: PartyContext, job: Json) -> Json:
    """The job ``sweep:decrypt``: ``items`` decryptions; ``width`` and ``levels`` are those of tables; ``single``: ciphertexts one by
    one instead of batches. Optional are ``noise``, the fraction of :func:`.workloads.noise_for`; ``batch``, decryptions that are made together (0: BATCH, or
    TABLE_BATCH); ``piece``, ciphertexts of which the phases are made at a time, as they take much memory (0: the whole batch). The pool is filled and
    used in turns, which bounds its size on the disk. For single ciphertexts it is filled once, as small fillings cost much with MACs. The results ``offline``,
    ``offline_cpu``, ``offline_bytes`` and ``offline_bytes_received`` are those of one item of the pool."""
    made = _Measurement(context, job)
    try:
        runs, (rounds, bits, bits_received) = made.run()
    finally:
        if made.pool is not None:
            made.pool.close()
    filled = made.filled
    context.session.compare("end of the bench", b"")
    return {
        "offline": filled.seconds / filled.items,
        "online": sum(run.seconds for run in runs),
        "offline_cpu": filled.cpu / filled.items,
        "online_cpu": sum(run.cpu for run in runs),
        "median": statistics.median(run.seconds for run in runs),
        "wrong": sum(run.wrong for run in runs),
        "rounds": rounds,
        "bits": bits,
        "rounds_in_all": statistics.mean(run.rounds for run in runs),
        "bits_in_all": 8 * sum(run.sent for run in runs) / job["items"],
        "bits_received": bits_received,
        "offline_bytes": filled.sent / filled.items,
        "offline_bytes_received": filled.received / filled.items,
        "storage": packed_bytes(made.variant.sections, made.variant.parts(made.group), 1024) / 1024,
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
    variant.use(group, z, items, 0, purpose=bound)
    after = group.backend.stats()
    spent = {k: after[k] - before[k] for k in after}
    online = {k: spent[k] - spent.get(f"offline_{k}", 0) for k in ("rounds", "bytes_sent", "bytes_received")}
    return online["rounds"], 8 * online["bytes_sent"] / size, 8 * online["bytes_received"] / size
