"""A bound on the noise of CKKS ciphertexts that stock SEAL makes, from public numbers: what approvals keep, and what `eval` states.

The flooding of a key hides noise e of which the expected squared Euclidean norm is at most N 4^b (:class:`.policy.FloodPolicy`). So a bound here
is on the root mean square of e over coefficients and randomness ("rms"). Embed e canonically: e(z) at the N odd powers z of a primitive 2N-th
root of unity. The squares of |e(z)| have the mean N rms^2. Three facts give all rules:

* A rotation permutes the values e(z). A product by a message m multiplies e(z) by m(z), and |m(z)| is at most scale times the largest value.
* Noise of one *source* (an encryption, a key-switching key, the rounding of one operation) has uncorrelated values: e(z) and e(y) have the
  expected product 0 for z != y, as its coefficients are independent and alike, or as it is such a polynomial times a fixed one.
* So a sum over automorphisms g of a_g(z) e(g z) has at most the rms of e times sqrt(sum over g of max |a_g|^2). Where g is the same, amplitudes add.

A bound keeps an amplitude for every source and automorphism. Squares add up over the automorphisms of one source. **Over sources, and over the
same automorphism, the amplitudes themselves add up**: x + x has twice the noise, and different encryptions may be as correlated as they like.

Rules, with N = ring degree, s a uniform ternary secret, P the special prime, 10.5 the variance of a key's noise:

=====================  ==================================================================================================
fresh encryption       rounding of two parts and of the encoder: sqrt((1 + 2N/3)/12 + 1/12), and (a u + e)/P, which is less; the encoder's
                       doubles: 2^-51 of the message's coefficients
key switch             sqrt(N 10.5 sum over q_i of (q_i/P)^2/3 + (1 + 2N/3)/12): SEAL's digits lie in [0, q_i), not around 0
sum, difference        amplitudes add up
rotation, conjugation  automorphisms move on; a key switch, of the source of its key
product                e1 m2 + m1 e2 + e1 e2 with |e1 e2| at most N rms1 rms2; a key switch; then rescaled
rescaling by q         everything over q, and a rounding as above
negation, next level   nothing
=====================  ==================================================================================================

MARGIN is on top of every new term. The rules are for encryptors that follow SEAL: of an input that somebody made otherwise nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from keyquorum.fhe.keys import galois_element
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.plain import Json

KEY_VARIANCE = 10.5
"""Of a coefficient of a key's noise: 21 coins less 21 coins. That of the Gaussian is 10.24."""
ENCODER = 2.0**-51
"""Relative error of SEAL's encoder, a Fourier transform of doubles: measured 2^-51 to 2^-52 of the coefficients' rms."""
MARGIN = 1.125
"""Factor on every new term: secrets have more than 2N/3 coefficients that are not 0, by a few in a hundred at most."""
MOST_TERMS = 1 << 16
"""Amplitudes that a bound keeps. Beyond, they are added up to one, as if everything were correlated."""
MOST_BITS = 400.0
"""log2 of the largest bound that is told from infinity."""

Terms = Mapping[str, Mapping[int, float]]


class Operand(Protocol):
    """What a rule needs of a ciphertext: :class:`keyquorum.fhe.seal_format.Ciphertext` has it."""

    @property
    def level_primes(self) -> int:
        """How many primes are left."""

    @property
    def scale(self) -> float:
        """Its scale."""


@dataclass(frozen=True)
class Level:
    """An operand that nobody has made."""

    level_primes: int
    scale: float


@dataclass(frozen=True)
class Noise:
    """A bound for one ciphertext. ``message``: on the absolute values of the message; ``terms``: source -> automorphism -> amplitude, the rms over
    coefficients in units of the ciphertext; ``rest``: noise of which nothing but its rms is known."""

    message: float
    terms: Terms = field(default_factory=dict)
    rest: float = 0.0

    @property
    def rms(self) -> float:
        """Bound on the root mean square of the noise, over coefficients."""
        return self.rest + sum(math.sqrt(sum(a * a for a in source.values())) for source in self.terms.values())

    @property
    def bits(self) -> float:
        """log2 of :attr:`rms`."""
        return math.log2(self.rms) if self.rms > 0 else -math.inf

    def to_json(self) -> Json:
        """Plain data, see :meth:`from_json`. Amplitudes are rounded up."""
        terms = {name: {str(g): _rounded_up(a) for g, a in source.items()} for name, source in self.terms.items()}
        return {"message": self.message, "terms": terms, "rest": _rounded_up(self.rest)}

    @staticmethod
    def from_json(data: Any) -> Noise:
        """Inverse of :meth:`to_json`. Raises ValueError, TypeError or KeyError on anything else."""
        terms = {str(name): {int(g): _amplitude(a) for g, a in source.items()} for name, source in dict(data["terms"]).items()}
        return Noise(_amplitude(data["message"]), terms, _amplitude(data["rest"]))


