"""How the noise of TFHE keys is made jointly: exactly TUniform(b) either way.

``bits``: linear in b + 2 random bits of the arithmetic domain (`sample_tuniform`). ``carry``: from the summands of random shares, of which only the carries
are computed (`sample_carries`): a fifth of the bytes, and more rounds, for links with little bandwidth. It needs replicated sharing, and makes the noise of
the bootstrapping key, which is nearly all of it.
"""

from __future__ import annotations

import numpy as np

from keyquorum.fhe.lwe import TfheParameters, Words
from keyquorum.fhe.tfhe import BOOTSTRAPPING, COMPACT, SWITCHING, body_words
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError

BITS, CARRY = "bits", "carry"
METHODS = (BITS, CARRY)
MAC_BIT_SECONDS = 14.6e-6
MAC_BIT_BYTES = 2463
"""Time, and bytes of both parties, of a random bit of two parties with MACs modulo 2^64 (spdz2k): results/bench/primitives.csv, 2 cores, no added delay."""


def random_bits(parameters: TfheParameters) -> int:
    """Random bits of the arithmetic domain in the noise of a key that `sample_tuniform` makes."""
    p = parameters
    rows = {kind: body_words(p, kind) for kind in (BOOTSTRAPPING, SWITCHING, COMPACT)}
    return (rows[BOOTSTRAPPING] + rows[COMPACT]) * (p.glwe_noise + 2) + rows[SWITCHING] * (p.lwe_noise + 2)


def macs_refused(parameters: TfheParameters, protocol: str, parties: int) -> str:
    """Why a committee with MACs makes no such keys, with the estimated cost of the random bits alone: every pair of parties makes MACs for each other."""
    bits, pairs = random_bits(parameters), parties * (parties - 1) // 2
    gigabytes, hours = bits * MAC_BIT_BYTES * pairs / 1e9, bits * MAC_BIT_SECONDS * pairs / 3600
    return (
        f"{protocol}: each of the {bits / 1e6:.1f} million random bits of the noise of {parameters.name} would have a MAC, for which {parties} parties would "
        f"send about {gigabytes:,.0f} GB in all and take {hours:.1f} hours on one machine of 2 cores, by measured rates: take a committee of rep-field or semi"
    )


def check_method(method: str, committee: Committee | None = None) -> None:
    """Refuses a method of another name, and carries for a committee whose random shares have no free summands that several parties know."""
    if method not in METHODS:
        raise ParameterError(f"noise_method={method}: choose {' or '.join(METHODS)}")
    if committee is not None and method == CARRY and (committee.ring_protocol is None or committee.capabilities.dishonest_majority):
        raise ParameterError(
            f"{committee.protocol}: noise_method={CARRY} needs shares with random summands that two parties know: take noise_method={BITS}, "
            "or a committee of rep-field"
        )


def carried(made: Words, length: int, held: tuple[int, ...]) -> Words:
    """This party's shares [parts, size] of noise of TUniform(length - 1), modulo 2^64, from those of `sample_carries`, [parts, 3 size]. ``held``: the
    numbers of the summands that the party knows, in the order of the parts. Local."""
    r, carry, v = np.split(made, 3, axis=1)
    e = (r & np.uint64((1 << length) - 1)) + v - (carry << np.uint64(length))
    if 0 in held:
        e[held.index(0)] -= np.uint64(1 << (length - 1))
    shares: Words = e
    return shares


__all__ = ["BITS", "CARRY", "METHODS", "carried", "check_method", "macs_refused", "random_bits"]
