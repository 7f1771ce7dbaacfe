"""Decryptions of GHS ciphertexts by the parties of a committee, each a process of this host over TLS. The job ``bench:ghs-decrypt``.

``rounding``: as ``keyquorum decrypt`` does, with its preprocessing measured apart. ``bits``: as GMPFHE does (section 5.2, Dec, and figure 5): phases become bits, and the
lowest one is opened; correlated randomness is made as the circuit takes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from keyquorum._engine import addmod, submod
from keyquorum.dsl import ShareVector
from keyquorum.fhe.ghs import GhsParameters, Words
from keyquorum.fhe.ghs_ciphertexts import GhsCiphertext, halved_constant, halved_products, with_phase
from keyquorum.model.chosen_committees import ADDITIVE_RING
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext, cpu_seconds
from keyquorum.parties.jobs import party_job
from keyquorum.programs.signatures import zq_to_z2_circuit
from keyquorum.schemes import load_parameters
from keyquorum.schemes.base import EXACT
from keyquorum.schemes.ghs.decrypt import phases, plaintexts, rounding_of
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sweep.decryption import common_start
from keyquorum.sweep.operands import summand_rows_of

RING = "Z2^64"
ROUNDING, BITS = "rounding", "bits"
WAYS = (ROUNDING, BITS)
Step = Callable[[], Words | None]


class _Party:
    """A party with a share of a secret that all parties know, so that the receiver can compare, and ciphertexts of which phases reach both borders of the noise."""

    def __init__(self, context: PartyContext, parameters: GhsParameters, count: int) -> None:
        self.context, self.parameters, self.q = context, parameters, parameters.primes[0]
        rng, n = np.random.default_rng(list(context.session.toss(16))), parameters.degree
        secret = np.zeros(n, dtype=np.int64)
        secret[rng.choice(n, parameters.weight, replace=False)] = 1
        others = rng.integers(0, self.q, (context.parties - 1, n), dtype=np.uint64)
        last = secret.astype(np.uint64)
        for other in others:
            last = submod(last, other, self.q)
        self.share = ShareVector.from_words([*others, last][context.party][None].copy())
        border = (self.q - 1) // 2
        noise = [np.where(rng.integers(0, 2, n), border - reach, reach - border) for reach in rng.integers(0, 1 << 20, (count, n))]
        self.messages = np.stack(noise) % 2
        self.ciphertexts: list[GhsCiphertext] = [with_phase(parameters.order, self.q, secret, one, rng) for one in noise]

    def rounding(self) -> dict[str, Step]:
        """The steps of an exact rounding."""
        group = RoundingGroup.of(self.context, self.context.committee.threshold, 0)
        variant = rounding_of(self.context.committee, EXACT, self.parameters)
        items: list[Words] = []

        def offline() -> None:
            items.extend(variant.make(group, self.messages.size))

        def online() -> Words | None:
            words = variant.use(group, phases(group, self.parameters, self.share, self.ciphertexts), items, 0)
            items.clear()
            if words is None:
                return None
            return np.stack([one.messages for one in plaintexts(self.parameters, len(self.ciphertexts), words[0])]).astype(np.uint64)

        return {"offline": offline, "online": online}

    def bits(self) -> dict[str, Step]:
        """The step of the paper's way. For x = w + (q - 1)/2 below q, w modulo 2 is the sum of bit 0 of x and of (q - 1)/2."""
        return {"offline and online": self._lowest_bits}

    def _lowest_bits(self) -> Words:
        context, q, size = self.context, self.q, self.messages.size
        summands = np.concatenate([self._summand(one) for one in self.ciphertexts])
        rows = summand_rows_of(context.party, context.parties, summands.view(np.int64), q)
        bits = ShareVector()
        call = zq_to_z2_circuit(contributors=context.parties, size=size, q=q, out=1, adder="ripple")
        context.backend.run(ADDITIVE_RING, RING, call, private=rows, shares=bits)
        engine = context.session.engine(ADDITIVE_RING, RING, "open", context.committee.threshold)
        found = engine.read(engine.open(engine.import_(bits.read(engine, 0, size), size)))
        return ((found & 1) ^ ((q - 1) // 2 & 1)).astype(np.uint64).reshape(self.messages.shape)

    def _summand(self, ciphertext: GhsCiphertext) -> Words:
        """Our summand of w + (q - 1)/2 modulo q."""
        q = self.q
        words = halved_products(ciphertext, self.share.words)[0]
        if self.context.party == 0:
            words = addmod(words, halved_constant(ciphertext), q)
        doubled = addmod(words, words, q)
        return addmod(doubled, np.full_like(doubled, (q - 1) // 2), q) if self.context.party == 0 else doubled


@party_job("bench:ghs-decrypt", {"parameters": str, "way": str, "count": int, "runs": int})
def ghs_decrypt_job(context: PartyContext, job: Json) -> Json:
    """Decrypts ``count`` ciphertexts at a time, ``runs`` times after one time that is not counted. Returns the costs of each step at this party, and the wrong coefficients."""
    parameters = load_parameters(job["parameters"])
    assert isinstance(parameters, GhsParameters)
    party, measured, wrong = _Party(context, parameters, job["count"]), list[Json](), 0
    for _ in range(1 + job["runs"]):
        steps, costs = getattr(party, job["way"])(), {}
        for name, step in steps.items():
            common_start(context)
            before, start, cpu = context.backend.stats(), time.perf_counter(), cpu_seconds()
            found = step()
            seconds, cpu, after = time.perf_counter() - start, cpu_seconds() - cpu, context.backend.stats()
            costs[name] = {
                "seconds": seconds, "cpu": cpu, "sent": after["bytes_sent"] - before["bytes_sent"], "rounds": after["rounds"] - before["rounds"],
            }  # fmt: skip
            wrong += 0 if found is None else int(np.count_nonzero(found != party.messages))
        measured.append(costs)
    return {"runs": measured[1:], "wrong": wrong}


def steps_of(results: Sequence[Json]) -> list[str]:
    """The steps that parties measured."""
    return list(results[0]["runs"][0])


__all__ = ["BITS", "ROUNDING", "WAYS", "ghs_decrypt_job", "steps_of"]
