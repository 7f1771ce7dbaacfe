"""Joint generation of SEAL keys: the secret key exists as shares only.

1. The parties toss a public seed; everything public (the `a` of every key, the key id) comes from it.
2. `sample_ternary`, in one domain of 61 bits: the secret, uniform ternary (:mod:`keyquorum.sharing.numbers`). Where products are verified, the trits are joint
   integers, so that no party chooses what it contributes; otherwise t + 1 parties input them. With MACs these are all parties, and
   `trit_inputs` proves that each party gave trits.
3. `sample_cbd` or `sample_gaussian`, there as well; `lift_open` and `lift_close` bring the secret and the noise to every prime.
   With MACs random subset sums prove that they are the same there (:mod:`keyquorum.sharing.numbers.lift_tests`), and for most keys of BFV and BGV the secret is
   lifted modulo 2^64 too (:func:`.decrypts_in_ring`).
4. `rlwe_public_key` and `rlwe_switch_key`, one prime after another, open b = -(a s + f e) (+ P w): the keys.
5. All parties compare a hash of the transcript and of the key files before the key counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum.fhe.keys import (
    assemble_public_key,
    assemble_switch_keys,
    expand_a,
    validate_public_key,
    validate_switch_keys,
)
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee, require_embedded
from keyquorum.model.errors import ParameterError, PolicyError
from keyquorum.model.needs import Needs
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call
from keyquorum.programs.signatures import (
    rlwe_public_key,
    rlwe_switch_key,
    sample_cbd,
    sample_gaussian,
)
from keyquorum.schemes.generation import Generation, Preamble, framed
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Plain
from keyquorum.sharing.numbers import kind_of, numbers_of
from keyquorum.sharing.numbers.lift import LIFT_BITS, lifted_at_a_time
from keyquorum.sharing.shares import Shares

from .budget import NOISE_BITS, check_attempts, check_leaks, short_primes
from .decryptable import check_decryptable, check_set
from .key import ERROR_LAWS, SealKeyInfo, parameters_from_json, parameters_to_json
from .needs import KeygenSizes, keygen_needs
from .policy import FloodPolicy, flooding_variance, policy_from_json
from .precision import check_key_precision
from .ring import RING, decrypts_in_ring

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

PREAMBLE = Preamble(
    "key parameters", b"keyquorum keygen v1", lambda described, tossed: [*framed("parameters", described), *framed("seed", tossed)], 64, "set-up"
)


@dataclass(frozen=True)
class SealRequest(KeyRequest):
    """What to make. A policy without a noise bound gets that of the set."""

    verified: ClassVar[bool] = True
    parameters: ParameterSet
    relin: bool = True
    galois_elements: tuple[int, ...] = ()
    error_law: str = "cbd"
    policy: FloodPolicy = field(default_factory=FloodPolicy)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", self.policy.for_set(self.parameters))

    def check(self, variance_ratio: float = 1) -> None:
        """Refuses what cannot be made. ``variance_ratio``: the variance of the flooding of a decryption over that of one contributor (:func:`.flooding_variance`)."""
        if self.error_law not in ERROR_LAWS:
            raise ParameterError(f"unknown error law {self.error_law!r}: choose one of {', '.join(ERROR_LAWS)}")
        n = self.parameters.ring_degree
        for g in self.galois_elements:
            if not (isinstance(g, int) and 1 < g < 2 * n and g % 2 == 1):
                raise ParameterError(f"Galois element {g}: choose an odd number from 3 to {2 * n - 1}")
        if len(set(self.galois_elements)) != len(self.galois_elements):
            raise ParameterError("a Galois element is asked for twice: name each once")
        if len(self.parameters.coeff_modulus) < 2 and (self.relin or self.galois_elements):
            raise ParameterError("relinearisation and Galois keys need at least two primes in coeff_modulus")
        self.policy.check(n)
        if self.policy.approvals and self.parameters.scheme != "ckks":
            raise PolicyError(f"{self.parameters.name}: approvals are for CKKS keys: leave them out")
        check_set(self.parameters)
        check_key_precision(self.parameters, self.policy, variance_ratio)

    def needs(self, committee: Committee) -> Needs:
        """What the plan will need at each party of a committee, on the embedded engine."""
        self.check_committee(committee)
        sizes = KeygenSizes(
            degree=self.parameters.ring_degree,
            primes=len(self.parameters.coeff_modulus),
            polynomials=self.polynomials,
            error_law=self.error_law,
            sampled=_sampled_at_a_time(committee, self.error_law),
            lifted=lifted_at_a_time(committee.threshold),
            binary=_noise_method(committee) == "bits",
        )
        return keygen_needs(sizes, committee)

    def check_budget(self, committee: Committee) -> None:
        """Refuses a key whose opened values would leak too much together, or, with MACs, whose shortest prime gives too little soundness."""
        values = self.parameters.ring_degree * (1 + self.polynomials)
        check_attempts(committee, self.parameters)
        check_leaks(committee, values, kind_of(committee).mask_bits(committee), LIFT_BITS)

    def check_committee(self, committee: Committee) -> None:
        """See :class:`.KeyRequest`."""
        variance_ratio, n = 1.0, self.parameters.ring_degree
        if self.parameters.scheme == "ckks":
            self.policy.check(n)
            variance_ratio = flooding_variance(self.policy, n, committee.shape)
        self.check(variance_ratio)
        check_decryptable(self.parameters, self.policy, committee)
        self.check_budget(committee)

    def warnings(self, committee: Committee | None = None) -> list[str]:
        """Weaknesses of the policy; for a committee, with the number, that short primes take a key with MACs above the budget."""
        if committee is None:
            return self.policy.weaknesses(self.parameters)
        found = [short_primes(committee, self.parameters)]
        if kind_of(committee).one_ring and self.parameters.scheme != "ckks" and not decrypts_in_ring(self.parameters):
            t = self.parameters.plain_modulus
            found.append(f"a plain modulus of {t.bit_length()} bits does not fit one ring: decryptions under this key are semi-honest")
        return [text for text in found if text]

    def to_json(self) -> Plain:
        """See :class:`.KeyRequest`."""
        return {
            "parameters": parameters_to_json(self.parameters),
            "relin": self.relin,
            "galois_elements": list(self.galois_elements),
            "error_law": self.error_law,
            "policy": vars(self.policy),
        }

    @staticmethod
    def from_json(data: Plain) -> SealRequest:
        """Inverse of :meth:`to_json`."""
        policy = policy_from_json(data["policy"])
        return SealRequest(parameters_from_json(data["parameters"]), bool(data["relin"]), tuple(data["galois_elements"]), data["error_law"], policy)

    @property
    def targets(self) -> list[int | Literal["relin"]]:
        """Key-switching targets in the order of the programs: relin first, then Galois elements."""
        return [*(("relin",) if self.relin else ()), *self.galois_elements]

    @property
    def polynomials(self) -> int:
        """Polynomials a and b of the keys: one of the public key, and of each target one for every digit."""
        return 1 + (len(self.parameters.coeff_modulus) - 1) * len(self.targets)


def _signed(words: Words) -> Ints:
    return words.astype(np.int64)


def _residues(words: Ints, q: int) -> Words:
    """Centred int64 to [0, q)."""
    return np.where(words < 0, words + q, words).astype(np.uint64)


def _noise_method(committee: Committee) -> Literal["bits", "arith"]:
    """The method of the samplers of noise: in the binary domain, unless the committee shares by Shamir's scheme, which has none."""
    return "arith" if committee.ring_protocol is None else "bits"


