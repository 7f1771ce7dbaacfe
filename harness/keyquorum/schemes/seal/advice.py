"""What a parameter set is good for, from public numbers alone, and sets that are made for a purpose: ``keyquorum parameters check`` and ``new``."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from keyquorum.fhe import noise_bound
from keyquorum.fhe._arith import is_prime
from keyquorum.fhe.noise_bgv import BgvNoise
from keyquorum.fhe.noise_bound import NoiseEstimate
from keyquorum.fhe.parameters import MAX_BITS_TC128, MODULUS_BITS_MAX, ParameterSet, Scheme, slots_prime
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.sharing.numbers import kind_of

from .budget import check_attempts
from .decryptable import MESSAGE_SCALES, check_decryptable, room
from .policy import FloodPolicy, flooding_distribution, flooding_variance
from .precision import LEAST_BITS, Precision, precision

AnyNoise = NoiseEstimate | BgvNoise
MOST_PRODUCTS = 64
"""Products one after another that are looked at."""
LEAST_PRIME_BITS = 20
"""Bits of the shortest prime that a new set has."""
BASE_ROOM = 3
"""Bits of CKKS that a message takes above its scale, and those of the comparison with the modulus."""


@dataclass(frozen=True)
class Possible:
    """What a committee does with ciphertexts of a set. ``why_not``: the reason, where it makes no key of the set, or cannot decrypt. ``budget``: of BFV and BGV, bits that fresh noise may grow; ``precision``: of CKKS, the
    error of a decrypted value; ``products``: products one after another, of which the result is decrypted."""

    committee: Committee
    why_not: str
    products: int = 0
    budget: float | None = None
    precision: Precision | None = None

    def does(self, products: int) -> bool:
        """Whether the committee decrypts after so many products one after another."""
        return not self.why_not and self.products >= products


def budgets(parameters: ParameterSet) -> list[float]:
    """Bits that the noise of a BFV or BGV ciphertext may still grow: fresh, and after each of as many squarings as leave any. Of BGV with a level less after each, or none, whatever takes it
    further. A bound of the estimates of ``keyquorum eval``."""
    return max(
        (_after_squarings(parameters, drops) for drops in ((False, True) if parameters.scheme == "bgv" else (False,))),
        key=lambda found: (len(found), found[-1]),
    )


def _after_squarings(parameters: ParameterSet, drops: bool) -> list[float]:
    noise = noise_bound.fresh(parameters)
    assert noise is not None
    found = [noise_bound.final_budget(parameters, noise)]
    while found[-1] >= 0 and len(found) <= MOST_PRODUCTS:
        noise = noise_bound.after(parameters, "square", [noise], noise.primes)
        if drops and noise.primes > 1:
            noise = noise_bound.after(parameters, "next-level", [noise], noise.primes - 1)
        found.append(noise_bound.final_budget(parameters, noise))
    return found if found[-1] >= 0 else found[:-1] or found


def _rescalings(parameters: ParameterSet, policy: FloodPolicy, committee: Committee) -> int:
    """Products of CKKS one after another, each rescaled by the last prime of its level, after which a ciphertext can be decrypted."""
    n, policy = parameters.ring_degree, policy.for_set(parameters)
    largest = flooding_distribution(policy, n, committee.shape).largest
    variance = flooding_variance(policy, n, committee.shape)
    scale, products = parameters.scale, 0
    for left in range(parameters.levels - 1, 0, -1):
        scale = scale * scale / parameters.coeff_modulus[left]
        fits = math.prod(parameters.moduli(left)) > 2 * (MESSAGE_SCALES * scale + largest)
        if not fits or scale > 2 * parameters.scale or precision(parameters, policy, variance, scale).bits < LEAST_BITS:
            break
        products += 1
    return products


def possible(parameters: ParameterSet, policy: FloodPolicy, committee: Committee) -> Possible:
    """What a committee does with a set."""
    try:
        check_decryptable(parameters, policy, committee)
        check_attempts(committee, parameters)
    except KeyQuorumError as error:
        return Possible(committee, str(error))
    if parameters.scheme == "ckks":
        variance = flooding_variance(policy.for_set(parameters), parameters.ring_degree, committee.shape)
        return Possible(committee, "", _rescalings(parameters, policy, committee), precision=precision(parameters, policy, variance))
    left = room(parameters, committee)
    lost = room(parameters) - left
    return Possible(committee, "", sum(budget >= lost for budget in budgets(parameters)) - 1, budget=left)


def primes_of(ring_degree: int, bits: Sequence[int], also: int = 1) -> tuple[int, ...]:
    """The largest primes of these bits that are 1 mod 2N and 1 modulo ``also``, all different, the largest last, as SEAL's ``CoeffModulus::Create``. Raises ParameterError where there are too few."""
    step = math.lcm(2 * ring_degree, also)
    pools: dict[int, list[int]] = {}
    for size in set(bits):
        found: list[int] = []
        candidate = ((1 << size) - 2) // step * step + 1
        while len(found) < bits.count(size) and candidate >= 1 << (size - 1):
            if is_prime(candidate):
                found.append(candidate)
            candidate -= step
        if len(found) < bits.count(size):
            raise ParameterError(f"there are no {bits.count(size)} primes of {size} bits that are 1 mod {step}: take longer ones")
        pools[size] = found  # the largest first, and so last in the result
    return tuple(pools[size].pop() for size in bits)


