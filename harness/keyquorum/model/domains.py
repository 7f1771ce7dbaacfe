"""Domains of shares: integers modulo 2^k and prime fields, and a protocol with its domain."""

from __future__ import annotations

from typing import NamedTuple

from .errors import ParameterError


class Domain(str):
    """A domain: :class:`Ring` or :class:`Field`. It is its text, ``Z2^k`` or ``F_q``, as the engine and files have it, and knows the numbers in
    it."""

    prime: int | None
    """q; None for a ring."""
    bits: int
    """k, or the bits of q."""

    @staticmethod
    def parse(text: str) -> Domain:
        """The domain of a text. Raises ParameterError for other texts."""
        if text.startswith("Z2^") and text[3:].isdecimal() and int(text[3:]) >= 1:
            return Ring(int(text[3:]))
        if text.startswith("F_") and text[2:].isdecimal() and int(text[2:]) > 2:
            return Field(int(text[2:]))
        raise ParameterError(f"domain {text!r}: give Z2^k, or F_q with an odd prime")

    @property
    def modulus(self) -> int:
        """Number of elements."""
        return 1 << self.bits if self.prime is None else self.prime


class Ring(Domain):
    """Integers modulo 2^``bits``."""

    prime: None

    def __new__(cls, bits: int) -> Ring:
        made = super().__new__(cls, f"Z2^{bits}")
        made.bits, made.prime = bits, None
        return made

    def __getnewargs__(self) -> tuple[int]:  # type: ignore[override]
        return (self.bits,)


class Field(Domain):
    """Integers modulo the odd ``prime``."""

    prime: int

    def __new__(cls, prime: int) -> Field:
        made = super().__new__(cls, f"F_{prime}")
        made.bits, made.prime = prime.bit_length(), prime
        return made

    def __getnewargs__(self) -> tuple[int]:  # type: ignore[override]
        return (self.prime,)


class Sharing(NamedTuple):
    """What shares are of: the protocol that made them, and their domain."""

    protocol: str
    domain: Domain