def _sampled_at_a_time(committee: Committee, distribution: str) -> int:
    kind = kind_of(committee)
    return kind.samples if distribution == "cbd" or _noise_method(committee) == "bits" else kind.samples_of_products


def _seeds(master: bytes, count: int) -> list[bytes]:
    return [hashlib.shake_256(b"keyquorum a" + master + i.to_bytes(8, "little")).digest(64) for i in range(count)]


def generate(context: PartyContext, request: SealRequest) -> KeyMaterial[SealKeyInfo]:
    """Makes a key jointly; every party calls this.

    Rounds: those of the two samplers; 2 for the lift, or 1 with joint integers. For each prime 1 for the public key and 1 or 2 for all other keys, after 1 for masks that
    are not joint integers. With MACs also the rounds of `trit_inputs`, and of the tests of the lift; where products are verified those of their verification.
    """
    committee, parameters = context.committee, request.parameters
    request.check_committee(committee)
    require_embedded(committee, context.backend.name)
    in_ring = kind_of(committee).one_ring and context.backend.name == "embedded" and decrypts_in_ring(parameters)
    described = [
        parameters.name, parameters.scheme, parameters.ring_degree, list(parameters.coeff_modulus), parameters.plain_modulus,
        [str(target) for target in request.targets], request.error_law, asdict(request.policy),
    ]  # fmt: skip
    with Generation(context, request, PREAMBLE, described, more=[committee.ring_protocol] if in_ring else []) as made:
        return _generate(made, in_ring)


