"""Joint generation of TFHE keys: two secrets of random bits that exist as shares only, and the three public key files for TFHE-rs.

Noise is made in chunks, and wiped after its chunk. Only the bodies of the files are opened; every party writes them as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import TfheParameters, Words
from keyquorum.fhe.tfhe import BOOTSTRAPPING, COMPACT, KINDS, SWITCHING, body_words, masks
from keyquorum.model.committee import Committee
from keyquorum.model.needs import LINK, MB, PROCESS, Needs
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Layout
from keyquorum.programs.signatures import glwe_bootstrap_key, lwe_public_key, lwe_switch_key, sample_bits, sample_carries, sample_tuniform
from keyquorum.schemes.generation import Generation
from keyquorum.schemes.keys import KeyMaterial, KeyRequest
from keyquorum.schemes.seeded_keys import Write
from keyquorum.sharing.randomness import wipe

from .key import TFHE_KEYS, TfheKeyInfo, sharing_of
from .noise import BITS, CARRY, carried, check_method

BOOTSTRAPPING_CHUNK = 1 << 17
"""Noise samples of the bootstrapping key at a time, at least those of one bit of the short secret."""
CARRY_CHUNK = 1 << 19
"""The same where noise is made by carries, whose rounds count."""
SWITCHING_CHUNK = 1 << 20
"""Words of masks of the key-switching key at a time, at least those of one coefficient of the ring secret."""
SAMPLES = 1 << 16
"""Noise samples of which the random bits exist at a time."""
TRANSFER_BYTES = 16
"""Bytes of memory of an oblivious transfer, of which a random bit takes one with each peer."""


@dataclass(frozen=True)
class TfheRequest(KeyRequest):
    """A TFHE key to be made. ``noise_method``: one of :data:`.METHODS`."""

    parameters: TfheParameters
    noise_method: str = BITS

    def check(self, contributors: int = 1) -> None:
        """Refuses a method of another name."""
        check_method(self.noise_method)

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee that cannot make the key."""
        sharing_of(committee, self.parameters)
        check_method(self.noise_method, committee)

    @property
    def chunk(self) -> int:
        """Noise samples of the bootstrapping key at a time, at least those of one bit of the short secret."""
        return CARRY_CHUNK if self.noise_method == CARRY else BOOTSTRAPPING_CHUNK

    def needs(self, committee: Committee) -> Needs:
        """Memory of a chunk, and the public files with both shares."""
        self.check_committee(committee)
        p, part = self.parameters, 8 * committee.share_parts
        secrets = part * (p.dimension + p.lwe_dimension)
        samples = max(self.chunk, 2 * p.pbs_level * p.dimension)
        # the noise, of which the share file grows by half; bits; masks, bodies and their copies; the product by a public matrix
        memory = PROCESS + LINK * (committee.size - 1) + 8 * part * samples + 4 * part * SAMPLES * (p.glwe_noise + 2)
        memory += 4 * 8 * max(samples, SWITCHING_CHUNK) + 64 * MB
        if self.noise_method == CARRY:  # random summands, carries, bits and their copies
            memory += 8 * part * samples * 8
        if committee.capabilities.oblivious_transfer:
            memory += TRANSFER_BYTES * SAMPLES * (p.glwe_noise + 2) * (committee.size - 1)
        return Needs(memory, 8 * sum(body_words(p, kind) for kind in KINDS) + secrets)


