"""Memory and disk of the generation of a key for SEAL.

Correlated randomness comes in batches of bounded size (Source/protocols/src/additive/preprocessing.rs), noise and lifted values in chunks: only the key
itself grows with what is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from keyquorum.model.committee import Committee
from keyquorum.model.needs import LINK, PROCESS, Needs
from keyquorum.sharing.numbers import kind_of

BATCH_TRANSFERS = 1 << 22
"""Oblivious transfers of one batch, all peers together."""
TRANSFER_BYTES = 16
"""Of a batch, a transfer: 4 bytes of corrections, sent and received, and copies on their way."""
NOISE_ANDS = {"cbd": 39, "gaussian": 354}
"""ANDs a coefficient, in the binary domain."""
NOISE_CONVERSIONS = 6
"""Bits of a coefficient that are converted."""
NOISE_ELEMENTS = {"cbd": 2 * 42, "gaussian": 2 * 400}
"""Elements a coefficient, over a field: bits, products, and what makes them."""


@dataclass(frozen=True)
class KeygenSizes:
    """What :func:`keygen_needs` counts: ring degree, primes, key polynomials (1 of the public key, and one a digit and target),
    coefficients sampled and values lifted at a time, and whether sampling is in the binary domain."""

    degree: int
    primes: int
    polynomials: int
    error_law: str
    sampled: int
    lifted: int
    binary: bool


def keygen_needs(sizes: KeygenSizes, committee: Committee) -> Needs:
    """Memory and disk of key generation, on the embedded engine."""
    n, word = committee.size, 8
    part = word * committee.share_parts
    kind = kind_of(committee)
    packed = word * kind.packed_words(committee)
    noises = sizes.polynomials * sizes.degree
    count = noises + sizes.degree
    key = word * sizes.degree * sizes.primes * sizes.polynomials
    # a and b of every key, SEAL's bytes with a copy, and what is validated
    memory = PROCESS + LINK * (n - 1) + 5 * key + part * sizes.degree * sizes.primes
    # masks and opened values; the share files of the samples with their masks and of a prime, which grow by half; what becomes of them in a run
    lifted = min(count, sizes.lifted)
    memory += 3 * word * count + 5 * part * count + part * lifted * (committee.threshold + 5)
    sampled = min(noises, sizes.sampled)
    if sizes.binary:
        ands = NOISE_ANDS[sizes.error_law]
        memory += 3 * ands * packed * sampled // 64 + 4 * NOISE_CONVERSIONS * part * sampled
    else:
        memory += NOISE_ELEMENTS[sizes.error_law] * part * sampled
    memory += kind.test_bytes(committee, count, sizes.primes)
    if committee.capabilities.oblivious_transfer:
        transfers = (NOISE_ANDS[sizes.error_law] + 3 * NOISE_CONVERSIONS) * sampled * (n - 1)
        memory += TRANSFER_BYTES * min(transfers, 2 * BATCH_TRANSFERS)
    return Needs(memory, key + part * sizes.degree * sizes.primes)