def _generate(made: Generation[SealRequest], in_ring: bool) -> KeyMaterial[SealKeyInfo]:
    """Steps 2 to 5. ``in_ring``: whether the committee decrypts in one ring, where it keeps shares of the secret too."""
    request, run, transcript = made.request, made.run, made.transcript
    n, primes = request.parameters.ring_degree, request.parameters.coeff_modulus
    numbers, seeds = numbers_of(run), _seeds(made.tossed, request.polynomials)
    a = [expand_a(seed, n, primes) for seed in seeds]
    fields, rings = [run.field(q) for q in primes], [run.ring(RING.bits)] if in_ring else []

    with made.phase("secret"):  # s uniform in {-1, 0, 1}^n
        x = made.wiping.enter_context(numbers.ternary(n))
    with made.phase("noise"):  # x = (s, e_0, e_1, ...), a row of noise for each polynomial of the keys
        x.run(_sampler(request, made.context.committee), appends="noise")
    with made.phase("lift"):  # c = x + 2^b + r
        lifted = made.wiping.enter_context(numbers.lift(x, NOISE_BITS))
        transcript.add(*framed("lift", lifted.opened.tobytes()))
    proof = lifted.prove(fields, rings)  # with MACs alone: sums of random subsets of x are the same integers everywhere
    if proof is not None:
        transcript.add(*framed("lift tests", proof))
    x.wipe()

    b = np.empty((request.polynomials, len(primes), n), dtype=np.uint64)
    with made.phase("keys", len(primes)) as step:
        for j, over_q in enumerate(fields):
            with lifted.over(over_q) as shares:  # x = c - 2^b - r; with MACs as it was tested
                b[:, j] = _bodies(request, j, shares, [_signed(p[j]) for p in a])  # b = -(a s + f e) (+ P w)
                made.keep(shares.head(n))  # s modulo q, which this party stores; all other shares are wiped
            step()
    for ring in rings:
        with lifted.over(ring) as shares:
            made.keep(shares.head(n))

    made.wiping.close()  # masks of the lift, before a party that stalls could keep them here
    with made.phase("check"):
        made.public.update(_public_files(request, b, seeds))
        for name, data in made.public.items():
            transcript.add(*framed(name, data))
        made.compare()
    return made.finish(
        SealKeyInfo, error_law=request.error_law, relin=request.relin, galois_elements=request.galois_elements, policy=request.policy,
        ring_secret=in_ring, lift_tested=proof is not None and made.context.backend.name == "embedded",
    )  # fmt: skip


def _sampler(request: SealRequest, committee: Committee) -> Call:
    """The program of all noise, a row for each polynomial."""
    size = request.polynomials * request.parameters.ring_degree
    method, chunk = _noise_method(committee), _sampled_at_a_time(committee, request.error_law)
    if request.error_law == "cbd":
        return sample_cbd(size=size, method=method, chunk=chunk)
    return sample_gaussian(size=size, method=method, sigma_milli=3200, bits=40, tail=23, chunk=chunk)


def _bodies(request: SealRequest, j: int, shares: Shares, a: list[Ints]) -> Words:
    """The bodies b of all polynomials modulo prime j, [polynomials, n]: of the public key, then of the digits of every target."""
    parameters, targets = request.parameters, request.targets
    n, primes, digits = parameters.ring_degree, parameters.coeff_modulus, len(parameters.coeff_modulus) - 1
    q, factor = primes[j], parameters.plain_modulus if parameters.scheme == "bgv" else 1
    s, e = shares["secret"], shares["noise"].rows
    bodies = [shares.run(rlwe_public_key(N=n, q=q, f=factor, count=1, s=s, e=e(0, 1, n)), public=[a[0]])]
    group = shares.runs.context.backend.most_targets or len(targets) or 1
    for at in range(0, len(targets), group):
        chosen = targets[at : at + group]
        begin, end = 1 + at * digits, 1 + (at + len(chosen)) * digits
        call = rlwe_switch_key(N=n, q=q, f=factor, digits=digits, i=j, P_mod_q=primes[-1] % q, s=s, e=e(begin, end, n), targets=chosen)
        bodies.append(shares.run(call, public=a[begin:end]))
    return _residues(np.concatenate(bodies), q).reshape(-1, n)


def _public_files(request: SealRequest, b: Words, seeds: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """SEAL's bytes of the keys, each validated."""
    parameters = request.parameters
    digits = len(parameters.coeff_modulus) - 1
    at = 1
    data = assemble_public_key(parameters, seeds[0], b[0])
    validate_public_key(parameters, data)
    yield "public.key", data

    def take() -> list[tuple[bytes, Words]]:
        nonlocal at
        taken = [(seeds[at + i], b[at + i]) for i in range(digits)]
        at += digits
        return taken

    if request.relin:
        data = assemble_switch_keys(parameters, {0: take()})
        validate_switch_keys(parameters, data, [0])
        yield "relin.key", data
    if request.galois_elements:
        groups = {(g - 1) // 2: take() for g in request.galois_elements}
        data = assemble_switch_keys(parameters, groups)
        validate_switch_keys(parameters, data, sorted(groups))
        yield "galois.key", data


__all__ = ["SealRequest", "generate"]