def _amplitude(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 2.0**MOST_BITS:
        raise ValueError(f"{value!r} is no amplitude")
    return float(value)


def _rounded_up(value: float) -> float:
    if value == 0:
        return 0.0
    step = 2.0 ** (math.floor(math.log2(value)) - 16)
    return math.ceil(value / step) * step


def rounding(ring_degree: int) -> float:
    """rms of r0 + r1 s for r0 and r1 uniform in [-1/2, 1/2) and a ternary secret."""
    return math.sqrt((1 + 2 * ring_degree / 3) / 12)


def key_switch(parameters: ParameterSet, primes: int) -> float:
    """rms of the noise of a key switch at a level of so many primes."""
    n, special = parameters.ring_degree, parameters.special_prime
    digits = sum((q / special) ** 2 for q in parameters.moduli(primes))
    return math.sqrt(n * KEY_VARIANCE * digits / 3 + rounding(n) ** 2)


def fresh_rms(parameters: ParameterSet, message: float = 1.0) -> float:
    """rms of the noise of an encryption by SEAL at the set's scale, with the errors of its encoder: rounding, and double precision."""
    n = parameters.ring_degree
    hidden = KEY_VARIANCE * (1 + 4 * n / 3) / float(parameters.special_prime) ** 2
    encoder = ENCODER * parameters.scale * message / math.sqrt(n)
    return math.sqrt(rounding(n) ** 2 + 1 / 12 + hidden + encoder**2)


def fresh(parameters: ParameterSet, digest: str, message: float = 1.0) -> Noise:
    """The bound of an encryption by SEAL. ``digest``: of its bytes, the name of its source; ``message``: bound on its values."""
    return Noise(message, {digest[:16]: {1: MARGIN * fresh_rms(parameters, message)}})


def stated(bits: float, message: float = 1.0) -> Noise:
    """A bound that somebody vouches for: an rms of 2^bits, of which nothing more is known."""
    return Noise(message, {}, 2.0**bits)


def _merged(*all_terms: Terms) -> dict[str, dict[int, float]]:
    total: dict[str, dict[int, float]] = {}
    for terms in all_terms:
        for name, source in terms.items():
            into = total.setdefault(name, {})
            for g, amplitude in source.items():
                into[g] = into.get(g, 0.0) + amplitude
    return total


def _scaled(terms: Terms, factor: float) -> dict[str, dict[int, float]]:
    return {name: {g: a * factor for g, a in source.items()} for name, source in terms.items()}


def _bounded(noise: Noise) -> Noise:
    """As it is, or with everything in the rest where it has too many terms, or is too large to tell."""
    if not (noise.rms < 2.0**MOST_BITS and noise.message < 2.0**MOST_BITS):  # or not a number
        return Noise(2.0 ** (MOST_BITS - 1), {}, 2.0 ** (MOST_BITS - 1))
    if sum(len(source) for source in noise.terms.values()) <= MOST_TERMS:
        return noise
    return Noise(noise.message, {}, noise.rms)


def _automorphism(parameters: ParameterSet, noise: Noise, primes: int, element: int) -> Noise:
    order = 2 * parameters.ring_degree
    moved = {name: {g * element % order: a for g, a in source.items()} for name, source in noise.terms.items()}
    switched = {f"key {element}": {1: MARGIN * key_switch(parameters, primes)}}
    return Noise(noise.message, _merged(moved, switched), noise.rest)


def rotations(parameters: ParameterSet, step: int, elements: Iterable[int] | None) -> list[int]:
    """Galois elements by which SEAL rotates: that of the step if its key is there (``elements``; None: all are), else those of the signed binary
    digits of the step."""
    n = parameters.ring_degree
    if step == 0:
        return []
    if elements is None or galois_element(step, n) in set(elements):
        return [galois_element(step, n)]
    found, rest, place = [], abs(step), 1
    while rest:
        digit = 2 - (rest & 3) if rest & 1 else 0
        if digit and place != n // 2:
            found.append(galois_element(digit * place * (1 if step > 0 else -1), n))
        rest, place = (rest - digit) >> 1, place * 2
    return found


def _rescaled(parameters: ParameterSet, noise: Noise, primes: int, name: str) -> Noise:
    q = parameters.coeff_modulus[primes - 1]
    rounded = {name: {1: MARGIN * rounding(parameters.ring_degree)}}
    return Noise(noise.message, _merged(_scaled(noise.terms, 1 / q), rounded), noise.rest / q)


def evaluated(
    parameters: ParameterSet,
    operation: str,
    inputs: Sequence[tuple[Operand, Noise]],
    result: str,
    step: int | None = None,
    elements: Iterable[int] | None = None,
) -> Noise:
    """The bound of what an operation of :func:`keyquorum.fhe.seal.evaluate` makes. ``result``: digest of its bytes; ``step``: of rotate;
    ``elements``: Galois elements that the key has (None: all)."""
    x, a = inputs[0]
    y, b = inputs[-1]
    primes, n = min(x.level_primes, y.level_primes), parameters.ring_degree
    if operation in ("add", "subtract"):
        noise = Noise(a.message + b.message, _merged(a.terms, b.terms), a.rest + b.rest)
    elif operation in ("multiply", "square"):
        to_a, to_b = y.scale * b.message, x.scale * a.message
        switched = {"key relin": {1: MARGIN * key_switch(parameters, primes)}}
        terms = _merged(_scaled(a.terms, to_a), _scaled(b.terms, to_b), switched)
        rest = a.rest * to_a + b.rest * to_b + n * a.rms * b.rms
        noise = _rescaled(parameters, Noise(a.message * b.message, terms, rest), primes, result[:16])
    elif operation == "rescale":
        noise = _rescaled(parameters, a, primes, result[:16])
    elif operation in ("rotate", "swap"):
        noise = a
        moves = rotations(parameters, step or 0, elements) if operation == "rotate" else [2 * n - 1]
        for element in moves:
            noise = _automorphism(parameters, noise, primes, element)
    else:  # negate, next-level, last-level
        noise = a
    return _bounded(noise)


# The circuits that the noise bound of a set is chosen for


def products(parameters: ParameterSet) -> int:
    """Products one after another that a set has room for: while the next level holds the scale and values below 2^2."""
    count, primes = 0, parameters.levels
    while primes > 1 and math.prod(parameters.moduli(primes - 1)) > 8 * parameters.scale and parameters.moduli(primes)[-1] * 2.0 > parameters.scale:
        count, primes = count + 1, primes - 1
    return count


def of_all_slots(parameters: ParameterSet, noise: Noise, primes: int) -> Noise:
    """The bound of the sum of all slots, in every slot: rotations by 1, 2, 4, ..., each added to what it rotates."""
    level = Level(primes, parameters.scale)
    for i in range(int(math.log2(parameters.slots))):
        rotated = evaluated(parameters, "rotate", [(level, noise)], "", 1 << i)
        noise = evaluated(parameters, "add", [(level, noise), (level, rotated)], "")
    return noise


def of_squares(parameters: ParameterSet, largest: float = 1.0) -> list[Noise]:
    """The bounds of x^2, x^4, ... down to the last level that has room, for values of which the last is ``largest`` at most."""
    count = products(parameters)
    noise = fresh(parameters, "x", largest ** (0.5**count))
    found = []
    for i in range(count):
        noise = evaluated(parameters, "square", [(Level(parameters.levels - i, parameters.scale), noise)], f"square {i}")
        found.append(noise)
    return found


def default_bits(parameters: ParameterSet) -> int:
    """Noise bits of a CKKS key that was not asked for others: those of the set, or what a sum of all slots needs, and products of values up to 1."""
    if parameters.noise_bits:
        return parameters.noise_bits
    circuits = [of_all_slots(parameters, fresh(parameters, "x"), parameters.levels), *of_squares(parameters)]
    return max(1, math.ceil(max(noise.bits for noise in circuits)))


__all__ = [
    "Noise",
    "default_bits",
    "evaluated",
    "fresh",
    "fresh_rms",
    "key_switch",
    "of_all_slots",
    "of_squares",
    "products",
    "rotations",
    "rounding",
    "stated",
]
