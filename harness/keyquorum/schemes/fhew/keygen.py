"""Joint generation of FHEW keys: two secrets that exist as shares only, and the three public key files.

Paper: Ajax (ePrint 2025/1834), section 4.2 and figure 9. Noise is made as shares and wiped after its use. Only the bodies of the files are opened; every
party writes them as they come, and their checksums enter the transcript.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from keyquorum._engine import Ntt, expanded_products
from keyquorum.dsl import ShareVector
from keyquorum.fhe.fhew import BOOTSTRAPPING, KINDS, PUBLIC, SWITCHING, body_residues, masks, residue_bytes
from keyquorum.fhe.lwe import FhewParameters, Ints, Words
from keyquorum.fhe.lwe_public import residues
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.needs import LINK, MB, PROCESS, Needs
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Layout
from keyquorum.programs.signatures import lwe_samples, lwe_switch_key, rgsw_bodies, sample_bits, sample_cbd, sample_wide_noise, sum_inputs
from keyquorum.schemes.generation import Generation
from keyquorum.schemes.keys import KeyMaterial, KeyRequest
from keyquorum.schemes.seeded_keys import Write
from keyquorum.sharing.randomness import wipe

from .key import FHEW_KEYS, FhewKeyInfo, sharing_of
from .noise import EXACT, LOCAL, NOISES, NoisePlan

BODIES = 1 << 19
"""Residues of the bootstrapping key at a time, at least those of one bit of the short secret."""
MASKS = 1 << 20
"""Residues of the masks of the key-switching key at a time, at least those of one coefficient."""
OPENED = 1 << 16
"""Bodies of the public key that are opened at a time."""
SAMPLED = 1 << 18
"""Samples of exact noise of which the bits exist at a time."""


@dataclass(frozen=True)
class FhewRequest(KeyRequest):
    """A FHEW key to be made. ``noise``: one of :data:`.NOISES`; empty: exact where the committee's sharing has bits, otherwise local."""

    parameters: FhewParameters
    noise: str = ""

    def check(self, contributors: int = 1) -> None:
        """Refuses noise of another name."""
        if self.noise not in ("", *NOISES):
            raise ParameterError(f"noise={self.noise}: choose {' or '.join(NOISES)}, or leave it to the committee")

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee that cannot make the key, and exact noise where it would take a product a bit."""
        self.check()
        sharing_of(committee, self.parameters)
        if committee.capabilities.dishonest_majority:
            raise ParameterError(
                f"{committee.protocol}: all parties but one may be corrupted, so contributed noise would grow {committee.size} times, and the "
                f"{self.parameters.lwe_dimension * self.parameters.dimension:,} products of secrets would take oblivious transfer: "
                "take a committee of shamir or rep-field"
            )
        plan = self.noise_plan(committee)
        if plan.noise == EXACT and committee.ring_protocol is None:
            bits = 2 * plan.half * (body_residues(self.parameters, BOOTSTRAPPING) + self.parameters.samples)
            raise ParameterError(
                f"{committee.protocol}: each of the {bits / 1e6:,.0f} million random bits of exact noise would take a product: "
                "take noise=local, or a committee of rep-field"
            )
        if plan.noise == LOCAL and committee.capabilities.adversary == "malicious":
            raise ParameterError(f"{committee.protocol}: what a corrupted party contributes to the noise is not checked: take noise=exact")

    def noise_plan(self, committee: Committee) -> NoisePlan:
        """How this committee makes the noise."""
        usual = LOCAL if committee.ring_protocol is None else EXACT
        return NoisePlan(self.parameters, self.noise or usual, committee.size, committee.threshold)

    def needs(self, committee: Committee) -> Needs:
        """Memory of a chunk, and the public files with both shares."""
        self.check_committee(committee)
        p, part, n = self.parameters, 8 * committee.share_parts, committee.size
        bodies, noises = max(BODIES, 2 * p.levels * p.dimension), max(p.samples, p.dimension * p.switch_levels)
        # masks, noise and its transform, bodies and their copies; contributions of all parties; what all parties open
        memory = PROCESS + LINK * (n - 1) + bodies * (5 * part + 8 * (6 + 2 * n)) + 6 * 8 * max(MASKS, p.dimension) + 2 * part * noises + 64 * MB
        if self.noise_plan(committee).noise == EXACT:
            memory += 24 * part * min(SAMPLED, bodies)
        secrets = part * (p.dimension + p.lwe_dimension)
        return Needs(memory, residue_bytes(p) * sum(body_residues(p, kind) for kind in KINDS) + secrets)


class _Generation:
    """The programs of a key generation: of the secrets z and s, of noise, and of the three keys."""

    def __init__(self, frame: Generation[FhewRequest], plan: NoisePlan) -> None:
        self.context, self.parameters, self.plan = frame.context, frame.request.parameters, plan
        self._programs = frame.run.over(sharing_of(self.context.committee, self.parameters))
        self.ring, self.short = frame.keep(ShareVector()), frame.keep(ShareVector())
        self._ntt = Ntt(self.parameters.prime, self.parameters.dimension)

    def run(self, call: Call, share: ShareVector, private: Ints | None = None, public: Words | None = None) -> Words:
        """The residues that a program opens to all. The parties have compared what the calls depend on."""
        words = self._programs.run(call, share, private, [] if public is None else [public.view(np.int64)], keep=True)
        return residues(self.parameters, words)

    def secrets(self) -> None:
        """z, differences of two random bits, and s, random bits."""
        p = self.parameters
        self.run(sample_cbd(size=p.dimension, method="arith", half=1), self.ring)
        self.run(sample_bits(size=p.lwe_dimension), self.short)

    def add_noise(self, kind: str, size: int, share: ShareVector, layout: Layout) -> None:
        """Appends noise e for ``size`` residues of the bodies. Contributions to the bootstrapping key are transformed by who makes them."""
        if self.plan.noise == LOCAL:
            call = sum_inputs(contributors=self.plan.parties, size=size)
            private = self._contribution(kind, size)
            self.run(call, share, private)
            wipe(private)
            layout.append(call, total="e")
            return
        if kind == SWITCHING:
            wide = self.plan.wide
            call = sample_wide_noise(size=size, half=wide.half, weight=wide.weight, b=wide.b, chunk=min(size, 1 << 14))
        else:
            call = sample_cbd(size=size, method="bits", chunk=min(size, SAMPLED), half=self.plan.half)
        self.run(call, share)
        layout.append(call, samples="e")

    def _contribution(self, kind: str, size: int) -> Ints:
        made = self.plan.contribution(kind, size)
        if kind != BOOTSTRAPPING:
            return made
        q = self.parameters.prime
        canonical = (made + (q & (made >> 63))).view(np.uint64)
        transformed: Words = self._ntt.forward(canonical)
        wipe(made, canonical)
        return transformed.view(np.int64)

    @contextmanager
    def noise(self, kind: str, size: int, *secrets: Words) -> Iterator[ShareVector]:
        """A share file with these shares, [parts, words] each, and then noise for ``size`` residues of the bodies; wiped afterwards."""
        share = ShareVector.from_sections(secrets, self.ring.element_words)
        try:
            self.add_noise(kind, size, share, Layout(secrets=share.length))
            yield share
        finally:
            share.wipe()

    def bootstrapping(self, mask_seed: bytes, write: Write) -> None:
        """Encryptions of the bits of s under z."""
        p = self.parameters
        size = 2 * p.levels * p.dimension
        each = max(1, BODIES // size)
        form: Literal["coefficients", "transformed"] = "transformed" if self.plan.noise == LOCAL else "coefficients"
        with self.context.phase("bootstrapping key", -(-p.lwe_dimension // each)) as step:
            for first in range(0, p.lwe_dimension, each):
                count = min(each, p.lwe_dimension - first)
                layout = Layout(z=p.dimension, s=count, e=count * size)
                with self.noise(BOOTSTRAPPING, count * size, self.ring.words, self.short.words[:, first : first + count]) as share:
                    call = rgsw_bodies(
                        count=count, N=p.dimension, q=p.prime, base_log=p.base_log, levels=p.levels,
                        s=layout["s"], z=layout["z"], e=layout["e"], noise=form,
                    )  # fmt: skip
                    write(self.run(call, share, public=masks(p, mask_seed, first * size, count * size)))
                step()

    def switching(self, mask_seed: bytes, write: Write) -> None:
        """Encryptions of the coefficients of z under s."""
        p, total = self.parameters, body_residues(self.parameters, SWITCHING)
        each = max(1, MASKS // (p.switch_levels * p.lwe_dimension))
        with self.context.phase("key-switching key", -(-p.dimension // each)) as step, self.noise(SWITCHING, total) as noise:
            for first in range(0, p.dimension, each):
                count = min(each, p.dimension - first)
                rows, begin = count * p.switch_levels, first * p.switch_levels
                e = noise.words[:, begin : begin + rows]
                share = ShareVector.from_sections([self.short.words, self.ring.words[:, first : first + count], e], self.ring.element_words)
                layout = Layout(s=p.lwe_dimension, m=count, e=rows)
                call = lwe_switch_key(
                    n=p.lwe_dimension, count=count, base_log=p.switch_base_log, levels=p.switch_levels, q=p.prime,
                    s=layout["s"], m=layout["m"], e=layout["e"],
                )  # fmt: skip
                write(self.run(call, share, public=masks(p, mask_seed, begin * p.lwe_dimension, rows * p.lwe_dimension)))
                step()

    def public(self, mask_seed: bytes, write: Write) -> None:
        """Encryptions of zero under the coefficients of z. The inner products of our share with the masks are local: the masks are never stored."""
        p, z = self.parameters, self.ring.words
        with self.context.phase("public key", -(-p.samples // OPENED)) as step, self.noise(PUBLIC, p.samples) as noise:
            for first in range(0, p.samples, OPENED):
                count = min(OPENED, p.samples - first)
                products = expanded_products(mask_seed, first * p.dimension, count, z.reshape(-1), p.dimension, p.prime).reshape(-1, count)
                share = ShareVector.from_sections([products, noise.words[:, first : first + count]], self.ring.element_words)
                layout = Layout(x=count, e=count)
                write(self.run(lwe_samples(count=count, x=layout["x"], e=layout["e"]), share))
                wipe(products)
                step()


def generate(context: PartyContext, request: FhewRequest, folder: Path | None = None) -> KeyMaterial[FhewKeyInfo]:
    """Makes a key jointly; every party calls this. The files go into ``folder`` (None: they stay in memory).

    Rounds and bytes are those of the samplers, of `sum_inputs`, and of the programs of the three keys.
    """
    request.check_committee(context.committee)
    plan = request.noise_plan(context.committee)
    with Generation(context, request, FHEW_KEYS.preamble, [asdict(request.parameters), plan.noise], folder) as frame:
        made = _Generation(frame, plan)
        with context.phase("secret"):
            made.secrets()
        FHEW_KEYS.make_files(frame, request.parameters, {PUBLIC: made.public, SWITCHING: made.switching, BOOTSTRAPPING: made.bootstrapping})
        return frame.finish(FhewKeyInfo, noise=plan.noise)


__all__ = ["FhewRequest", "generate"]
