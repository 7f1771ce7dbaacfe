"""The batch of a served committee as a plan: messages stay shared, and the shares are what parties answer with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from keyquorum._engine import CheckError
from keyquorum.dsl import ShareVector
from keyquorum.model.errors import PartyError
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.field_variant import FIELD
from keyquorum.schemes.lwe.scheme import SCHEME as LWE
from keyquorum.schemes.seal.scheme import SCHEME as SEAL
from keyquorum.sharing.field_variant import over_fields
from keyquorum.sharing.receivers import Wanted, answers_for_receivers, received_messages
from keyquorum.sharing.variants import low_mask

from .keys_plans import added, interpolated
from .lwe_plans import COUNT, LEVELS, WIDTH, LweDecryption, lwe_decryption
from .plans import Decryption, InRing, decryption, decryption_in_ring, pool_of_all
from .runner import Plan


def shared_messages(scheme: Any, plan: Any, context: PartyContext, shares: list[ShareVector], content: object, count: int) -> list[list[int]]:
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
    """What the shares of the honest parties determine, and whether their copies are equal, or they have degree t."""
    shares = {party: np.array(parts, dtype=object) for party, parts in results.items()}
    total, consistent = (
        interpolated(shares, plan.committee.threshold, modulus) if over_fields(plan.committee) else added(plan.committee, shares, modulus)
    )
    return [int(word) for word in total], consistent


@dataclass(frozen=True)
class ServedLwe(LweDecryption):
    """Of LWE ciphertexts."""

    def result(self, context: PartyContext, shares: list[ShareVector]) -> Any:
        """See :class:`.OnDealtKey`."""
        return shared_messages(LWE, self, context, shares, self.ciphertexts, COUNT)

    def right(self, results: dict[int, Any]) -> bool:
        """Whether the shares of the honest parties are those of the messages."""
        if len(results) <= self.committee.threshold:
            return True
        over = over_fields(self.committee)
        words, consistent = messages(self, results, FIELD if over else 1 << self.parameters.ring_bits)
        found: Sequence[int] = words if over else [word >> self.parameters.noise_length for word in words]
        return consistent and tuple(found) == self.wanted


@dataclass(frozen=True)
class ServedSeal(Decryption):
    """Of a ciphertext of BFV."""

    def result(self, context: PartyContext, shares: list[ShareVector]) -> Any:
        """See :class:`.OnDealtKey`."""
        return shared_messages(SEAL, self, context, shares, self.ciphertext, self.parameters.ring_degree)

    def right(self, results: dict[int, Any]) -> bool:
        """Whether the shares of the honest parties are those of the message."""
        if len(results) <= self.committee.threshold:
            return True
        words, consistent = messages(self, results, self.parameters.plain_modulus)
        return consistent and tuple(words) == self.wanted


def padded_messages(
    scheme: Any, plan: Any, context: PartyContext, shares: list[ShareVector], content: object, count: int, checked: bool
) -> list[int]:
    """What a receiver takes that gets the answers of all parties, as :meth:`.PaddedServedKey.run` makes them. ``checked``: whether it checks them."""
    variant = variant_for(context.committee, plan.rounding, plan.parameters, WIDTH, LEVELS)
    assert variant.padded is not None
    pool_of_all(context, variant, count)
    group = pool_group(context)
    pool = Pool(context, group, variant)
    try:
        z = scheme.phases(context, group, plan.info(), shares, variant, [content], keep=True)
        with pool.claimed(count, "a request") as items:
            preprocessing, bound = items.take(count)
            (answer,) = answers_for_receivers(group, variant, z, preprocessing, bound, [Wanted("a request", count)], bytes(32))
    finally:
        pool.close()
    answers = context.session.all_gather(answer)
    if checked:
        try:
            return [int(word) for word in received_messages(context.committee, variant.padded, answers, count)]
        except PartyError as error:  # the receiver refuses
            raise CheckError(str(error)) from None
    size = 8 * variant.padded.rows * count
    total = np.sum([np.frombuffer(a[: 8 * count], "<u8") for a in answers], axis=0, dtype=np.uint64)
    opened = np.frombuffer(answers[0][-size:], "<u8")[:count] >> np.uint64(variant.padded.shift)
    return [int(word) for word in (opened - total) & low_mask(variant.padded.bits - variant.padded.shift)]


@dataclass(frozen=True)
class PaddedLwe(LweDecryption):
    """Of LWE ciphertexts, with MACs."""

    checked: bool = True

    def result(self, context: PartyContext, shares: list[ShareVector]) -> list[int]:
        """See :class:`.OnDealtKey`."""
        return padded_messages(LWE, self, context, shares, self.ciphertexts, COUNT, self.checked)


@dataclass(frozen=True)
class PaddedSeal(InRing):
    """Of a ciphertext of BFV, with MACs."""

    checked: bool = True

    def result(self, context: PartyContext, shares: list[ShareVector]) -> list[int]:
        """See :class:`.OnDealtKey`."""
        return padded_messages(SEAL, self, context, shares, self.ciphertext, self.parameters.ring_degree, self.checked)


def padded(scheme: str, parties: int, checked: bool = True) -> Plan:
    """A batch of one request of a committee with MACs; each party stands for a receiver that got all answers. ``checked``: whether the receiver checks them. ``scheme``: ``lwe`` or ``bfv``."""
    job = (lwe_decryption("mascot", parties, 0, pooled=True) if scheme == "lwe" else decryption_in_ring(parties, pooled=True)).job
    assert isinstance(job, LweDecryption | InRing)
    kind = PaddedLwe if isinstance(job, LweDecryption) else PaddedSeal
    plan = kind(*(getattr(job, field.name) for field in fields(job)), checked)
    return Plan(f"served {scheme} with MACs, {parties} parties{'' if checked else ', answers not checked'}", parties, plan, plan.right)


def served(scheme: str, protocol: str = "mal-rep-field", parties: int = 3) -> Plan:
    """A batch of one request. ``scheme``: ``lwe`` or ``bfv``."""
    job = (
        lwe_decryption(protocol, parties, 0, modulus="prime", pooled=True) if scheme == "lwe" else decryption(protocol, parties, 0, pooled=True)
    ).job
    assert isinstance(job, LweDecryption | Decryption)
    kind = ServedLwe if isinstance(job, LweDecryption) else ServedSeal
    plan = kind(*(getattr(job, field.name) for field in fields(job)))
    return Plan(f"served {scheme} by {protocol}, {parties} parties", parties, plan, plan.right)
