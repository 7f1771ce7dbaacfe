"""Comparisons and division of secret vectors."""

from __future__ import annotations

from ..context import Dynamic, current
from . import comparison
from .base import common_size, is_constant, read
from .clear import Element, regint, secret_bit_type, secret_type


class Comparisons(Element):
    """Comparisons of sint, which return sintbit."""

    __slots__ = ()

    def _difference(self, other: object) -> Dynamic:
        other = read(other)
        if not (is_constant(other) or isinstance(other, (Element, regint))):
            return None
        return secret_type().conv(self - other)

    def _negative(self, difference: Dynamic, bit_length: int | None) -> Dynamic:
        run = current()
        return secret_bit_type()._wrap(comparison.negative(run, difference.value, (bit_length or run.program.bit_length) + 1))

    def less_than(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x < y] for signed integers of ``bit_length`` bits (default: ``program.bit_length``)."""
        difference = self._difference(other)
        return NotImplemented if difference is None else self._negative(difference, bit_length)

    def greater_than(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x > y], see :meth:`less_than`."""
        difference = self._difference(other)
        return NotImplemented if difference is None else self._negative(-difference, bit_length)

    def less_equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x <= y], see :meth:`less_than`."""
        return _negated(self.greater_than(other, bit_length))

    def greater_equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x >= y], see :meth:`less_than`."""
        return _negated(self.less_than(other, bit_length))

    def equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x = y], see :meth:`less_than`."""
        difference = self._difference(other)
        if difference is None:
            return NotImplemented
        run = current()
        return secret_bit_type()._wrap(comparison.is_zero(run, difference.value, bit_length or run.program.bit_length))

    def not_equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x != y], see :meth:`less_than`."""
        return _negated(self.equal(other, bit_length))

    __lt__ = less_than
    __gt__ = greater_than
    __le__ = less_equal
    __ge__ = greater_equal

    def __eq__(self, other: object) -> Dynamic:
        return self.equal(other)

    def __ne__(self, other: object) -> Dynamic:
        return self.not_equal(other)

    __hash__ = None  # type: ignore[assignment]


def _negated(bit: Dynamic) -> Dynamic:
    return NotImplemented if bit is NotImplemented else 1 - bit


def divided(a: Dynamic, b: Dynamic, k: int, shift: int = 0, down: bool = False) -> Dynamic:
    """2^shift a / b, rounded towards zero (or ``down``), of signed integers of ``k`` bits. The result for b = 0 is undefined.

    Long division: k + shift - 1 consecutive steps, each a comparison of k + 1 bits and a product.
    """
    size = common_size(a.size, b.size)
    a, b = a.expand_to_vector(size), b.expand_to_vector(size)
    negative_a, negative_b = a.less_than(0, k), b.less_than(0, k)
    top, below = a - 2 * (negative_a * a), b - 2 * (negative_b * b)
    bits = [0] * shift + top.bit_decompose(k)[: k - 1]
    rest: Dynamic = secret_type()(0, size=size)
    quotient: Dynamic = secret_type()(0, size=size)
    for bit in reversed(bits):
        rest = rest + rest + bit
        fits = rest.greater_equal(below, k + 1)
        rest = rest - fits * below
        quotient = quotient + quotient + fits
    negative = negative_a.bit_xor(negative_b)
    rounded = (1 - 2 * negative) * quotient
    return rounded - negative * rest.not_equal(0, k) if down else rounded
