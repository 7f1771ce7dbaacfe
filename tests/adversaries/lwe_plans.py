"""Decryptions of LWE that the adversaries attack: every rounding, with a pool and without, to a party."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import LweCiphertexts, encrypt
from keyquorum.fhe.lwe_sets import LweParameters
from keyquorum.model.committee import Committee
from keyquorum.parties.context import PartyContext
from keyquorum.plans.decrypt import Rounding, decrypt
from keyquorum.plans.pool_variants import variant_for
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.schemes.lwe.key import LweKeyInfo, sharing_of

from .plans import OnDealtKey, committee_of, pool_of_all
from .runner import Plan

WIDTH, LEVELS = 4, 2
"""Of the tables."""
COUNT = 6
"""Ciphertexts of a file."""
MODULI = {"ring": 0, "prime": 65537}


def toy_lwe(modulus: str, dimension: int = 8) -> LweParameters:
    """An insecure set modulo 2^64 or a small prime. A phase modulo 65,537 is scaled to 26 bits."""
    return LweParameters(f"toy-{modulus}", dimension, MODULI[modulus], 2, 1, 1.0, 2, "tests")


@dataclass(frozen=True)
class LweDecryption(OnDealtKey):
    """The plan of a decryption of LWE ciphertexts, with noise up to the borders where the rounding is exact."""

    committee: Committee
    parameters: LweParameters
    receiver: int
    rounding: str
    secret: tuple[int, ...]
    ciphertexts: LweCiphertexts
    wanted: tuple[int, ...]
    pooled: bool = False

    def sharings(self) -> list[tuple[str, str]]:
        """See :class:`OnDealtKey`."""
        return [sharing_of(self.committee, self.parameters)]

    def info(self) -> LweKeyInfo:
        """See :class:`OnDealtKey`."""
        committee = self.committee
        return LweKeyInfo(
            key_id="0" * 32, parameters=self.parameters, protocol=committee.protocol, parties=committee.size, threshold=committee.threshold
        )

    def result(self, context: PartyContext, shares: list[ShareVector]) -> list[int] | None:
        """See :class:`OnDealtKey`."""
        if self.pooled:
            pool_of_all(context, variant_for(context.committee, self.rounding, self.parameters, WIDTH, LEVELS), self.ciphertexts.count)
        purpose = "a toy" if self.pooled else ""
        results = decrypt(context, self.info(), shares, [self.ciphertexts], self.receiver, Rounding(self.rounding, WIDTH, LEVELS), purpose)
        if results is None:
            return None
        assert isinstance(results[0], LweDecrypted)
        return [int(message) for message in results[0].messages]

    def right(self, results: dict[int, list[int] | None]) -> bool:
        """Whether the receiver, if it is honest, has the messages."""
        return all(words is None or tuple(words) == self.wanted for words in results.values())


def lwe_decryption(
    protocol: str, parties: int, receiver: int, rounding: str = "round_ltz_circuit", modulus: str = "ring", pooled: bool = False
) -> Plan:
    """Messages with noise up to the borders of exact roundings; without noise for those that are sometimes wrong."""
    parameters, rng = toy_lwe(modulus), np.random.default_rng(3)
    secret = rng.integers(0, 2, parameters.dimension)
    messages = rng.integers(0, 1 << parameters.plain_bits, COUNT)
    most = parameters.delta // 2 - 1 - parameters.margin if rounding in ("round_ltz_circuit", "round_ltz_table") else 0
    noise = rng.integers(-most, most + 1, COUNT)
    noise[:2] = most, -most
    job = LweDecryption(
        committee_of(protocol, parties), parameters, receiver, rounding, tuple(secret.tolist()), encrypt(parameters, secret, messages, rng, noise),
        tuple(messages.tolist()), pooled,
    )  # fmt: skip
    name = f"{rounding} of LWE modulo a {modulus} by {protocol}, {parties} parties{', with a pool' if pooled else ''}, to {receiver}"
    return Plan(name, parties, job, job.right)
