"""Arithmetic of a domain in plain Python integers, for the oracle, independent of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Q60 = 1152921504606584833
"""A 60-bit prime, 1 mod 2^18."""
Q50 = 1125899906842597
"""The largest prime below 2^50: comparisons of up to 8 bits only."""
Q17 = 65537
"""The plaintext modulus of BGV: no comparisons, and most numbers wrap around."""


@dataclass(frozen=True)
class Domain:
    """Z_2^64 or F_q. ``length``: integer length of comparisons without an explicit one (63, or ``-F``)."""

    modulus: int
    length: int

    @property
    def ring(self) -> bool:
        """Whether this is Z_2^k."""
        return self.modulus & (self.modulus - 1) == 0

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return self.modulus.bit_length() - 1 if self.ring else self.modulus.bit_length()

    @property
    def name(self) -> str:
        """As the engine names it."""
        return f"Z2^{self.bits}" if self.ring else f"F_{self.modulus}"

    def reduce(self, values: Iterable[int]) -> list[int]:
        """Canonical representatives, in [0, M)."""
        return [v % self.modulus for v in values]

    def centre(self, values: Iterable[int]) -> list[int]:
        """Signed representatives: [-M/2, M/2) on rings, [-(q-1)/2, (q-1)/2] over fields."""
        return [v - self.modulus if 2 * v >= self.modulus else v for v in self.reduce(values)]

    def integers(self, values: Iterable[int]) -> list[int]:
        """The integers for conversions to regint, comparisons and outputs: as printed, but (q-1)/2 as -(q+1)/2."""
        return [v - self.modulus if 2 * v >= self.modulus - 1 + self.ring else v for v in self.reduce(values)]


RING = Domain(1 << 64, 63)
FIELD = Domain(Q60, 18)
SMALL = Domain(Q50, 8)
TINY = Domain(Q17, 0)


def wrapped(value: int) -> int:
    """A 64-bit integer: what a regint holds."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def signed_bits(value: int, n: int) -> int:
    """How n opened bits are printed: in two's complement, a single bit as 0 or 1."""
    value %= 1 << n
    return value - (1 << n) if n > 1 and value >> (n - 1) else value


def towards_zero(a: int, b: int) -> int:
    """Quotient of regints."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def spread(values: Sequence[int], size: int) -> list[int]:
    """A scalar repeated, or the vector itself."""
    return list(values) * size if len(values) == 1 else list(values)


def compose(rows: Iterable[int], n: int) -> list[int]:
    """The n numbers whose bit i is in row i."""
    rows = list(rows)
    return [sum((row >> j & 1) << i for i, row in enumerate(rows)) for j in range(n)]


def decompose(numbers: Sequence[int], m: int) -> list[int]:
    """Rows of the low m bits of numbers: the inverse of :func:`compose`."""
    return [sum((x >> i & 1) << j for j, x in enumerate(numbers)) for i in range(m)]
