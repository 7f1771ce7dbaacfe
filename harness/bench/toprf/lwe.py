"""AES-128 on LWE ciphertexts with encrypted tables (:mod:`bench.baselines.toprf_lwe`), a block at a time: the baseline in `bench.toprf`."""

from __future__ import annotations

import statistics
import time

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool
from keyquorum.programs import Layout, signatures
from keyquorum.schemes.circuit import aes_forms
from keyquorum.sweep.decryption import common_start

from ..baselines.toprf_lwe.evaluate import Evaluator, open_masked_bits
from ..baselines.toprf_lwe.key import BITS, PUBLIC_FILE, round_keys_of
from ..baselines.toprf_lwe.keygen import GateRequest, generate
from ..baselines.toprf_lwe.parameters import gate_parameters
from ..baselines.toprf_lwe.tables import gate_rounding, gate_tables

Words = NDArray[np.uint64]
BLOCK = 128
RUNS = 3
ROUNDINGS = {"circuit": "round_ltz_circuit", "table": "round_ltz_table"}
"""By the method of a row."""
SETS = {"H": "lwe32-p2-seed003", "H-128": "lwe32-p2"}
"""By the system of a row."""


@party_job("bench:toprf-lwe", {"parameters": str, "rounding": str})
def toprf_lwe_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:toprf-lwe``: a block several times under a new key of a set, by a rounding; costs of this party, online medians and means of what is made ahead."""
    committee, p, forms = context.committee, gate_parameters(job["parameters"]), aes_forms()
    protocol = committee.ring_protocol
    if protocol is None:
        raise KeyQuorumError(f"{committee.protocol} has no shares modulo 2^32: take semi2k or ring")
    material = generate(context, GateRequest(p))
    secret, keys = material.shares
    group, own = pool_group(context), round_keys_of(material.public[PUBLIC_FILE], material.info, "the key")
    kind = gate_tables(committee, p, material.info.key_id, forms, BLOCK, secret.words.copy())
    rounding = gate_rounding(committee, p, job["rounding"])
    tables, masks = Pool(context, group, kind), Pool(context, group, rounding)
    evaluator = Evaluator(context, group, forms, secret.words, own, kind, rounding)
    online: list[float] = []
    offline: list[float] = []
    wrong, used, made = 0, dict[str, int](), list[int]()
    try:
        for _ in range(RUNS):
            common_start(context)
            before, start = context.backend.stats(), time.perf_counter()
            tables.fill(1)
            masks.fill(evaluator.decryptions)
            offline.append(time.perf_counter() - start)
            made.append(_since(context, before)["bytes_sent"])
            blocks = ShareVector()
            context.backend.run(protocol, BITS, signatures.sample_bits(size=BLOCK), shares=blocks, mode=Mode(keep=True))
            with tables.claimed(1, "a block") as items, masks.claimed(evaluator.decryptions, "a block") as claimed:
                given, bound = items.take(1)
                common_start(context)
                before, start = context.backend.stats(), time.perf_counter()
                result = evaluator.evaluate(blocks.words.astype(np.uint64)[:, :, None], given, claimed, bound)[:, :, 0]
                seconds = time.perf_counter() - start
                used = _since(context, before)
            inside = used.get("offline_microseconds", 0) / 1e6
            online.append(seconds - inside)
            offline[-1] += inside
            made[-1] += used.get("offline_bytes_sent", 0)
            wrong += bool(_difference(context, protocol, blocks, keys, result).any())
    finally:
        for one in (tables, masks, evaluator):
            one.close()
    return {
        "online": statistics.median(online),
        "offline": statistics.fmean(offline),
        "sent": used["bytes_sent"] - used.get("offline_bytes_sent", 0),
        "offline_sent": statistics.fmean(made),
        "rounds": used["rounds"] - used.get("offline_rounds", 0),
        "runs": len(online),
        "wrong": wrong,
    }


def _since(context: PartyContext, before: dict[str, int]) -> dict[str, int]:
    return {name: value - before.get(name, 0) for name, value in context.backend.stats().items()}


def _difference(context: PartyContext, protocol: str, blocks: ShareVector, keys: ShareVector, result: Words) -> Words:
    """The opened sum of a result and that of `aes_blocks` under the same key: 128 zeros."""
    file = ShareVector.from_words(np.concatenate([blocks.words, keys.words], axis=1))
    layout = Layout(blocks=BLOCK, keys=keys.length)
    call = signatures.aes_blocks(size=1, direction="encrypt", destination="share", blocks=layout["blocks"], keys=layout["keys"])
    context.backend.run(protocol, BITS, call, shares=file, mode=Mode(keep=True))
    return open_masked_bits(lambda call, **options: context.backend.run(protocol, BITS, call, **options).words, result, file.tail(BLOCK))


__all__ = ["ROUNDINGS", "SETS", "toprf_lwe_job"]
