"""Parameter sets and metadata of keys of pseudorandom functions, and the sharing of their secrets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain, Field, Ring, Sharing
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.protocols import COMMITTEES, PROTOCOLS
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.keys import KeyInfo, Plain, SecretVector

ROUND_KEY_BITS = 1408
"""Bits of the 11 round keys of AES-128: what `aes_keys` appends for a key."""


@dataclass(frozen=True)
class PrfParameters:
    """A pseudorandom function. ``key_bits``: of its key; ``block_bits``: of a point, and of a block of its values."""

    name: str
    key_bits: int
    block_bits: int
    scheme: str = "prf"


@dataclass(frozen=True)
class LegendreParameters(PrfParameters):
    """The Legendre PRF modulo a prime, with secret monic polynomials of a degree, one for each bit of the longest output."""

    prime: int = 0
    degree: int = 0
    polynomials: int = 0

    @property
    def domain(self) -> Domain:
        """The field of points and keys."""
        return Field(self.prime)


AES = PrfParameters("prf-aes128", 128, 128)
LEGENDRE = LegendreParameters("prf-legendre127", 256 * 2 * 127, 128, prime=(1 << 127) - 1, degree=2, polynomials=256)
"""The prime 2^127 - 1 is the largest Mersenne prime of at most 128 bits: a product is reduced by one addition of halves."""
PRF_SETS: dict[str, PrfParameters] = {AES.name: AES, LEGENDRE.name: LEGENDRE}


def prf_parameters(name: str) -> PrfParameters:
    """A parameter set by name."""
    if name not in PRF_SETS:
        raise ParameterError(f"unknown pseudorandom function {name!r}: choose one of {', '.join(PRF_SETS)}")
    return PRF_SETS[name]


def parameters_from_json(data: Plain) -> PrfParameters:
    """A parameter set from plain data. Raises ParameterError for a set that is not the shipped one of its name."""
    chosen = prf_parameters(data["name"])
    if asdict(chosen) != data:
        raise ParameterError(f"the parameter set {chosen.name} is not that of this version: make a new key, or use the version that made this one")
    return chosen


def domain_of(protocol: str) -> Domain:
    """The domain of the bits' shares in a committee of this protocol: bits of additive shares are additive modulo 2. Shares with MACs do not split,
    and their bits lie in a ring."""
    return Ring(64) if COMMITTEES[protocol].macs else Ring(1)


def sharing_of(committee: Committee, parameters: PrfParameters = AES) -> Sharing:
    """Protocol and domain of the shares of a key. Refuses a committee that has no shares of bits or, for the Legendre PRF, none modulo long primes."""
    if isinstance(parameters, LegendreParameters):
        if not PROTOCOLS[committee.field_protocol].wide_fields:
            takes = ", ".join(p.name for p in COMMITTEES.values() if PROTOCOLS[p.field_protocol].wide_fields)
            raise ParameterError(
                f"{committee.protocol} has no shares modulo primes of 127 bits, which {parameters.name} needs: take a committee of {takes}"
            )
        return Sharing(committee.field_protocol, parameters.domain)
    if committee.ring_protocol is None:
        raise ParameterError(
            f"{committee.protocol} shares over prime fields alone, and AES computes on shares of bits: take a committee of rep-field or semi"
        )
    return Sharing(committee.ring_protocol, domain_of(committee.protocol))


@dataclass(frozen=True, kw_only=True)
class PrfKeyInfo(KeyInfo):
    """Metadata of a key of the pseudorandom function. It has no public files."""

    parameters: PrfParameters

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """AES: the bits of the round keys, 128 r + 8 i + j is bit j of byte i of round key r. Legendre: the constant terms of all polynomials, then their
        linear coefficients."""
        if isinstance(self.parameters, LegendreParameters):
            return (SecretVector(self.parameters.domain, self.parameters.polynomials * self.parameters.degree),)
        return (SecretVector(domain_of(self.protocol), ROUND_KEY_BITS),)

    @staticmethod
    def from_json(data: Plain) -> PrfKeyInfo:
        """Inverse of :meth:`to_json`; the parameter set must be the one of its name."""
        info = PrfKeyInfo(**{**data, "parameters": parameters_from_json(data["parameters"])})
        info.check_types()
        if info.files or info.protocol not in COMMITTEES:
            raise ValueError("entries of other types")
        return info


def load_prf_key(folder: Path) -> PrfKeyInfo:
    """The metadata of a key of the pseudorandom function. Raises KeyFileError for a key of another scheme."""
    info = load_key(folder)
    if not isinstance(info, PrfKeyInfo):
        raise KeyFileError(f"{folder}: a key of {info.parameters.scheme.upper()}, not of a PRF: name a key that keyquorum toprf keygen made")
    return info


__all__ = [
    "AES",
    "LEGENDRE",
    "PRF_SETS",
    "LegendreParameters",
    "PrfKeyInfo",
    "PrfParameters",
    "domain_of",
    "load_prf_key",
    "parameters_from_json",
    "prf_parameters",
    "sharing_of",
]
