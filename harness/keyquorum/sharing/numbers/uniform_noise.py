"""Flooding noise that is made of random bits, for committees with MACs: its distribution, what it hides, and how wide a policy makes it.

With MACs no party inputs noise: nothing would show that it is one integer modulo all primes, and not too large. Random bits of the protocol have no such choice, but a
discrete Gaussian number of 40 bits takes too many of them. The noise of a coefficient is

    F = 2^fine (V_1 + V_2 + V_3) + U - centre,

with U uniform in [0, 2^fine), and V_i uniform in [0, A_i), A_i a power of two. The program `sample_flooding` draws its bits.

**What it hides.** H^2(P, Q) = 1 - sum of sqrt(p q) is the squared Hellinger distance. Let p be the distribution of V_1 + V_2 + V_3, and h = H^2 between p and p moved by one.

* p moved by d: H^2 is half the squared Euclidean distance of the vectors sqrt(p), so its root grows at most d-fold: H^2 <= d^2 h.
* F moved by an integer e, with K = 2^fine, |e| = K (d + theta), d an integer, 0 <= theta < 1: a share 1 - theta of the residues modulo K sees p moved by d, a share theta sees it moved by d + 1.
  So H^2 <= h ((1 - theta) d^2 + theta (d + 1)^2) = h ((e/K)^2 + theta (1 - theta)) <= h ((e/K)^2 + 1/4).
* N independent coefficients: 1 - H^2 is a product, so H^2 adds up at most: N h (4^noise_bits / K^2 + 1/4) for an error of Euclidean norm sqrt(N) 2^noise_bits. For a random error its expected
  square counts, as H^2 is convex.
* tau decryptions, each chosen after the last. Let P and Q be the transcripts of the two worlds, and take the secrets, which are alike in both, as their first coordinate. Let p(t) and q(t) be the
  probabilities of the first coordinates t up to some step, H_i^2(t) the distance of step i after t, and A the sum of sqrt(p q), so that H^2 = 1 - A. Then
  1 - A(P, Q) = sum over i, and over t before step i, of sqrt(p(t) q(t)) H_i^2(t). As sqrt(p q) <= (p + q)/2, this is at most the mean over both worlds of the expected sum of H_i^2. So H^2 adds up
  again, and a bound on the EXPECTED squared norm of each error suffices, if it holds in both worlds: with flooded results as with flooding alone.
* The advantage of any test is at most sqrt(2 H^2).

This takes the place of the Kullback-Leibler divergence of Li, Micciancio, Schultz and Sorrell (CRYPTO 2022), which is infinite here, as F ends somewhere. Hellinger distance serves as well in games
of decision and of search (Yasunaga: Replacing Probability Distributions in Security Games via Hellinger Distance, ITC 2021). Three uniform numbers are the fewest that do: near the ends of the
sum of two, p grows linearly, and h has a factor log A; near those of one it jumps, and h is 1/A. For three of equal size h is 0.571/A^2, and the deviation of F is 7 % above that of a Gaussian of
the same h.

**Keys that were passed on.** A committee without MACs may have served some of the tau decryptions, with Gaussian noise (:class:`.FloodPolicy`). Its steps have H^2 <= |e|^2 / (8 sigma^2), a quarter of the divergence that the policy
counts: pi A^2 / (4 tau) for an advantage of A in all. Steps of this noise have A^2 / (2 tau). H^2 adds up over both, so tau decryptions of whatever mixture have an advantage of at most sqrt(pi / 2) A, a third of a bit more than A. So one count goes along with the key.

**What is opened beside it.** To reach several primes F is lifted in short pieces, under masks. Their distance from independence is counted twice (both worlds are compared with the one in which constants
are opened under the masks), with that of the pads of MACs and products. The sum of all is at most the advantage that the policy states (:attr:`.FloodPolicy.advantage`): :func:`uniform_noise` chooses the sizes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from keyquorum._engine import budget_lift, budget_lift_tests, budget_residues
from keyquorum.model.errors import PolicyError
from keyquorum.sharing.budget import LIFT_VARIANCE, product_pads

from .lift import LIFT_BITS, MERSENNE, input_bits
from .lift_tests import mask_width

WIDTHS = range(12, 3, -1)
"""Bits of a piece: the shorter, the better a lift hides it, and the more pieces there are."""
OPENED_SHARE = 1 / 16
"""Of the advantage: what the lift and the pads may take of it."""
LEAST_WIDE, MOST_WIDE = 3, 180
"""Of V_1, V_2 and V_3 together: what the program takes."""
BLOCKS = 512
"""Blocks of a stretch of :func:`roughness`."""
BIT_ELEMENTS = 34
"""Elements that a party gives MACs to for a random bit over a field."""
INPUT_ELEMENTS = 64
"""The same for a piece: its masks in all domains."""
BIT_PRODUCTS = 2
"""Additive products of a party for a random bit."""


@dataclass(frozen=True)
class UniformNoise:
    """F as above. ``fine``: bits of U; ``wide``: of V_1, V_2 and V_3 together; ``width``: of a piece."""

    fine: int
    wide: int
    width: int

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Bits of V_1, V_2 and V_3: the longest first, as equal as they can be."""
        a, b, c = ((self.wide + 2 - i) // 3 for i in range(3))
        return a, b, c

    @property
    def places(self) -> list[int]:
        """The exponent of every bit of F."""
        return sorted([*range(self.fine), *(self.fine + i for length in self.lengths for i in range(length))])

    @property
    def pieces(self) -> int:
        """F is the sum of 2^(width j) e_j over so many pieces e_j."""
        return -(-(self.fine + self.lengths[0]) // self.width)

    @property
    def centre(self) -> int:
        """What is taken off: half of the largest sum, rounded down. A constant that remained would add up in the values near the root 1."""
        return sum(1 << place for place in self.places) // 2

    @property
    def centres(self) -> list[int]:
        """The same of every piece: together they are :attr:`centre`."""
        found, odd = [], 0
        for piece in reversed(range(self.pieces)):
            odd, half = (whole := sum(self.weights(piece)) + (odd << self.width)) % 2, whole // 2
            found.append(half)
        return found[::-1]

    @property
    def largest(self) -> int:
        """Bound on |F|."""
        return self.centre + 1

    @property
    def variance(self) -> float:
        """Of F: a quarter of the squared weight of every bit."""
        return sum(4.0**place for place in self.places) / 4

    @property
    def piece_bits(self) -> int:
        """Pieces are below 2^piece_bits in absolute value."""
        return self.width + 1

    @property
    def piece_square(self) -> float:
        """The largest expected square of a piece less a constant integer near its mean."""
        return max(sum(w * w for w in weights) / 4 + 1 / 4 for weights in map(self.weights, range(self.pieces)))

    def weights(self, piece: int) -> list[int]:
        """Weights of the bits of a piece."""
        return [1 << place - self.width * piece for place in self.places if place // self.width == piece]

    def hellinger(self, degree: int, noise_bits: int) -> float:
        """Bound on the squared Hellinger distance of one decryption: F moved by an error of expected squared Euclidean norm N 4^noise_bits."""
        return degree * roughness([1 << length for length in self.lengths]) * (4.0 ** (noise_bits - self.fine) + 0.25)

    def opened(self, degree: int, decryptions: int, parties: int, threshold: int) -> float:
        """Distance from independence of all that is opened and sent for the noise of so many decryptions: masked pieces, sums that test them, and pads."""
        values = math.ceil(decryptions * degree * self.pieces * self.piece_square / LIFT_VARIANCE)
        masks = budget_lift(values, input_bits(threshold))
        tests = budget_lift_tests(values, mask_width(parties, MERSENNE, 1 << self.piece_bits))
        coefficients, bits = decryptions * degree, self.fine + self.wide
        elements = (BIT_ELEMENTS * bits + INPUT_ELEMENTS * self.pieces) * coefficients
        pads = budget_residues(elements, parties - 1, LIFT_BITS) + product_pads(BIT_PRODUCTS * bits * coefficients, parties - 1, LIFT_BITS)
        return math.hypot(masks, tests) + pads


def roughness(sizes: Sequence[int]) -> float:
    """Upper bound on h: the squared Hellinger distance by which the sum of three uniform numbers below ``sizes`` changes when it is moved by one.

    With c_i ways to get the sum i, 2 h times the product of the sizes is the sum over i of (sqrt(c_i) - sqrt(c_(i-1)))^2, which is symmetric: twice the sum over the first half is enough.
    Let C be the smallest size. For i < C, c_i = (i + 1)(i + 2)/2, and the term is m (m - sqrt(m^2 - 1)) with m = i + 1, at most 1/2 + 1/(2 m^2): less than C/2 + pi^2/12 in all. From C on to the middle
    c_i grows, and c_i - c_(i-1) is linear between the sizes and their sums. Between these, blocks have the largest difference at one end, and the smallest c_(i-1) at the
    beginning: a term is at most (c_i - c_(i-1))^2 / (4 c_(i-1)). The bound is at most 2 % above h for sizes from 64 on, and 0.1 % from 1024 on.
    """
    a, b, c = sorted(sizes, reverse=True)

    def pairs(i: int) -> int:
        """Ways to get i as a sum of two numbers below a and b."""
        return max(0, min(i, b - 1, a + b - 2 - i) + 1)

    def at_most(i: int) -> int:
        """Ways to get at most i as such a sum."""
        return sum(sign * (max(0, j + 1) * max(0, j + 2) // 2) for sign, j in ((1, i), (-1, i - a), (-1, i - b), (1, i - a - b)))

    middle, total = (a + b + c - 2) // 2, c / 2 + math.pi**2 / 12
    cuts = sorted({c, middle + 1, *(cut for cut in (a, b, a + c, b + c) if c < cut <= middle)})
    for first, last in pairwise(cuts):
        count = min(BLOCKS, last - first)
        edges = [first + (last - first) * j // count for j in range(count + 1)]
        for begin, end in pairwise(edges):
            growth = max(abs(pairs(i) - pairs(i - c)) for i in (begin, end - 1))
            total += (end - begin) * growth * growth / (4 * (at_most(begin - 1) - at_most(begin - 1 - c)))
    return total / (a * b * c)


@lru_cache(maxsize=64)
def uniform_noise(bits: int, decryptions: int, noise_bits: int, degree: int, parties: int, threshold: int) -> UniformNoise:
    """The narrowest noise that keeps the advantage of a policy of so many ``bits``, ``decryptions`` and ``noise_bits``, over all decryptions together. Raises PolicyError where there is none."""
    advantage = math.pow(2.0, -bits / 2) / math.sqrt(24 * math.pi)
    fine = noise_bits - 1

    def hides(wide: int) -> bool:
        return math.sqrt(2 * decryptions * UniformNoise(fine, wide, 1).hellinger(degree, noise_bits)) <= (1 - OPENED_SHARE) * advantage

    wide = LEAST_WIDE + bisect_left(range(LEAST_WIDE, MOST_WIDE), True, key=hides)
    for width in WIDTHS:
        found = UniformNoise(fine, wide, width)
        # The search ends at the widest noise that the program takes, whether it hides or not.
        if hides(wide) and 2 * found.opened(degree, decryptions, parties, threshold) <= OPENED_SHARE * advantage:
            return found
    raise PolicyError(
        f"flooding of {bits} bits over {decryptions:,} decryptions is more than committees with MACs hide, whose noise is lifted to several primes: "
        "make a key with fewer bits or decryptions"
    )


__all__ = ["UniformNoise", "roughness", "uniform_noise"]
