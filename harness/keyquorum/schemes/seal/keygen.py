"""Joint generation of SEAL keys: the secret key exists as shares only.

1. The parties toss a public seed; everything public (the `a` of every key, the key id) comes from it.
2. `sample_ternary`, in one domain that is large enough: the secret, uniform ternary (protocols: section 1). Where products are verified, the trits are joint
   integers, so that no party chooses what it contributes; otherwise t + 1 parties input them. With MACs `trit_inputs` proves that each party gave trits.
3. `sample_cbd` or `sample_gaussian`, there as well; `lift_open` and `lift_close` bring the secret and the noise to every prime.
   With MACs random subset sums prove that they are the same there (:mod:`keyquorum.sharing.lifted`).
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

from keyquorum._engine import CheckError, joint_summands
from keyquorum.dsl import Persistence
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
from keyquorum.programs import Segment
from keyquorum.programs.signatures import (
    lift_close,
    lift_open,
    rlwe_public_key,
    rlwe_switch_key,
    sample_cbd,
    sample_gaussian,
    sample_ternary,
    trit_inputs,
)
from keyquorum.schemes.generation import Generation, Opening, framed
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Plain
from keyquorum.sharing.lifted import LiftedDomain, LiftTests, pieces_of
from keyquorum.sharing.randomness import uniform_below, uniform_trits, wipe
from keyquorum.sharing.shares import DomainRun, Shares

from .budget import LIFT_BITS, MERSENNE, NOISE_BITS, SMOOTH, SMOOTH_BITS, check_attempts, check_leaks, input_bits, lift_masks, short_primes
from .decryptable import check_decryptable, check_set
from .key import ERROR_LAWS, SealKeyInfo, parameters_from_json, parameters_to_json
from .needs import KeygenSizes, keygen_needs
from .policy import FloodPolicy, flooding_variance, policy_from_json
from .precision import check_key_precision
from .ring import RING, decrypts_in_ring

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

OPENING = Opening(
    "key parameters", b"keyquorum keygen v1", lambda described, tossed: [*framed("parameters", described), *framed("seed", tossed)], 64, "set-up"
)

BOUND = 1 << NOISE_BITS
"""Bound on the absolute values of secret and noise."""
CHUNK = 1 << 18
"""Noise coefficients sampled at a time: bounds memory."""
GAUSSIAN_CHUNK = 1 << 15
"""The same for `gaussian` over a field, whose 42 bits a coefficient come with some 350 products."""
AUTHENTICATED_CHUNK = 1 << 14
"""The same with MACs, of which every bit has one."""
VERIFIED_CHUNK = 1 << 15
"""The same with verified products, which are remembered until they are checked."""
LIFTED = 1 << 23
"""Masks of all contributors in one run of `lift_open`."""


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

    def check(self, contributors: float = 1) -> None:
        """Refuses what cannot be made. ``contributors``: the variance of the flooding of a decryption over that of one contributor (:func:`.flooding_variance`)."""
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
        check_key_precision(self.parameters, self.policy, contributors)

    def needs(self, committee: Committee) -> Needs:
        """What the plan will need at each party of a committee, on the embedded engine."""
        self.check_committee(committee)
        primes = len(self.parameters.coeff_modulus)
        sizes = KeygenSizes(
            degree=self.parameters.ring_degree,
            primes=primes,
            polynomials=1 + (primes - 1) * len(self.targets),
            error_law=self.error_law,
            sampled=_sampled_at_a_time(committee, self.error_law),
            lifted=_lifted_at_a_time(committee.threshold + 1),
            binary=_noise_method(committee) == "bits",
        )
        return keygen_needs(sizes, committee)

    def check_budget(self, committee: Committee) -> None:
        """Refuses a key whose opened values would leak too much together, or, with MACs, whose shortest prime gives too little soundness."""
        polynomials = 1 + (len(self.parameters.coeff_modulus) - 1) * len(self.targets)
        values = self.parameters.ring_degree * (1 + polynomials)
        check_attempts(committee, self.parameters)
        check_leaks(committee, values, _mask_bits(committee), LIFT_BITS)

    def check_committee(self, committee: Committee) -> None:
        """See :class:`.KeyRequest`."""
        contributors, n = 1.0, self.parameters.ring_degree
        if self.parameters.scheme == "ckks":
            self.policy.check(n)
            contributors = flooding_variance(self.policy, n, committee.protocol, committee.size, committee.threshold)
        self.check(contributors)
        check_decryptable(self.parameters, self.policy, committee)
        self.check_budget(committee)

    def warnings(self, committee: Committee | None = None) -> list[str]:
        """Weaknesses of the policy; for a committee, with the number, that short primes take a key with MACs above the budget."""
        if committee is None:
            return self.policy.weaknesses(self.parameters)
        found = [short_primes(committee, self.parameters)]
        if committee.authenticated and self.parameters.scheme != "ckks" and not decrypts_in_ring(self.parameters):
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


def _signed(words: Words) -> Ints:
    return words.astype(np.int64)


def _residues(words: Ints, q: int) -> Words:
    """Centred int64 to [0, q)."""
    return np.where(words < 0, words + q, words).astype(np.uint64)


def _lifted_at_a_time(contributors: int) -> int:
    return LIFTED // contributors


def _joint_summands(committee: Committee) -> int:
    """Summands of the joint integers that mask what is lifted; 0 where t + 1 parties input masks. Joint integers are for committees of so few summands that masks
    have no fewer bits. Where products are verified there is nothing else: a party could input other masks in every domain."""
    found = joint_summands(committee.field_protocol, committee.size, committee.threshold)
    if committee.verifies_products:
        return found
    return found if found and LIFT_BITS - 1 - found.bit_length() >= input_bits(committee.threshold) else 0


def _mask_bits(committee: Committee) -> int:
    """Bits of a mask of `lift_open`, of each of t + 1 parties, or of each summand of a joint integer: sums of them do not wrap."""
    summands = _joint_summands(committee)
    return LIFT_BITS - 1 - summands.bit_length() if summands else input_bits(committee.threshold)


def _noise_method(committee: Committee) -> Literal["bits", "arith"]:
    """The method of the samplers of noise: in the binary domain, unless the committee shares by Shamir's scheme, which has none."""
    return "arith" if committee.ring_protocol is None else "bits"


