"""Joint generation of GHS keys: secrets of an exact weight that exist as shares only, and the public files.

Paper: GMPFHE, sections 4.1 and 5.2. In one domain of 61 bits `sample_fixed_weight` makes the secrets, and `sample_gaussian` or `sample_cbd` the noise;
`lift_open` and `lift_close` bring both to every prime. There each party transforms its shares, which is linear, and `cyclo_switch_key` opens the bodies. Every
party writes them as they come, and the checksums of the files enter the transcript.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from math import log2
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import BUDGET_BITS, Cyclotomic
from keyquorum.dsl import ShareVector
from keyquorum.fhe.ghs import GhsParameters, Ints, Target, Words, file_name, key_writer, masks, parameters_from_json
from keyquorum.fhe.seeded_files import SEED_BYTES, BodyWriter
from keyquorum.model.committee import Committee, require_embedded
from keyquorum.model.errors import ParameterError
from keyquorum.model.needs import Needs
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call
from keyquorum.programs.signatures import cyclo_switch_key, sample_cbd, sample_fixed_weight, sample_gaussian
from keyquorum.schemes.generation import Generation, Preamble, digest_first
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Plain
from keyquorum.sharing.budget import product_pads
from keyquorum.sharing.numbers import kind_of, numbers_of
from keyquorum.sharing.numbers.lift import LIFT_BITS
from keyquorum.sharing.randomness import uniform_below, wipe
from keyquorum.sharing.shares import DomainRun, Shares

from .key import NOISES, GhsKeyInfo, parameters_to_json
from .needs import needs

PREAMBLE = Preamble("GHS key parameters", b"keyquorum GHS key", digest_first, toss=64, phase="set-up")
NOISE_BITS = 5
"""Secrets and both distributions of noise stay below 2^5 in absolute value."""
BODIES = 1 << 20
"""Residues of the bodies in one run of `cyclo_switch_key`, at least those of one target."""
SIGMA_MILLI, PRECISION_BITS, TAIL = 3200, 40, 23
"""Of the discrete Gaussian: deviation 3.2 in thousandths, bits to which each probability is exact (GMPFHE, section 5.2), and the largest sample, beyond which less than that is left
(`sample_gaussian`)."""


@dataclass(frozen=True)
class GhsRequest(KeyRequest):
    """A GHS key to be made. ``noise``: one of :data:`.NOISES`."""

    parameters: GhsParameters
    noise: str = NOISES[0]

    def to_json(self) -> Plain:
        """See :class:`.KeyRequest`."""
        return {"parameters": parameters_to_json(self.parameters), "noise": self.noise}

    def check(self, contributors: int = 1) -> None:
        """Refuses noise of another name."""
        if self.noise not in NOISES:
            raise ParameterError(f"noise={self.noise}: choose {' or '.join(NOISES)}")

    @property
    def polynomials(self) -> int:
        """Bodies modulo each prime, and samples of noise for each coefficient."""
        return sum(self.parameters.polynomials(kind) for kind in self.parameters.kinds)

    @property
    def values(self) -> int:
        """Values that are lifted."""
        return (self.parameters.secrets + self.polynomials) * self.parameters.degree

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee whose shares parties cannot transform alone, and a key whose opened values would leak too much together."""
        self.check()
        kind = kind_of(committee)
        if committee.capabilities.adversary == "malicious":
            raise ParameterError(
                f"{committee.protocol}: parties transform shares of GHS keys alone, and nothing would prove that they did: take a semi-honest committee"
            )
        leaks = kind.lift_leaks(committee, self.values, kind.mask_bits(committee), LIFT_BITS, 1 << NOISE_BITS)
        if committee.capabilities.oblivious_transfer:
            p = self.parameters
            leaks += product_pads(p.degree * len(p.primes), committee.size - 1, max(p.primes).bit_length())
        if leaks >= 2.0**-BUDGET_BITS:
            raise ParameterError(
                f"{self.values:,} values among {committee.size} parties: what is opened of them is 2^{log2(leaks):.1f} away from independent of the key, "
                f"at most 2^-{BUDGET_BITS:.0f} may be: take fewer parties"
            )

    def needs(self, committee: Committee) -> Needs:
        """Memory of the samples, of one prime and of a chunk, and the public files."""
        self.check_committee(committee)
        p, made = self.parameters, min(self.values, _chunk(self, committee))
        return needs(p, self.noise, committee, self.values, (made, max(BODIES, p.digits * p.degree)))


