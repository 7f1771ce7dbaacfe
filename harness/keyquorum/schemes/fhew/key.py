"""Metadata of FHEW keys, their public files, and the sharing of their secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keyquorum.fhe.fhew import KINDS, FhewKeyFile, file_name, read_key_file
from keyquorum.fhe.lwe import FHEW_SETS, FhewParameters
from keyquorum.fhe.lwe_sets import shipped_set
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import is_hex
from keyquorum.schemes.key_folder import load_key, load_public_file
from keyquorum.schemes.keys import Plain, SecretVector
from keyquorum.schemes.lwe.key import LweKeyInfo, domain_of
from keyquorum.schemes.lwe.key import sharing_of as lwe_sharing

from .noise import NOISES, NoisePlan

FILES = tuple(file_name(kind) for kind in KINDS)
"""Names of the public files."""


@dataclass(frozen=True, kw_only=True)
class FhewKeyInfo(LweKeyInfo):
    """Metadata of a FHEW key. It has the public files :data:`FILES`. ``noise``: how its noise was made, one of :data:`.NOISES`; empty where the key is
    known by a ciphertext alone."""

    parameters: FhewParameters
    noise: str = ""

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """The coefficients of the ring secret z, under which ciphertexts are decrypted, of the values -1, 0 and 1, and the binary short secret s."""
        domain = domain_of(self.parameters)
        return (SecretVector(domain, self.parameters.dimension), SecretVector(domain, self.parameters.lwe_dimension))

    @property
    def noise_plan(self) -> NoisePlan:
        """How its noise was made."""
        return NoisePlan(self.parameters, self.noise, self.parties, self.threshold)

    @staticmethod
    def from_json(data: Plain) -> FhewKeyInfo:
        """Inverse of :meth:`to_json`; the parameter set must be the one of its name."""
        info = FhewKeyInfo(**{**data, "parameters": fhew_from_json(data["parameters"])})
        info.check_types([info.noise])
        if info.noise not in NOISES or set(info.files) != set(FILES) or not all(is_hex(digest, 64) for digest in info.files.values()):
            raise ValueError("entries of other types")
        return info


def fhew_parameters(name: str) -> FhewParameters:
    """A parameter set by name."""
    if name not in FHEW_SETS:
        raise ParameterError(f"unknown parameter set of FHEW {name!r}: choose one of {', '.join(FHEW_SETS)}")
    return FHEW_SETS[name]


def fhew_from_json(data: Plain) -> FhewParameters:
    """A parameter set from plain data. Raises ParameterError for a set that is not the shipped one of its name."""
    return shipped_set(data, fhew_parameters)


def sharing_of(committee: Committee, parameters: FhewParameters) -> Sharing:
    """Protocol and domain of the secrets' shares; refuses a committee that cannot make keys."""
    if committee.authenticated:
        raise ParameterError(
            f"{committee.protocol}: phases modulo the prime of {parameters.name} are scaled share by share, which MACs do not follow: "
            "take a committee of shamir or rep-field"
        )
    if committee.capabilities.dishonest_majority:
        raise ParameterError(
            f"{committee.protocol}: all parties but one may be corrupted, so contributed noise would grow {committee.size} times, and the "
            f"{parameters.lwe_dimension * parameters.dimension:,} products of secrets would take oblivious transfer: "
            "take a committee of shamir or rep-field"
        )
    return lwe_sharing(committee, parameters)


def load_fhew_key(folder: Path) -> FhewKeyInfo:
    """The metadata of a FHEW key. Raises KeyFileError for a key of another scheme."""
    info = load_key(folder)
    if not isinstance(info, FhewKeyInfo):
        raise KeyFileError(f"{folder}: a key of {info.parameters.scheme.upper()}, not of FHEW: name a key that keyquorum keygen -p ajax53 made")
    return info


def load_key_file(folder: Path, info: FhewKeyInfo, kind: str) -> FhewKeyFile:
    """A public file of a FHEW key, checked against its metadata. Raises KeyFileError."""
    path = folder / file_name(kind)
    found = read_key_file(load_public_file(folder, info, path.name), str(path))
    if (found.kind, found.key_id, found.parameters) != (kind, info.key_id, info.parameters):
        raise KeyFileError(f"{path} is of another key: copy that of this key from another party")
    return found


__all__ = ["FILES", "FhewKeyInfo", "fhew_from_json", "fhew_parameters", "load_fhew_key", "load_key_file", "sharing_of"]
