"""SEAL's bytes of ``EncryptionParameters`` (docs/pages/formats.md, SEAL's bytes)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ._stream import HEADER_BYTES, Source, header, nested_header, open_object
from .errors import ShapeError
from .parameters import PRIMES_MAX, SCHEME_NUMBERS, ParameterSet

_FIELDS = struct.Struct("<BQQ")
_MODULUS_BYTES = HEADER_BYTES + 8


@dataclass(frozen=True)
class Parms:
    """What SEAL's ``EncryptionParameters`` have: of CKKS, ``plain_modulus`` is 0."""

    scheme: str
    ring_degree: int
    coeff_modulus: tuple[int, ...]
    plain_modulus: int

    @staticmethod
    def of(parameters: ParameterSet) -> Parms:
        """Those of a set."""
        return Parms(parameters.scheme, parameters.ring_degree, parameters.coeff_modulus, parameters.plain_modulus)


def write_parms(parameters: ParameterSet) -> bytes:
    """SEAL's bytes of the ``EncryptionParameters`` of a set, for ``EncryptionParameters::load``."""
    primes = parameters.coeff_modulus
    fields = _FIELDS.pack(SCHEME_NUMBERS[parameters.scheme], parameters.ring_degree, len(primes))
    moduli = [header(_MODULUS_BYTES) + struct.pack("<Q", q) for q in (*primes, parameters.plain_modulus)]
    payload = b"".join([fields, *moduli])
    return header(HEADER_BYTES + len(payload)) + payload


def read_parms(data: bytes, what: str = "parameters") -> Parms:
    """SEAL's bytes of ``EncryptionParameters``. Raises SealFormatError."""
    source = open_object(data, what)
    number, degree, count = _FIELDS.unpack(source.take(_FIELDS.size))
    names = {number: name for name, number in SCHEME_NUMBERS.items()}
    if number not in names or not 1 <= count <= PRIMES_MAX:
        raise ShapeError(
            f"{what} state scheme {number} and {count} primes, SEAL has schemes 1 to 3 and at most {PRIMES_MAX} primes: fetch the file again"
        )
    *primes, plain = [_modulus(source, what) for _ in range(count + 1)]
    source.finish()
    return Parms(names[number], degree, tuple(primes), plain)


def _modulus(source: Source, what: str) -> int:
    if nested_header(source, what) != _MODULUS_BYTES:
        raise ShapeError(f"{what}: a modulus has not {_MODULUS_BYTES} bytes: fetch the file again")
    (value,) = struct.unpack("<Q", source.take(8))
    return int(value)


__all__ = ["Parms", "read_parms", "write_parms"]
