"""Products of public polynomials with a secret one modulo X^n + 1."""

from Compiler.library import break_point, for_range
from Compiler.types import cint, regint, sint


def negacyclic(a, s, n, product=None, block=128):
    """The products of the public polynomials in `a`, of n coefficients each and one after another, with the secret polynomial s. Local.

    product: `getattr(program, 'negacyclic_product', None)`: the engine's own products, by transforms. MP-SPDZ has none, and the engine has none over
    fields. There, and for an n without transforms, the product is that of a matrix: row k has a_(k-j), or -a_(n+k-j) if k < j.
    block: rows of this matrix that are made together.
    """
    if product and 2 <= n <= 32768 and n & (n - 1) == 0:
        return product(a, s)
    count = len(a) // n
    column, public, signed, out = sint.Matrix(n, 1), cint.Array(count * n), cint.Array(2 * n), sint.Array(count * n)
    column.assign_vector(s)
    public.assign_vector(a)

    @for_range(count)
    def _(i):
        polynomial = public.get_vector(i * n, n)
        signed.assign_vector(polynomial)
        signed.assign_vector(-polynomial, n)
        break_point()
        for first in range(0, n, block):
            rows = min(block, n - first)
            # entry (k, j) is at k - j modulo 2n
            index = regint.inc(rows * n, 2 * n + first, 1, n, rows) - regint.inc(rows * n, 0, 1, 1, n)
            matrix = cint.Matrix(rows, n)
            matrix.assign_vector(signed.get(index % (2 * n)))
            out.assign_vector(matrix.dot(column).get_vector(), i * n + first)

    return out.get_vector()