def _sampled_at_a_time(committee: Committee, distribution: str) -> int:
    if committee.authenticated:
        return AUTHENTICATED_CHUNK
    if committee.verifies_products:
        return VERIFIED_CHUNK
    return CHUNK if distribution == "cbd" or _noise_method(committee) == "bits" else GAUSSIAN_CHUNK


def _seeds(master: bytes, count: int) -> list[bytes]:
    return [hashlib.shake_256(b"keyquorum a" + master + i.to_bytes(8, "little")).digest(64) for i in range(count)]


def generate(context: PartyContext, request: SealRequest, seed: bytes | None = None) -> KeyMaterial[SealKeyInfo]:
    """Makes a key jointly; every party calls this. ``seed`` is INSECURE and for tests only.

    Rounds: those of the two samplers, 2 for the lift (1 among three parties with joint integers), and a prime 1 or 2 for the keys, after 1 for masks that are no
    joint integers.
    """
    committee, parameters = context.committee, request.parameters
    request.check_committee(committee)
    require_embedded(committee, context.backend.name)
    in_ring = committee.authenticated and context.backend.name == "embedded" and decrypts_in_ring(parameters)
    described = [
        parameters.name, parameters.scheme, parameters.ring_degree, list(parameters.coeff_modulus), parameters.plain_modulus,
        [str(target) for target in request.targets], request.error_law, asdict(request.policy),
    ]  # fmt: skip
    with Generation(context, request, OPENING, described, seed, more=[committee.ring_protocol] if in_ring else []) as made:
        return _generate(made, in_ring)