class _Generation:
    """The programs of a key generation: of the secrets z and s, and of the three keys."""

    def __init__(self, frame: Generation[TfheRequest]) -> None:
        self.context, self.request, self.parameters = frame.context, frame.request, frame.request.parameters
        self._programs = frame.run.over(sharing_of(self.context.committee, self.parameters))
        self.ring, self.short = frame.keep(ShareVector()), frame.keep(ShareVector())

    def run(self, call: Call, share: ShareVector, *public: Words) -> Words:
        """The words that a program opens to all."""
        return self._programs.run(call, share, public=[words.view(np.int64) for words in public]).view(np.uint64)

    def secrets(self) -> None:
        """z and s, random bits."""
        self.run(sample_bits(size=self.parameters.dimension), self.ring)
        self.run(sample_bits(size=self.parameters.lwe_dimension), self.short)

    @contextmanager
    def noise(self, size: int, bound_bits: int, method: str = BITS) -> Iterator[tuple[ShareVector, Layout]]:
        """A share file with both secrets, z and s, and new noise e; wiped afterwards."""
        p, secrets = self.parameters, [self.ring.words, self.short.words]
        layout = Layout(z=p.dimension, s=p.lwe_dimension, e=size)
        sections = [*secrets, self._carried(size, bound_bits + 1)] if method == CARRY else secrets
        working = ShareVector.from_sections(sections, self.ring.element_words)
        try:
            if method == BITS:
                self.run(sample_tuniform(size=size, b=bound_bits, chunk=min(size, SAMPLES)), working)
            yield working, layout
        finally:
            working.wipe()
            wipe(*sections[2:])  # it is borrowed

    def _carried(self, size: int, length: int) -> Words:
        """Shares [parts, size] of noise of TUniform(length - 1), by carries."""
        made, committee = ShareVector(), self.context.committee
        try:
            self.run(sample_carries(size=size, length=length), made)
            return carried(made.words, length, committee.capabilities.held(self.context.party, committee.size, committee.threshold))
        finally:
            made.wipe()

    def bootstrapping(self, mask_seed: bytes, write: Write) -> None:
        """Encryptions of the bits of s under z."""
        p = self.parameters
        size = 2 * p.pbs_level * p.dimension
        each = max(1, self.request.chunk // size)
        with self.context.phase("bootstrapping key", -(-p.lwe_dimension // each)) as step:
            for first in range(0, p.lwe_dimension, each):
                count = min(each, p.lwe_dimension - first)
                with self.noise(count * size, p.glwe_noise, self.request.noise_method) as (share, layout):
                    call = glwe_bootstrap_key(
                        count=count, N=p.dimension, base_log=p.pbs_base_log, levels=p.pbs_level,
                        s=layout["s"].rows(first, first + count, 1), z=layout["z"], e=layout["e"],
                    )  # fmt: skip
                    write(self.run(call, share, masks(mask_seed, first * size, count * size)))
                step()

    def switching(self, mask_seed: bytes, write: Write) -> None:
        """Encryptions of the coefficients of z under s."""
        p = self.parameters
        size = p.ks_level * p.lwe_dimension
        each = max(1, SWITCHING_CHUNK // size)
        with self.context.phase("key-switching key", -(-p.dimension // each)) as step:
            for first in range(0, p.dimension, each):
                count = min(each, p.dimension - first)
                with self.noise(count * p.ks_level, p.lwe_noise) as (share, layout):
                    call = lwe_switch_key(
                        n=p.lwe_dimension, count=count, base_log=p.ks_base_log, levels=p.ks_level,
                        s=layout["s"], m=layout["z"].rows(first, first + count, 1), e=layout["e"],
                    )  # fmt: skip
                    write(self.run(call, share, masks(mask_seed, first * size, count * size)))
                step()

    def compact(self, mask_seed: bytes, write: Write) -> None:
        """An encryption of zero under z with its coefficients reversed."""
        p = self.parameters
        with self.context.phase("compact public key"), self.noise(p.dimension, p.glwe_noise) as (share, layout):
            call = lwe_public_key(n=p.dimension, reverse=1, s=layout["z"], e=layout["e"])
            write(self.run(call, share, masks(mask_seed, 0, p.dimension)))


def generate(context: PartyContext, request: TfheRequest, folder: Path | None = None) -> KeyMaterial[TfheKeyInfo]:
    """Makes a key jointly; every party calls this. The files go into ``folder`` (None: they stay in memory).

    Rounds and bytes are those of `sample_bits`, of `sample_tuniform` or `sample_carries`, and of the programs of the three keys.
    """
    request.check_committee(context.committee)
    with Generation(context, request, TFHE_KEYS.preamble, [asdict(request.parameters), request.noise_method], folder) as frame:
        made = _Generation(frame)
        with context.phase("secret"):
            made.secrets()
        TFHE_KEYS.make_files(frame, request.parameters, {BOOTSTRAPPING: made.bootstrapping, SWITCHING: made.switching, COMPACT: made.compact})
        return frame.finish(TfheKeyInfo)


__all__ = ["TfheRequest", "generate"]
