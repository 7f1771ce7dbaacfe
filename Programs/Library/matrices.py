"""Products of a public matrix, which comes as public input, with a secret vector."""

from Compiler.library import break_point
from Compiler.types import cint, sint
from inputs import public


def public_times(secret, n, size, block):
    """The `size` inner products of the next `size` vectors of n public words with a secret vector. Local; `block` vectors at a time."""
    column, products = sint.Matrix(n, 1), sint.Array(size)
    column.assign_vector(secret)
    break_point()
    for first in range(0, size, block):
        rows = min(block, size - first)
        a = cint.Matrix(rows, n)
        a.assign_vector(public(rows * n))
        products.assign_vector(a.dot(column).get_vector(), first)
    return products.get_vector()