def _generate(made: Generation[SealRequest], in_ring: bool) -> KeyMaterial[SealKeyInfo]:
    """See :func:`generate`. ``in_ring``: whether the committee decrypts in a ring, where it has the secret too."""
    context, request, run, transcript, wiping = made.context, made.request, made.run, made.transcript, made.wiping
    parameters, committee = request.parameters, context.committee
    n, primes = parameters.ring_degree, parameters.coeff_modulus
    digits = len(primes) - 1
    targets = request.targets
    polynomials = 1 + digits * len(targets)
    contributors = committee.threshold + 1
    contributes = context.party < contributors
    backend = context.backend
    seeds = _seeds(made.tossed, polynomials)
    public_a = [expand_a(s, n, primes) for s in seeds]

    security = _mask_bits(committee) - NOISE_BITS
    # Products of a prime field are verified faster than those modulo 2^k, which take an extension ring.
    if committee.ring_protocol is not None and not committee.authenticated and not committee.verifies_products:
        bits = backend.ring_bits(LIFT_BITS)
        first, in_bits = run.ring(bits), True
    else:
        first, in_bits = run.field(MERSENNE), False
    source = first.shares()
    with context.phase("secret"):
        if committee.verifies_products:
            source = first.shares(_joint_secret(context, first, n), secret=n)
        elif committee.authenticated:
            source = first.shares(_checked_secret(context, first, n), secret=n)
        else:
            trits = uniform_trits(n)
            forms = [trits == 1, trits == 2] if in_bits else [trits, np.where(trits == 2, -1, trits)]
            private = np.concatenate(forms).astype(np.int64) if contributes else None
            ternary = sample_ternary(contributors=contributors, N=n, method="bits" if in_bits else "bilinear")
            source.run(ternary, private, appends="secret")
            wipe(trits, *forms, *([] if private is None else [private]))

    noises = polynomials * n
    with context.phase("noise"):
        sampler, chunk = _noise_method(committee), _sampled_at_a_time(committee, request.error_law)
        if request.error_law == "cbd":
            noise = sample_cbd(size=noises, method=sampler, chunk=chunk)
        else:
            noise = sample_gaussian(size=noises, method=sampler, sigma_milli=3200, bits=40, tail=23, chunk=chunk)
        source.run(noise, appends="noise")

    count, layout = source.length, source.layout
    with context.phase("lift"):
        summands = _joint_summands(committee) if backend.takes_joint_integers else 0
        joint = masks = None
        if summands:
            joint = first.joint_integers(count, NOISE_BITS + security - SMOOTH_BITS, SMOOTH)
        elif contributes:
            masks = lift_masks(count, NOISE_BITS + security)
            wiping.callback(wipe, masks)
        step_size = _lifted_at_a_time(contributors)
        pieces = [Segment(at, min(step_size, count - at)) for at in range(0, count, step_size)]
        if joint is not None:
            source.append_joint(joint.shares(first.domain), joint)
        opened = np.concatenate([
            source.run(
                lift_open(
                    contributors=summands or contributors, size=piece.length, b=NOISE_BITS, lam=security, modulus=first.modulus, x=piece,
                    masks="stored" if joint is not None else "inputs", r=Segment(count + piece.start, piece.length) if joint is not None else None,
                ),
                private=None if masks is None else masks[piece.slice],
            )
            for piece in pieces
        ])  # fmt: skip
        transcript.add(*framed("lift", opened.tobytes()))
        tests = None
        if committee.authenticated:
            cuts = pieces_of(count, n)
            tests = wiping.enter_context(LiftTests(context, cuts, first.modulus, BOUND))
            tests.input_masks(LiftedDomain(source, len(cuts)))
        else:
            source.wipe()

    def lifted(q: int) -> Shares:
        """Shares of secret and noise modulo a prime, in the order of the share file in which they were sampled: runs of `lift_close` keep it."""
        shares = run.field(q).shares()
        if joint is not None:
            shares.append_joint(joint.shares(shares.runs.domain), joint)
        for piece in pieces:
            shares.run(
                lift_close(
                    contributors=summands or contributors, size=piece.length, b=NOISE_BITS,
                    masks="stored" if joint is not None else "inputs", r=piece if joint is not None else None,
                ),
                None if masks is None else masks[piece.slice], [opened[piece.slice]],
            )  # fmt: skip
        return shares

    tested: list[Shares] = []
    ring_share: Shares | None = None
    if tests is not None:
        # Nothing is computed with values before all primes have been tested together.
        with context.phase("lift test"):
            for q in primes:
                tested.append(lifted(q))
                tests.input_masks(LiftedDomain(tested[-1], len(cuts)))
            if in_ring:
                ring_share = run.ring(RING.bits).shares()
                call = lift_close(contributors=contributors, size=n, b=NOISE_BITS)
                mine = None if masks is None else masks[:n]
                ring_share.run(call, mine, [opened[:n]])
                tests.input_masks(LiftedDomain(ring_share, len(pieces_of(n, n))))
            transcript.add(*framed("lift tests", tests.run()))
            source.wipe()

    factor = parameters.plain_modulus if parameters.scheme == "bgv" else 1
    b = np.empty((polynomials, len(primes), n), dtype=np.uint64)
    group = backend.most_targets or len(targets) or 1
    with context.phase("keys", len(primes)) as step:
        for j, q in enumerate(primes):
            working = tested[j] if tested else lifted(q)
            a = [_signed(p[j]) for p in public_a]
            secret, noises_of = layout["secret"], layout["noise"].rows
            call = rlwe_public_key(N=n, q=q, f=factor, count=1, s=secret, e=noises_of(0, 1, n))
            out = working.run(call, public=[a[0]])
            b[0, j] = _residues(out, q)
            for at in range(0, len(targets), group):
                chosen = targets[at : at + group]
                begin, end = 1 + at * digits, 1 + (at + len(chosen)) * digits
                call = rlwe_switch_key(
                    N=n, q=q, f=factor, digits=digits, i=j, P_mod_q=primes[-1] % q, s=secret, e=noises_of(begin, end, n), targets=chosen
                )
                out = working.run(call, public=a[begin:end])
                b[begin:end, j] = _residues(out, q).reshape(end - begin, n)
            made.keep(working.first(secret.length))
            working.wipe()
            step()
        if masks is not None:
            wipe(masks)
    if ring_share is not None:
        made.keep(ring_share.first(n))
        ring_share.wipe()

    with context.phase("check"):
        made.public.update(_public_files(request, b, seeds))
        for name, data in made.public.items():
            transcript.add(*framed(name, data))
        made.compare()
    return made.finish(
        SealKeyInfo, error_law=request.error_law, relin=request.relin, galois_elements=request.galois_elements, policy=request.policy,
        ring_secret=in_ring, lift_tested=tests is not None and backend.name == "embedded",
    )  # fmt: skip


