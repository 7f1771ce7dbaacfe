"""Products of secret bits with a secret vector, times a power of two."""

from Compiler.types import cint, regint


def bit_products(bits, v, shift, product=None):
    """2^shift times the product of each element of the array `bits`, secret values 0 and 1, with each element of the secret array v, modulo 2^k. The
    products of the first bit come first.

    product: `getattr(program, 'bit_products', None)`: the engine's own products. They count modulo 2^(k-shift) alone, and among additive parties they are
    oblivious transfers of whole vectors. MP-SPDZ has none, and the engine has none with MACs: there each is a product of its own.
    """
    if product:
        return product(bits.get_vector(), v.get_vector(), shift)
    size, n = len(bits) * len(v), len(v)
    return (cint(1) << shift) * (bits.get(regint.inc(size, 0, 1, n)) * v.get(regint.inc(size, 0, 1, 1, n)))
