"""Negacyclic number-theoretic transform of secret or public vectors, in SEAL's order (all local).

SEAL's forward transform puts a(psi^(2 * bitrev(k) + 1)) at position k, psi being the smallest primitive 2N-th root of unity.
Here it runs in constant geometry: stage s pairs position p with p + N/2 and writes the results to 2p and 2p + 1, so that every
stage is a handful of operations on half vectors; the index rotates by one bit a stage and is back in place at the end.
"""

from Compiler.library import break_point
from Compiler.types import cint, regint


def smallest_root(degree, modulus):
    """The numerically smallest primitive 2N-th root of unity modulo a prime q = 1 mod 2N."""
    order = 2 * degree
    root = next(r for r in (pow(g, (modulus - 1) // order, modulus) for g in range(2, modulus)) if pow(r, degree, modulus) == modulus - 1)
    square, smallest = root * root % modulus, root
    for _ in range(degree - 1):
        root = root * square % modulus
        smallest = min(smallest, root)
    return smallest


class Ntt:
    """Transforms of length N (a power of two) modulo a prime q = 1 mod 2N; the tables are public vectors."""

    def __init__(self, degree, modulus):
        self.degree, self.modulus = degree, modulus
        self.root = smallest_root(degree, modulus)
        self._forward = self._twiddles(self.root)
        self._inverse = None

    def _twiddles(self, root):
        """Stage s, position p: entry 2^s + (p mod 2^s) of the powers of the root in bit-reversed order, by doublings.

        All through memory, and factors of full size: MP-SPDZ's compiler takes vectors apart to join or to repeat them.
        """
        half, powers = self.degree // 2, cint.Array(self.degree)
        powers.assign_vector(cint(1, size=1))
        stages = []
        for s in range(self.degree.bit_length() - 1):
            break_point()
            step = cint(pow(root, self.degree >> (s + 1), self.modulus), size=1 << s)
            powers.assign_vector(powers.get_vector(0, 1 << s) * step, 1 << s)
            break_point()
            stages.append(powers.get(regint.inc(half, 1 << s, 1, 1, 1 << s)))
        return stages

    def forward(self, x):
        """NTT of a vector of N sint or cint in coefficient form."""
        half = self.degree // 2
        line, spare = type(x).Array(self.degree), type(x).Array(self.degree)
        for twiddles in self._forward:
            u, v = x.get_vector(0, half), x.get_vector(half, half) * twiddles
            line[0 : self.degree : 2] = u + v
            line[1 : self.degree : 2] = u - v
            break_point()
            x = line.get_vector()
            line, spare = spare, line
        return x

    def inverse(self, x):
        """Coefficient form of a vector of N sint or cint in NTT form."""
        if self._inverse is None:
            self._inverse = self._twiddles(pow(self.root, -1, self.modulus))
        half = self.degree // 2
        line, spare = type(x).Array(self.degree), type(x).Array(self.degree)
        for twiddles in reversed(self._inverse):
            line.assign_vector(x)
            break_point()
            u, v = line[0 : self.degree : 2], line[1 : self.degree : 2]
            spare.assign_vector(u + v)
            spare.assign_vector((u - v) * twiddles, half)
            break_point()
            x = spare.get_vector()
            line, spare = spare, line
        return x * cint(pow(self.degree, -1, self.modulus), size=self.degree)
