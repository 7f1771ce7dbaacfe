"""The Legendre PRF: secret polynomials at secret points, times squares of random elements."""

from Compiler.types import sint


def squares(size):
    """Squares of random elements. One round. A square is zero with probability 1/p."""
    return sint.get_random(size=size).square()


def blinded(points, constants, slopes, masks):
    """f_i(x) s^2 for each point x, and each polynomial f_i(X) = X + b_i, or X (X + a_i) + b_i with `slopes`: of the first point for all i, then of
    the next. `masks`: the squares s^2, of which each serves once. A round for each degree.
    """
    bits, size = len(constants), len(points)
    x = sint.concat([points.get_vector(j, 1).expand_to_vector(bits) for j in range(size)])
    b = sint.concat([constants] * size)
    if slopes is None:
        return (x + b) * masks
    return (x * (x + sint.concat([slopes] * size)) + b) * masks