@dataclass(frozen=True)
class Wish:
    """What a new set is for. ``depth``: products one after another. ``plain_bits``: of BFV and BGV, bits of the plain modulus. ``spare``: of BFV and BGV, bits of noise budget after the products,
    for sums and rotations. ``precision``: of CKKS, bits of a value of size 1 after decryption; ``policy``: flooding of decryptions."""

    scheme: Scheme
    depth: int = 1
    plain_bits: int = 17
    spare: int = 4
    precision: int = 5
    policy: FloodPolicy = field(default_factory=FloodPolicy)

    def check(self) -> None:
        """Refuses wishes that make no sense. Raises ParameterError, PolicyError."""
        if self.scheme not in ("bfv", "bgv", "ckks"):
            raise ParameterError(f"scheme {self.scheme!r} is unknown: choose bfv, bgv or ckks")
        for name, value, least, most in (
            ("depth", self.depth, 0, MOST_PRODUCTS), ("plain bits", self.plain_bits, 12, 50), ("spare bits", self.spare, 0, 200), ("precision", self.precision, 3, 40),
        ):  # fmt: skip
            if not least <= value <= most:
                raise ParameterError(f"{name} {value}: choose {least} to {most}")
        replace(self.policy, noise_bits=self.policy.noise_bits or 1).check(min(MAX_BITS_TC128))


def design(name: str, wish: Wish, committee: Committee) -> ParameterSet:
    """The set of the least ring degree, with the fewest and then the shortest primes, that does what is wished and has 128-bit security by SEAL's table. Raises ParameterError where there is
    none, with what could be wished instead."""
    wish.check()
    for degree, most in MAX_BITS_TC128.items():
        candidates = (
            _ckks_candidates(name, wish, degree, most, committee)
            if wish.scheme == "ckks"
            else _integer_candidates(name, wish, degree, most, committee)
        )
        found = next(candidates, None)
        if found is not None:
            return found
    less = f"a lower --depth (now {wish.depth})"
    less += (
        f", less --precision (now {wish.precision}), or a smaller policy (--decryptions, --noise-bits)"
        if wish.scheme == "ckks"
        else f", fewer --plain-bits (now {wish.plain_bits})"
    )
    raise ParameterError(f"no set of 128-bit security does this, not even at N = {max(MAX_BITS_TC128)}: wish {less}")


def _set(name: str, wish: Wish, degree: int, primes: tuple[int, ...], t: int, scale_bits: int = 0) -> ParameterSet:
    return ParameterSet(name, wish.scheme, degree, primes, t, scale_bits, source="keyquorum parameters new")


def _integer_candidates(name: str, wish: Wish, degree: int, most: int, committee: Committee) -> Iterator[ParameterSet]:
    """Sets of BFV or BGV that do what is wished, those with the fewest primes first. All primes have the same length."""
    t = slots_prime(degree, (1 << (wish.plain_bits - 1)) + 1)

    def made(count: int, bits: int) -> ParameterSet | None:
        for also in (
            (t, 1) if wish.scheme == "bgv" else (1,)
        ):  # of BGV primes that are 1 modulo t, if there are such: sums of levels then take no factors
            try:
                parameters = _set(name, wish, degree, primes_of(degree, [bits] * count, also), t)
            except ParameterError:
                continue
            found = budgets(parameters)
            enough = len(found) > wish.depth and found[wish.depth] >= wish.spare
            return parameters if enough and possible(parameters, wish.policy, committee).does(wish.depth) else None
        return None

    for count in range(2, most // LEAST_PRIME_BITS + 1):
        widest = min(MODULUS_BITS_MAX, most // count)
        if widest < LEAST_PRIME_BITS or made(count, widest) is None:
            continue
        shortest = next(bits for bits in range(LEAST_PRIME_BITS, widest + 1) if made(count, bits) is not None)
        found = made(count, shortest)
        assert found is not None
        yield found


def _ckks_candidates(name: str, wish: Wish, degree: int, most: int, committee: Committee) -> Iterator[ParameterSet]:
    """The set of CKKS with the least scale that does what is wished. It has primes for what is decrypted, one of the bits of the scale for each product, and the special one."""

    def made(scale: int) -> ParameterSet | None:
        base = scale + BASE_ROOM
        while True:
            parts = -(-base // (MODULUS_BITS_MAX - 1))
            base = max(base, parts * kind_of(committee).least_prime_bits)
            lengths = [base // parts + (i < base % parts) for i in range(parts)]
            bits = [*lengths, *[scale] * wish.depth, max(*lengths, scale)]
            if sum(bits) > most:
                return None
            try:
                parameters = _set(name, wish, degree, primes_of(degree, bits), 0, scale)
                policy = wish.policy.for_set(parameters)
                largest = flooding_distribution(policy, degree, committee.shape).largest
            except KeyQuorumError:
                return None
            wanted = math.ceil(math.log2(2 * (MESSAGE_SCALES * 2 * parameters.scale + largest))) + 1
            if base >= wanted:
                return parameters
            base = wanted

    def precise(scale: int) -> bool:
        parameters = made(scale)
        found = None if parameters is None else possible(parameters, wish.policy, committee)
        return found is None or (found.precision is not None and found.precision.bits >= wish.precision)

    scale = LEAST_PRIME_BITS + bisect_left(range(LEAST_PRIME_BITS, MODULUS_BITS_MAX), True, key=precise)
    parameters = made(scale) if scale < MODULUS_BITS_MAX else None
    if parameters is not None and possible(parameters, wish.policy, committee).does(wish.depth):
        yield parameters


__all__ = ["Possible", "Wish", "budgets", "design", "possible", "primes_of"]