def _chunk(request: GhsRequest, committee: Committee) -> int:
    """Samples of noise that are made at a time."""
    kind = kind_of(committee)
    return kind.samples if request.noise == "cbd" or committee.ring_protocol is not None else kind.samples_of_products


def _noise(request: GhsRequest, committee: Committee) -> Call:
    """The program of all noise."""
    size, chunk = request.polynomials * request.parameters.degree, _chunk(request, committee)
    method: Literal["bits", "arith"] = "arith" if committee.ring_protocol is None else "bits"
    if request.noise == "cbd":
        return sample_cbd(size=size, method=method, chunk=chunk)
    return sample_gaussian(size=size, method=method, sigma_milli=SIGMA_MILLI, bits=PRECISION_BITS, tail=TAIL, chunk=chunk)


def _add_secret(x: Shares, context: PartyContext, parameters: GhsParameters, name: str) -> None:
    """Appends a secret, uniform among the vectors of its weight. Each of t + 1 parties inputs the indices of a shuffle; one of the parties is honest, so their
    sums are uniform."""
    size, weight, contributors = parameters.degree, parameters.weight, context.committee.threshold + 1
    protocol = PROTOCOLS[x.runs.sharing.protocol]
    method: Literal["bits", "knuth"] = "bits" if protocol.sharing == "additive" else "knuth"
    private: Ints | None = None
    if context.party < contributors:
        indices = _joined([uniform_below(1, size - i) for i in range(weight)])
        digits = indices[None] >> np.arange(max(1, (size - 1).bit_length()))[:, None]
        private = np.ascontiguousarray(digits & 1).reshape(-1)
        wipe(indices, digits)
    try:
        x.run(sample_fixed_weight(method=method, N=size, weight=weight, contributors=contributors), private, appends=name)
    finally:
        if private is not None:
            wipe(private)


def _joined(parts: Sequence[NDArray[Any]], axis: int = 0) -> NDArray[Any]:
    """Secret arrays as one array, and the parts overwritten."""
    try:
        return np.concatenate(parts, axis=axis)
    finally:
        wipe(*parts)


class _Prime:
    """The bodies of all keys modulo one prime. ``shares``: of secrets and noise there, in coefficients."""

    def __init__(self, number: int, request: GhsRequest, shares: Shares) -> None:
        self.number, self.parameters, self.q = number, request.parameters, request.parameters.primes[number]
        self._transform = Cyclotomic(self.q, self.parameters.order)
        self._runs: DomainRun = shares.runs
        self._values: Words = _joined([self._transform.forward(np.ascontiguousarray(part))[None] for part in shares.file.words])

    def wipe(self) -> None:
        """Overwrites the transforms of our shares."""
        wipe(self._values)

    def _secret(self, target: Target) -> Words:
        """Our shares of s'(X^t), [parts, phi(m)]."""
        n = self.parameters.degree
        own = self._values[:, target.of * n : (target.of + 1) * n]
        return _joined([self._transform.automorphism(np.ascontiguousarray(part), target.exponent)[None] for part in own])

    def bodies(self, kind: str, seed: bytes, first: int) -> Iterator[Words]:
        """The bodies of a file, some targets at a time. ``first``: the number of their first noise polynomial."""
        n, at, noises = self.parameters.degree, 0, self.parameters.secrets + first
        for group in _groups(self.parameters, kind):
            form, count = group[0], sum(len(target.weights) for target in group)
            targets: Words = _joined([self._secret(target) for target in group], axis=1)
            secret = self._values[:, form.secret * n : (form.secret + 1) * n]
            noise = self._values[:, (noises + at) * n : (noises + at + count) * n]
            call_weights = [weight % self.q for weight in form.weights]
            width = targets.shape[1]
            try:
                inputs = ShareVector.from_words(np.concatenate([secret, targets, noise], axis=1))
            finally:
                wipe(targets)
            with self._runs.shares(inputs, s=n, targets=width, e=count * n) as file:
                call = cyclo_switch_key(
                    N=n, f=form.factor, count=len(group), digits=len(form.weights), squares=sum(t.power == 2 for t in group), s=file["s"],
                    targets=file["targets"], e=file["e"], weights=call_weights,
                )  # fmt: skip
                words = file.run(call, public=[masks(seed, self.number, (at, at + count), self.parameters).view(np.int64)])
            yield np.where(words < 0, words + self.q, words).astype(np.uint64)
            at += count


