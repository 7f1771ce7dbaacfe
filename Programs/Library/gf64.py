"""Products in GF(2^64) = GF(2)[X]/(X^64 + X^4 + X^3 + X + 1) on rows of secret bits, the coefficient of 1 first."""

from functools import reduce
from operator import xor

BITS = 64
TAIL = (0, 1, 3, 4)
"""X^64 is the sum of these powers of X."""


def multiply(a, b):
    """The product of two elements, 64 rows each: 729 ANDs, depth 1."""
    rows = polynomial_product(a, b)
    parts = [[row] for row in rows] + [[]]
    for power in reversed(range(BITS, 2 * BITS - 1)):
        for t in TAIL:
            parts[power - BITS + t] = parts[power - BITS + t] + parts[power]
    return [reduce(xor, odd(part)) for part in parts[:BITS]]


def odd(rows):
    """Those that occur an odd number of times."""
    found = {}
    for row in rows:
        if found.pop(id(row), None) is None:
            found[id(row)] = row
    return list(found.values())


def polynomial_product(a, b):
    """The product of two polynomials of 2^k coefficients, by Karatsuba's method: 3^k ANDs, depth 1."""
    if len(a) == 1:
        return [a[0] & b[0]]
    half = len(a) // 2
    low, high = polynomial_product(a[:half], b[:half]), polynomial_product(a[half:], b[half:])
    mixed = polynomial_product(_sum(a[:half], a[half:]), _sum(b[:half], b[half:]))
    middle = _sum(_sum(mixed, low), high)
    made = [*low, None, *high]
    for i, row in enumerate(middle):
        made[half + i] = row if made[half + i] is None else made[half + i] ^ row
    return made


def _sum(a, b):
    return [x ^ y for x, y in zip(a, b, strict=True)]
