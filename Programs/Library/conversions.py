"""Shares modulo 2 or 3, one summand known to each of several parties, become shares in the domain of the program.

Paper: GMPFHE, section 4.2.1 and figure 4: two summands at a time, in a binary tree.
"""

from math import comb

from Compiler.types import sint
from inputs import contributions
from logic import parity
from trees import last_two, tree


def exclusive_or(a, b):
    """a xor b for bits, as the polynomial a + b - 2ab: one product, any domain."""
    return a + b - 2 * (a * b)


def sum_mod_2(bits):
    """XOR of secret bits: ceil(log2 n) rounds, n - 1 products per entry."""
    return tree(exclusive_or, bits)


class CubeRoot:
    """The power w^a of a primitive cube root of unity w as u + v*w, so that adding trits is multiplying. Any domain.

    a = 0, 1, 2 is (u, v) = (1, 0), (0, 1), (-1, -1): then a = 1 - u, and v is the trit in its balanced form 0, 1, -1. The
    coordinates of a product follow from w^2 = -1 - w, one element each.
    """

    def __init__(self, trit, balanced):
        self.u, self.v = 1 - trit, balanced

    def trit(self, other):
        """The sum of two trits."""
        return 1 - sint.dot_product([self.u, self.v], [other.u, -other.v])

    def balanced(self, other):
        """The sum of two trits in balanced form."""
        return sint.dot_product([self.u, self.v], [other.v, other.u - other.v])

    def __mul__(self, other):
        """Both forms of the sum."""
        return CubeRoot(self.trit(other), self.balanced(other))


def two_cube_roots(trits, balanced):
    """Cube roots of all parties' trits, multiplied until two are left: 2n - 4 products, ceil(log2 n) - 1 rounds."""
    return last_two(CubeRoot.__mul__, [CubeRoot(a, v) for a, v in zip(trits, balanced, strict=True)])


def sum_mod_3_bits(contributors, size, summands):
    """Rows [x = 1] and [x = 2] of x = (sum of a trit of each contributor) mod 3, for contributors who give the rows [a = 1] and [a = 2].

    Three ANDs a sum: with products p = a1 b1, q = a2 b2 and k = (a1 + a2)(b1 + b2) over F_2, [a + b = 1] = a1 + b1 + k + p and
    [a + b = 2] = a2 + b2 + k + q.
    """

    def add(a, b):
        k = (a[0] ^ a[1]) & (b[0] ^ b[1])
        return a[0] ^ b[0] ^ k ^ (a[0] & b[0]), a[1] ^ b[1] ^ k ^ (a[1] & b[1])

    given = [contributions(contributors, size) for _ in range(2)]
    rows = [[parity(word, 2, summands) for word in words] for words in given]
    return tree(add, list(zip(*rows, strict=True)))


def powers(x, degree):
    """x, x^2, .., x^degree of a secret vector from a tuple (r, r^2, ..) and one opening. Paper: GMPFHE, section 4.3."""
    tuples = [1, sint.get_random(size=x.size)]
    while len(tuples) <= degree:
        half = len(tuples) // 2
        tuples.append(tuples[half] * tuples[len(tuples) - half])
    difference = (x - tuples[1]).reveal()
    clear = [1, difference]
    while len(clear) <= degree:
        clear.append(clear[-1] * difference)
    return [sum((comb(k, j) * clear[k - j] * tuples[j] for j in range(1, k + 1)), clear[k]) for k in range(1, degree + 1)]


def interpolation(values, modulus):
    """Coefficients, constant first, of the polynomial with the given values at 0, 1, .., modulo a prime."""
    result = [0] * len(values)
    for i, value in enumerate(values):
        basis, scale = [1], value
        for j in range(len(values)):
            if j != i:
                basis = [(low - j * high) % modulus for low, high in zip([0, *basis], [*basis, 0], strict=True)]
                scale = scale * pow(i - j, -1, modulus) % modulus
        result = [(c + scale * b) % modulus for c, b in zip(result, basis, strict=False)]
    return result


def polynomial_mod_3(x, values, modulus):
    """The values at x = 0..4 of a polynomial of degree 4 over a prime field."""
    coefficients = interpolation(values, modulus)
    return sum((c * power for c, power in zip(coefficients[1:], powers(x, 4), strict=True)), coefficients[0])


def sum_mod_3(trits, modulus, last=(0, 1, 2, 0, 1)):
    """Sum mod 3 of two or more secret trits 0, 1, 2 over a prime field above 3: ceil(log2 n) openings, one after another.

    last: the images of 0..4 at the root of the tree.
    """
    a, b = last_two(lambda a, b: polynomial_mod_3(a + b, (0, 1, 2, 0, 1), modulus), trits)
    return polynomial_mod_3(a + b, last, modulus)
