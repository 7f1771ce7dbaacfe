"""Exact decryption of LWE over prime fields alone: F_q, and a small field in which messages of j bits are shared (:mod:`keyquorum.sharing.field_variant`).

Messages are modulo 2^j, which is no field. But m = ((q - 1)/2 - c + v)/q - [c < v] modulo 2^j depends on c, on the low j bits of the mask v, and on the wrap [c < v] alone. So items have the one-hot
vector of these bits too, of which the first summand is a linear function, and a product takes 2^j off or on where the difference wraps (program `round_field_close_bits`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keyquorum.fhe.lwe import LweParameters
from keyquorum.model.committee import Committee, check_name
from keyquorum.model.errors import ParameterError, PartyError
from keyquorum.programs import Call
from keyquorum.programs.signatures import round_field_close_bits
from keyquorum.sharing.field_variant import FieldVariant, Words, check_rounding
from keyquorum.sharing.variants import Destination

FIELD = 65521
"""Prime modulo which messages are shared: the largest one of two bytes. Longer than 12 bits, so that products are verified, and more than 2^j and any number of parties."""
MOST_BITS = 8
"""Bits of a message with its padding, at most: items have 2^j elements for it."""


@dataclass(frozen=True, kw_only=True)
class LweFieldVariant(FieldVariant):
    """`round_ltz_circuit` for one LWE set modulo a prime. An item serves one ciphertext. Parties get words as of :class:`.LweVariant`; shares are those of messages modulo FIELD."""

    parameters: LweParameters

    def __post_init__(self) -> None:
        p = self.parameters
        check_name(self.name, "pool name")
        if not p.prime or not 1 <= p.message_bits <= MOST_BITS:
            raise ParameterError(f"{p.name}: over prime fields alone LWE has a prime modulus, and at least 1 and at most {MOST_BITS} bits a message")

    @property
    def name(self) -> str:
        """Name of the pool, and of its folder."""
        return f"{self.parameters.name}-{self.rounding}"

    @property
    def described(self) -> str:
        return f"{self.name} fields q={self.modulus} j={self.low} P={self.field}"

    @property
    def modulus(self) -> int:
        """q."""
        return self.parameters.prime

    @property
    def factor(self) -> int:
        """2^j."""
        return 1 << self.low

    @property
    def field(self) -> int:
        """See FIELD."""
        return FIELD

    @property
    def low(self) -> int:
        """j."""
        return self.parameters.message_bits

    def closing(self, size: int, to: Destination) -> Call:
        return round_field_close_bits(size=size, l=self.length, q=self.modulus, j=self.low, destination=to)

    def received(self, messages: Words) -> Words:
        """Words of rounded phases, as of :class:`.LweVariant`. Raises PartyError for messages that are none."""
        return words_of_messages(self.parameters, messages)


def words_of_messages(parameters: LweParameters, messages: Words) -> Words:
    """2^l m for messages m. Raises PartyError for a number that is not below 2^j: shares that t corrupted parties at most have changed do not give one."""
    if messages.size and int(messages.max()) >> parameters.message_bits:
        raise PartyError(
            f"a result is no message of {parameters.message_bits} bits, so more parties than t cheat or have other files: nothing was decrypted; ask their operators"
        )
    words: Words = messages << np.uint64(parameters.noise_length)
    return words


def field_variant(committee: Committee, rounding: str, parameters: LweParameters) -> LweFieldVariant:
    """The rounding of a committee that verifies products, and has prime fields alone. Raises ParameterError for another rounding."""
    check_rounding(committee, rounding)
    return LweFieldVariant(protocol=committee.protocol, parties=committee.size, threshold=committee.threshold, parameters=parameters)
