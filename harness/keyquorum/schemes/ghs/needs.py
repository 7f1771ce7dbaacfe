"""Memory and disk that the generation of a GHS key takes at a party, as upper bounds: sizes of what is alive at the same time.

Samples are counted by the headers of `sample_gaussian` and `sample_cbd` (their formulas of bytes), with their default parameters. The factors of the other objects are
counts of arrays in :mod:`.keygen`, each named here.
"""

from __future__ import annotations

from collections.abc import Sequence

from keyquorum.fhe.ghs import GhsParameters
from keyquorum.model.committee import Committee
from keyquorum.model.needs import LINK, MB, PROCESS, Needs
from keyquorum.sharing.numbers import kind_of

WORD = 8
"""Bytes of a residue, and of a word of a share."""
ANDS = {"gaussian": 354, "cbd": 39}
"""ANDs of a sample in the binary domain, by the headers of the programs."""
CONVERTED_BITS = 6
"""Bits of a sample that are converted: samples of both distributions are below 2^5 in absolute value, with a sign."""
ELEMENTS = {"gaussian": 2 * (41 + 355), "cbd": 2 * 42}
"""Elements of a sample over a field: random bits and products of the headers, each with what makes it."""
TRIPLE, CONVERSION = 3, 4
"""Shared bits of an AND (a, b, a b), and words of the conversion of a bit: under its mask, opened, as a word, and in the sum."""
TRANSFERS, TRANSFER_BYTES = 1 << 23, 16
"""Oblivious transfers that are in memory at a time, at most (``Source/ot``), and bytes of one."""
LIFTED_WORDS = 3
"""Words of a lifted value besides shares: its mask, the mask in the message of a contributor, and what is opened."""
LIFTED_SHARES = 6
"""Shares of a value that are alive: in the first domain, of its mask there, over a prime, both again while share files grow, and the transform."""
CHUNK_WORDS = 12
"""Words of a residue of a run of `cyclo_switch_key`: masks, noise, target, secret and body as shares and in the engine, what is opened, and its copies in messages."""
REST = 64 * MB
"""Tables of transforms, the recorded program, and what the allocator keeps."""


def sampling_bytes(noise: str, committee: Committee, made: int) -> int:
    """Memory of ``made`` samples that are made at a time, and of what makes them."""
    part = WORD * committee.share_parts
    if committee.ring_protocol is None:
        return ELEMENTS[noise] * part * made
    memory = TRIPLE * ANDS[noise] * WORD * kind_of(committee).packed_words(committee) * made // 64 + CONVERSION * CONVERTED_BITS * part * made
    if committee.capabilities.oblivious_transfer:
        memory += TRANSFER_BYTES * min((ANDS[noise] + 3 * CONVERTED_BITS) * made * (committee.size - 1), TRANSFERS)
    return memory


def needs(parameters: GhsParameters, noise: str, committee: Committee, values: int, sizes: Sequence[int]) -> Needs:
    """Of one party. ``values``: that are lifted; ``sizes``: samples that are made at a time, and residues of the largest run of `cyclo_switch_key`."""
    (made, residues), part = sizes, WORD * committee.share_parts
    memory = PROCESS + LINK * (committee.size - 1) + REST + values * (LIFTED_WORDS * WORD + LIFTED_SHARES * part) + CHUNK_WORDS * WORD * residues
    files = parameters.residue_bytes * sum(map(parameters.residues, parameters.kinds))
    return Needs(memory + sampling_bytes(noise, committee, made), files + part * parameters.secrets * parameters.degree)


__all__ = ["needs"]