def _joint_secret(context: PartyContext, over: DomainRun, size: int) -> Persistence:
    """Shares of a secret that is uniform in {-1, 0, 1}^size and that no party has a choice in: joint trits, added up modulo 3 by verified products. Rounds and
    bytes are those of `sample_ternary` with stored trits, without messages for the trits themselves."""
    summands = joint_summands(over.sharing.protocol, context.committee.size, context.committee.threshold)
    joint = over.joint_integers(size, 0)
    with over.shares() as trits:
        for summand in range(summands):
            for value in (1, 2):
                trits.append_joint(joint.indicators(over.domain, summand, value), joint)
        trits.run(sample_ternary(contributors=summands, N=size, trits="stored", indicators=Segment(0, trits.length)))
        return trits.first(size)


def _checked_secret(context: PartyContext, over: DomainRun, size: int) -> Persistence:
    """Shares of a secret that is uniform in {-1, 0, 1}^size if one party is honest: every party inputs trits, all see that they are trits, and verified products add
    them up modulo 3. Raises :class:`.CheckError`, which names a party that gave something else. Rounds and bytes are those of `trit_inputs` and of `sample_ternary` with stored trits."""
    contributors = context.committee.size
    private = _proven_trits(size)
    with over.shares() as trits:
        try:
            opened = trits.run(trit_inputs(contributors=contributors, N=size), private)
        finally:
            wipe(private)
        _judge_trits(opened.reshape(contributors, -1))
        trits.run(sample_ternary(contributors=contributors, N=size, trits="stored", indicators=Segment(0, trits.length)))
        return trits.first(size)


def _proven_trits(size: int) -> Ints:
    """The private input of `trit_inputs` for fresh uniform trits, over the field in which secrets are made: 7 * size words in [0, 2^61 - 1). Its masks x and y are
    uniform there, and used once: the program opens e = r u + x. Arrays that held trits or masks on the way are wiped."""
    private = np.empty((7, size), dtype=np.int64)
    u, v, x, y, xu, yv, xv = private
    trits = uniform_trits(size)
    np.bitwise_and(trits, 1, out=u)
    np.right_shift(trits, 1, out=v)
    wipe(trits)
    for mask in (x, y):
        drawn = uniform_below(size, MERSENNE)
        mask[:] = drawn
        wipe(drawn)
    np.multiply(x, u, out=xu)
    np.multiply(y, v, out=yv)
    np.multiply(x, v, out=xv)
    return private.reshape(-1)


def _judge_trits(opened: Ints) -> None:
    """Refuses what is not the indicators of a trit: rows of what `trit_inputs` opened, one a contributor."""
    for party, words in enumerate(opened):
        if words.any():
            raise CheckError(f"party {party} gave no trits for the secret: it cheats, make the key without it")


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
