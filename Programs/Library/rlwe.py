"""Ring-LWE over one prime: the polynomials of keys and phases, in SEAL's conventions."""

from Compiler.library import for_range
from Compiler.types import cint, regint, sint
from inputs import public, stored
from ntt import Ntt


class Rlwe:
    """The ring F_q[X]/(X^N + 1) with a secret s from the share file: `s` is its NTT form."""

    def __init__(self, degree, modulus, s_at):
        self.degree, self.ntt = degree, Ntt(degree, modulus)
        self._coefficients = stored(s_at, degree)
        self.s = self.ntt.forward(self._coefficients)

    def zero_encryptions(self, f, count, e_at):
        """-(a * s + f * e) for `count` public a (the next public input, NTT form) and noises e (from e_at on): sint.Array."""
        n = self.degree
        a, b = cint.Array(count * n), sint.Array(count * n)
        a.assign_vector(public(count * n))

        @for_range(count)
        def _(k):
            e = self.ntt.forward(stored(e_at + k * n, n))
            b.assign_vector(-(a.get_vector(k * n, n) * self.s + f * e), k * n)

        return b

    def automorphism(self, g):
        """NTT form of s(X^g), g odd: coefficient k is that of index k / g mod 2N of s, negated from N on."""
        n = self.degree
        index = regint.inc(n, 0, pow(g, -1, 2 * n)) % (2 * n)
        coefficients = sint.Array(n)
        coefficients.assign_vector(self._coefficients)
        return self.ntt.forward(coefficients.get(index % n) * (1 - 2 * cint(index // n)))
