"""The batch of a served committee as a plan: messages stay shared, and the shares are what parties answer with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from keyquorum.dsl import Persistence
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.scheme import SCHEME as LWE
from keyquorum.schemes.seal.scheme import SCHEME as SEAL

from .keys_plans import added
from .lwe_plans import COUNT, LEVELS, WIDTH, LweDecryption, lwe_decryption
from .plans import Decryption, decryption, pool_of_all
from .runner import Plan


def shared_messages(scheme: Any, plan: Any, context: PartyContext, shares: list[Persistence], content: object, count: int) -> list[list[int]]:
    """This party's shares [parts, count] of the messages, as :meth:`.ServedKey.run` makes them."""
    variant = variant_for(context.committee, plan.rounding, plan.parameters, WIDTH, LEVELS)
    pool_of_all(context, variant, count)
    group = pool_group(context)
    pool = Pool(context, group, variant)
    try:
        z = scheme.phases(context, group, plan.info(), shares, variant, [content], keep=True)
        made = pool.decrypt(z, "a request")
    finally:
        pool.close()
    assert made is not None
    return [[int(word) for word in part] for part in made]


def messages(plan: Any, results: dict[int, Any], modulus: int) -> tuple[list[int], bool]:
    """What the shares of two honest parties determine, and whether their copies are equal."""
    total, consistent = added(plan.committee, {party: np.array(shares, dtype=object) for party, shares in results.items()}, modulus)
    return [int(word) for word in total], consistent


@dataclass(frozen=True)
class ServedLwe(LweDecryption):
    """Of LWE ciphertexts."""

    def result(self, context: PartyContext, shares: list[Persistence]) -> Any:
        """See :class:`.OnDealtKey`."""
        return shared_messages(LWE, self, context, shares, self.ciphertexts, COUNT)

    def right(self, results: dict[int, Any]) -> bool:
        """Whether the shares of the honest parties are those of the messages."""
        if len(results) < 2:
            return True
        words, consistent = messages(self, results, 1 << self.parameters.ring_bits)
        found: Sequence[int] = [word >> self.parameters.noise_length for word in words]
        return consistent and tuple(found) == self.wanted


@dataclass(frozen=True)
class ServedSeal(Decryption):
    """Of a ciphertext of BFV."""

    def result(self, context: PartyContext, shares: list[Persistence]) -> Any:
        """See :class:`.OnDealtKey`."""
        return shared_messages(SEAL, self, context, shares, self.ciphertext, self.parameters.ring_degree)

    def right(self, results: dict[int, Any]) -> bool:
        """Whether the shares of the honest parties are those of the message."""
        if len(results) < 2:
            return True
        words, consistent = messages(self, results, self.parameters.plain_modulus)
        return consistent and tuple(words) == self.wanted


def served(scheme: str, protocol: str = "mal-rep-field") -> Plan:
    """A batch of one request. ``scheme``: ``lwe`` or ``bfv``."""
    job = (lwe_decryption(protocol, 3, 0, modulus="prime", pooled=True) if scheme == "lwe" else decryption(protocol, 3, 0, pooled=True)).job
    assert isinstance(job, LweDecryption | Decryption)
    kind = ServedLwe if isinstance(job, LweDecryption) else ServedSeal
    plan = kind(*(getattr(job, field.name) for field in fields(job)))
    return Plan(f"served {scheme} by {protocol}", 3, plan, plan.right)
