"""Exact decryption of BFV and BGV in one ring with MACs, with items of a pool (:mod:`.ring`, program `round_ltz_ring_online`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext
from keyquorum.model.committee import Committee, check_name
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Layout
from keyquorum.programs.signatures import rlwe_phase_ring, round_ltz_ring_online, round_mask
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import ProvenNumbers
from keyquorum.sharing.openings import WORDS, made_triples, make_masks, masks_of, masks_section, receiver_section
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.rounding import ROUNDINGS
from keyquorum.sharing.shares import Run
from keyquorum.sharing.variants import Destination, PaddedOutput, Preprocessing, Section, Variant, comparison_ands, origins_of, wipe_copies

from .key import SealKeyInfo
from .phases import check_exact
from .ring import RING, decrypts_in_ring, messages, padded_output, switched, switched_bits

Words = NDArray[np.uint64]
COMPARISONS = 2
"""Masked comparisons of a decryption: of the phase, and of t times the phase."""
BLOCK = 3
"""Bits of a mask of which comparisons with every number are stored. Larger blocks take more elements and fewer ANDs: with 3 an item is smallest, as an AND takes 5."""


@dataclass(frozen=True)
class RingVariant(Variant):
    """`round_ltz_circuit` for one BFV or BGV set, in one ring with MACs. Phases come as [2, size words], shares modulo 2^64; an item serves one coefficient. ``protocol``: of the ring;
    ``parties``: of the committee, each of which may be the receiver."""

    parameters: ParameterSet
    protocol: str
    parties: int
    rounding: str = ROUNDINGS[0]

    def __post_init__(self) -> None:
        check_exact(self.parameters)
        check_name(self.name, "pool name")
        if not decrypts_in_ring(self.parameters):
            t = self.parameters.plain_modulus
            raise ParameterError(
                f"a plain modulus of {t.bit_length()} bits does not fit one ring with MACs: take a set with a smaller one, or decrypt without a pool"
            )

    @property
    def name(self) -> str:
        """Name of the pool, and of its folder."""
        return f"{self.parameters.name}-{self.rounding}"

    @property
    def described(self) -> str:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return f"{self.name} in one ring, k={self.length} t={self.parameters.plain_modulus}"

    @property
    def length(self) -> int:
        """k: bits of a switched ciphertext, and of a mask."""
        return switched_bits(self.parameters)

    @property
    def words(self) -> int:
        """64-bit words of a share."""
        return WORDS

    @property
    def ands(self) -> int:
        """ANDs of a comparison, which combine its blocks."""
        return comparison_ands(-(-self.length // BLOCK))

    @property
    def openings(self) -> int:
        """Values that are opened for a coefficient, the message included."""
        return COMPARISONS * (1 + 2 * self.ands) + 1

    def parts(self, group: RoundingGroup) -> int:
        """Share and MAC."""
        return WORDS

    @property
    def sections(self) -> list[Section]:
        """What a coefficient needs: for each comparison a mask with its blocks, and triples; then what openings take."""
        blocks, rest = divmod(self.length, BLOCK)
        one = [Section(1 + blocks * (2**BLOCK - 1) + 2**rest - 1, 64, WORDS), Section(3 * self.ands, 64, WORDS)]
        return [*one * COMPARISONS, masks_section(self.openings, self.parties, padded_output(self.parameters))]

    @property
    def padded(self) -> PaddedOutput:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return padded_output(self.parameters)

    def for_receivers(self, preprocessing: Sequence[Unsigned]) -> Unsigned:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return receiver_section(preprocessing[-1], self.openings, self.padded)

    @property
    def begins_with_opening(self) -> bool:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return True

    def make(self, group: RoundingGroup, size: int) -> Preprocessing:
        """The preprocessing of ``size`` coefficients, [2, rows, size words] a section; every party calls this. Rounds and bytes: those of `round_mask`, `and_triples` and `opening_masks`."""
        sections, origins, runs = list[Words](), list[list[Origin]](), group.over(Sharing(self.protocol, RING))
        call = round_mask(size=size, l=self.length, bits="blocks", block=BLOCK)
        for _ in range(COMPARISONS):
            with runs.shares() as made:
                made.run(call)
                sections.append(made.file.words.reshape(WORDS, -1, size * WORDS).copy())
                origins.append([origin.copy() for origin in made.file.origins])
            sections.append(made_triples(group, runs, size, self.ands, WORDS))
        sections.append(make_masks(group, self.protocol, self.parties, self.openings, self.padded, size))
        return Preprocessing(sections, ProvenNumbers.origins_of_all("items", origins))

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[Unsigned], to: Destination = "share", purpose: bytes = b""
    ) -> Words | None:  # fmt: skip
        """Rounds phases z [2, size words] with one item of preprocessing each; all parties call this. Results as of :meth:`keyquorum.sharing.variants.Variant.use`: messages in [0, t), or shares
        of 2^k times them."""
        origins, size = ProvenNumbers.begin(group, origins_of(preprocessing), purpose), z.shape[1] // WORDS
        flat = [np.ascontiguousarray(m).reshape(m.shape[0], -1) for m in preprocessing[:-1]]
        masks = masks_of(preprocessing[-1], self.openings, self.padded, to)
        try:
            with group.over(Sharing(self.protocol, RING)).shares(ShareVector.from_sections([z, *flat], WORDS)) as working:
                ProvenNumbers.mark(working, origins, "phases and items")
                call = _online(size, self.parameters.plain_modulus, self.length, to)
                words = working.run(call, keep=True, purpose=purpose, masks=masks)
                if to == "share":
                    return working.tail(size * WORDS)
                return messages(self.parameters, words).view(np.uint64).reshape(1, -1) if words.size else None
        finally:
            masks.wipe()
            wipe_copies(flat, preprocessing[:-1])

    def phases(self, context: PartyContext, info: SealKeyInfo, share: ShareVector, ciphertexts: Sequence[Ciphertext], keep: bool = False) -> Words:
        """Shares [2, count N words] of the phases of switched ciphertexts. ``share``: of the secret modulo 2^64. Local."""
        if not info.ring_secret:
            raise ParameterError(f"key {info.key_id} has no secret in the ring, which decryptions with a pool take: make a new key")
        n = self.parameters.ring_degree
        call, runs = rlwe_phase_ring(N=n, count=1, k=self.length, s=Layout(s=n)["s"]), Run(context).over(Sharing(self.protocol, RING))
        found: list[Words] = []
        try:
            with context.phase("phase", len(ciphertexts)) as step:
                for ciphertext in ciphertexts:
                    with runs.shares(share.copy()) as working:
                        working.run(call, public=[switched(self.parameters, ciphertext)], keep=keep)
                        found.append(working.tail(n * WORDS))
                    step()
            return np.concatenate(found, axis=1)
        finally:
            wipe(*found)


@lru_cache(maxsize=64)
def _online(size: int, t: int, k: int, to: Destination) -> Call:
    return round_ltz_ring_online(size=size, t=t, k=k, destination=to, block=BLOCK)


def ring_variant(committee: Committee, rounding: str, parameters: ParameterSet) -> RingVariant:
    """The rounding of a committee with MACs. Raises ParameterError for another rounding."""
    if rounding != ROUNDINGS[0]:
        raise ParameterError(f"{committee.protocol}: masks of {rounding} are not kept with MACs: take {ROUNDINGS[0]}")
    assert committee.ring_protocol is not None
    return RingVariant(parameters, committee.ring_protocol, committee.size)


__all__ = ["RingVariant", "ring_variant"]
