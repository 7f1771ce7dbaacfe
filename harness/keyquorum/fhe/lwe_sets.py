"""Parameter sets of LWE ciphertexts: of plain LWE, and, from files of ``params/``, of TFHE and of FHEW-like schemes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple, TypeVar

from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json, read_text, toml_loads

P = TypeVar("P", bound="LweParameters")


@dataclass(frozen=True)
class LweParameters:
    """A parameter set. ``prime``: q, or 0 for q = 2^64. ``deviation``: standard deviation of fresh noise. ``noise_bits``: log2
    of the bound on |e| that round_flood relies on; the exact roundings allow any |e| up to D/2."""

    name: str
    dimension: int
    prime: int
    plain_bits: int
    padding_bits: int
    deviation: float
    noise_bits: int
    source: str
    scheme: str = "lwe"

    @property
    def modulus(self) -> int:
        """q: a prime, or 2^64."""
        return self.prime or 1 << 64

    @property
    def block_bits(self) -> int:
        """Bits of a value that one ciphertext has."""
        return self.plain_bits

    @property
    def message_bits(self) -> int:
        """j: bits of the message with its padding."""
        return self.plain_bits + self.padding_bits

    @property
    def delta(self) -> int:
        """Distance of two messages, rounded down."""
        return self.modulus >> self.message_bits

    @property
    def ring_bits(self) -> int:
        """k = l + j: 64 for q = 2^64. For a prime the phase is scaled to a ring in which the roundings of up to 16 summands are less
        than 1/32 of a unit of q together."""
        return 64 if not self.prime else min(62, self.prime.bit_length() + 9)

    @property
    def noise_length(self) -> int:
        """l: the low bits of a phase that a rounding removes."""
        return self.ring_bits - self.message_bits

    @property
    def margin(self) -> int:
        """Units of q by which the largest |e| of an exact rounding is below D/2: a phase modulo a prime is scaled, and up to 16 summands are rounded."""
        return 2 + math.ceil(8 * 2.0 ** (self.prime.bit_length() - self.ring_bits)) if self.prime else 0


@dataclass(frozen=True, kw_only=True)
class SmallRingParameters(LweParameters):
    """A set modulo a prime whose phases are scaled to a smaller ring, 2^``ring``, which may be below q: fewer bits are opened. A rounding to that ring moves
    the phase by up to half a unit of it for each summand, of 2^(ring - message_bits) between two messages."""

    ring: int

    @property
    def ring_bits(self) -> int:
        """k, as given."""
        return self.ring


_SETS: tuple[LweParameters, ...] = (
    LweParameters(
        "lwe64-p2", 1024, 0, 1, 0, 2.0**39, 45,
        "n, q, p: High Throughput Universally Composable Threshold FHE Decryption; noise: TFHE library 1.1, 2^-25",
    ),
    LweParameters(
        "lwe64-p16", 2048, 0, 4, 1, 2.94e-16 * 2.0**64, 17,
        "2 message and 2 carry bits under a padding bit; noise: TFHE-rs, message 2 carry 2, GLWE of degree 2048",
    ),
    LweParameters(
        "lwe64-p32", 2048, 0, 5, 1, 2.94e-16 * 2.0**64, 17,
        "2 message, 2 carry and 1 further bit under a padding bit; noise: TFHE-rs, message 2 carry 2, GLWE of degree 2048",
    ),
    LweParameters(
        "lwe64-p256", 2048, 0, 8, 0, 2.94e-16 * 2.0**64, 17,
        "k, l, d, b: the typical choice of High Throughput Universally Composable Threshold FHE Decryption, with messages of 8 bits; noise: as lwe64-p16",
    ),
    LweParameters(
        "lwe53-p16", 2048, 9007199254614017, 4, 0, 3.6, 6,
        "Ajax (ePrint 2025/1834), appendix B, table 2: q, l, p, and the variance 12.96",
    ),
    SmallRingParameters(
        "lwe53-p16-eta52", 2048, 9007199254614017, 4, 0, 3.6, 6,
        "Ajax (ePrint 2025/1834), appendix B, table 2, with its decryption ring: eta = 2^52 for 100 bits online", ring=52,
    ),
)  # fmt: skip
LWE_SETS = {p.name: p for p in _SETS}
"""Parameter sets of plain LWE keys by name."""


@dataclass(frozen=True, kw_only=True)
class SeededParameters(LweParameters):
    """A parameter set of a library with keys for evaluation: LWE ciphertexts under the ``dimension`` coefficients of a ring secret z.
    ``lwe_dimension``: of the short secret s."""

    lwe_dimension: int


@dataclass(frozen=True, kw_only=True)
class TfheParameters(SeededParameters):
    """A parameter set of TFHE: LWE ciphertexts modulo 2^64 under the N = ``dimension`` coefficients of a ring secret z, and public keys to evaluate them.

    ``lwe_dimension``: n, dimension of the short secret s. ``pbs_base_log``, ``pbs_level``: gadget of the bootstrapping key, levels of 2^pbs_base_log;
    ``ks_base_log``, ``ks_level``: of the key-switching key. ``carry_bits``: those of the plain bits that are carries. ``lwe_noise``, ``glwe_noise``: b of
    the distribution TUniform(b) of the noise under s, and under z. Both secrets are binary, and z is one polynomial.
    """

    pbs_base_log: int
    pbs_level: int
    ks_base_log: int
    ks_level: int
    carry_bits: int
    lwe_noise: int
    glwe_noise: int
    scheme: str = "tfhe"

    @property
    def block_bits(self) -> int:
        """Without the carries."""
        return self.plain_bits - self.carry_bits


def tuniform_deviation(b: int) -> float:
    """Standard deviation of the distribution TUniform(b)."""
    return math.sqrt((2.0 ** (2 * b + 1) + 1) / 6)


@dataclass(frozen=True, kw_only=True)
class FhewParameters(SeededParameters):
    """A parameter set of FHEW-like schemes modulo a prime q that is 1 modulo 2N: LWE ciphertexts under the N = ``dimension`` coefficients of a ring secret
    z, and public keys to encrypt and to evaluate them (Ajax, ePrint 2025/1834).

    ``lwe_dimension``: n, dimension of the short secret s, which is binary; the coefficients of z are differences of two bits. ``base_log``, ``levels``:
    gadget of the bootstrapping key, ``levels`` digits of ``base_log`` bits; ``switch_base_log``, ``switch_levels``: of the key-switching key. The weights
    are 2^(drop + base_log j), where drop is the number of bits of q that the digits leave. ``samples``: LWE samples of the public key. ``variance``: of
    the noise of public key and bootstrapping key; ``switch_deviation``: standard deviation of the noise of the key-switching key.
    """

    base_log: int
    levels: int
    switch_base_log: int
    switch_levels: int
    samples: int
    variance: float
    switch_deviation: float
    scheme: str = "fhew"


class Security(NamedTuple):
    """log2 of the operations of the primal attack (``Scripts/lwe_security.py``) on the short secret s, and on the ring secret z."""

    short: int
    ring: int


def read_set(data: Json, deviation: Callable[[Json], float], made: Callable[..., P]) -> tuple[P, Security]:
    """A set and its estimated security from the fields of a file of ``params/``; ``deviation``: that of fresh noise, which files do not have; ``made``: the
    class of the set. Raises ParameterError for a file without these fields, or with others."""
    fields = dict(data)
    try:
        security = Security(**fields.pop("security"))
        return made(**fields, deviation=deviation(fields)), security
    except (KeyError, TypeError) as error:
        raise ParameterError(f"params/{data.get('name')}.toml has other fields than a set: restore the file of this version ({error})") from None


def _shipped(name: str) -> Json:
    """The fields of the file of a set in ``params/``."""
    return toml_loads((resources.files(__package__) / "params" / f"{name}.toml").read_text(encoding="utf-8"))


_tfhers, _tfhers_security = read_set(_shipped("tfhers-2-2"), lambda p: tuniform_deviation(p["glwe_noise"]), TfheParameters)
_ajax, _ajax_security = read_set(_shipped("ajax53"), lambda p: math.sqrt(p["variance"] * p["samples"] / 2), FhewParameters)

TFHE_SETS = {_tfhers.name: _tfhers}
"""Parameter sets of TFHE by name. No name is also one of LWE_SETS."""
FHEW_SETS = {_ajax.name: _ajax}
"""Parameter sets of FHEW-like schemes by name. No name is also one of LWE_SETS or TFHE_SETS."""
SECURITY: Mapping[str, Security] = {_tfhers.name: _tfhers_security, _ajax.name: _ajax_security}
"""Estimated security of the sets of TFHE and of FHEW-like schemes."""


def security_of(parameters: LweParameters) -> dict[str, dict[str, int]]:
    """The estimate for a set as plain data, under the name ``security``; empty where there is none."""
    found = SECURITY.get(parameters.name)
    return {} if found is None else {"security": found._asdict()}


def lwe_parameters(name: str) -> LweParameters:
    """A parameter set by name."""
    if name not in LWE_SETS:
        raise ParameterError(f"unknown LWE parameter set {name!r}: choose one of {', '.join(LWE_SETS)}")
    return LWE_SETS[name]


def shipped_set(data: Json, by_name: Callable[[str], P]) -> P:
    """A parameter set from plain data; ``by_name``: the shipped one of a name. Raises ParameterError for another one; the text ``source`` may be another."""
    name = data.get("name")
    if not isinstance(name, str):
        raise ParameterError("not a parameter set, it has no name: write the job or key file again")
    known = by_name(name)
    numbers = asdict(known)
    if {**data, "source": ""} != {**numbers, "source": ""} or not isinstance(data.get("source"), str):
        raise ParameterError(f"the parameter set {known.name} is not that of this version: write the job or key file again")
    return known


def set_of_file(path: Path, by_name: Callable[[str], P]) -> P:
    """The shipped set that a file of ``params/`` describes; ``by_name``: the shipped one of a name. Raises ParameterError for any other file."""
    try:
        data = toml_loads(read_text(path))
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path} is no file of a parameter set: {error}") from None
    known = by_name(str(data.get("name")))
    if data != _shipped(known.name):
        raise ParameterError(
            f"{path} is not the set {known.name} of this version: there are shipped sets of {known.scheme} alone, take one by its name"
        )
    return known


_IN_FILES: list[Mapping[str, LweParameters]] = [LWE_SETS, TFHE_SETS, FHEW_SETS]


def register_sets(sets: Mapping[str, LweParameters]) -> None:
    """Makes files of LWE ciphertexts of further sets readable; a scheme that has such ciphertexts calls this for its sets, whose names are new."""
    _IN_FILES.append(sets)


def ciphertext_parameters(name: str) -> LweParameters:
    """The set of a file of LWE ciphertexts by name, of any scheme."""
    return next((sets[name] for sets in _IN_FILES if name in sets), None) or lwe_parameters(name)


__all__ = [
    "FHEW_SETS",
    "LWE_SETS",
    "SECURITY",
    "TFHE_SETS",
    "FhewParameters",
    "LweParameters",
    "Security",
    "SeededParameters",
    "TfheParameters",
    "ciphertext_parameters",
    "lwe_parameters",
    "read_set",
    "register_sets",
    "security_of",
    "set_of_file",
    "shipped_set",
    "tuniform_deviation",
]