def _groups(parameters: GhsParameters, kind: str) -> Iterator[list[Target]]:
    """Targets of one run each: the same but for what they encrypt, those with squares first."""
    for (_, _, weights), same in groupby(parameters.targets(kind), key=lambda target: (target.secret, target.factor, target.weights)):
        all_of, each = list(same), max(1, BODIES // (len(weights) * parameters.degree))
        yield from (all_of[first : first + each] for first in range(0, len(all_of), each))


def _seeds(tossed: bytes, parameters: GhsParameters) -> dict[str, bytes]:
    """The seeds of the masks of each file."""
    return {kind: hashlib.shake_256(b"keyquorum GHS masks " + kind.encode() + tossed).digest(SEED_BYTES) for kind in parameters.kinds}


def generate(context: PartyContext, request: GhsRequest, folder: Path | None = None) -> KeyMaterial[GhsKeyInfo]:
    """Makes a key jointly; every party calls this. The files go into ``folder`` (None: they stay in memory).

    Rounds: those of the samplers; 2 for the lift, or 1 with joint integers; and a prime 1 for masks that are not joint integers, and those of
    `cyclo_switch_key` for each of its runs.
    """
    committee, parameters = context.committee, request.parameters
    request.check_committee(committee)
    require_embedded(committee, context.backend.name)
    with Generation(context, request, PREAMBLE, [parameters_to_json(parameters), request.noise], folder) as made:
        numbers = numbers_of(made.run)
        with numbers.first_domain.shares() as x:
            with made.phase("secret"):
                for number in range(parameters.secrets):
                    _add_secret(x, context, parameters, f"secret {number}")
            with made.phase("noise"):
                x.run(_noise(request, committee), appends="noise")
            with made.phase("lift"):
                lifted = made.wiping.enter_context(numbers.lift(x, NOISE_BITS))
                made.transcript.add(hashlib.sha256(lifted.opened.tobytes()).digest())
        seeds = _seeds(made.tossed, parameters)
        with ExitStack() as files:
            writers = {
                kind: key_writer(files.enter_context(made.file(file_name(kind))), parameters, kind, made.key_id, seeds[kind])
                for kind in parameters.kinds
            }
            with made.phase("keys", len(parameters.primes)) as step:
                for number, q in enumerate(parameters.primes):
                    with lifted.over(made.run.field(q)) as shares:
                        _write_prime(number, request, shares, writers, seeds)
                        if number == 0:
                            for secret in range(parameters.secrets):
                                made.keep(_part(shares, secret, parameters.degree))
                    step()
            made.transcript.add(*(writer.finish() for writer in writers.values()))
        made.wiping.close()  # masks of the lift, before a party that stalls could keep them here
        with made.phase("check"):
            made.compare()
        return made.finish(GhsKeyInfo, noise=request.noise)


def _write_prime(number: int, request: GhsRequest, shares: Shares, writers: dict[str, BodyWriter], seeds: dict[str, bytes]) -> None:
    """Writes the bodies of all files modulo one prime."""
    prime, first = _Prime(number, request, shares), 0
    try:
        for kind, writer in writers.items():
            for bodies in prime.bodies(kind, seeds[kind], first):
                writer.write(bodies)
            first += request.parameters.polynomials(kind)
    finally:
        prime.wipe()


def _part(shares: Shares, number: int, length: int) -> ShareVector:
    """A copy of one secret's shares."""
    return ShareVector.from_words(shares.file.words[:, number * length : (number + 1) * length].copy())


def request_from_json(job: Plain) -> GhsRequest:
    """Inverse of :meth:`GhsRequest.to_json`."""
    return GhsRequest(parameters_from_json(job["parameters"]), job["noise"])


__all__ = ["GhsRequest", "generate", "request_from_json"]
