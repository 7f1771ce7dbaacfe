"""Metadata of TFHE keys, their public files, and the sharing of their secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keyquorum.fhe.lwe import TFHE_SETS, TfheParameters
from keyquorum.fhe.lwe_sets import shipped_set
from keyquorum.fhe.tfhe import KINDS, KeyFile, file_name, read_key_file
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import is_hex
from keyquorum.schemes.key_folder import load_key, load_public_file
from keyquorum.schemes.keys import Plain, SecretVector
from keyquorum.schemes.lwe.key import LweKeyInfo, domain_of

from .noise import macs_refused

FILES = tuple(file_name(kind) for kind in KINDS)
"""Names of the public files."""


@dataclass(frozen=True, kw_only=True)
class TfheKeyInfo(LweKeyInfo):
    """Metadata of a TFHE key. It has the public files :data:`FILES`."""

    parameters: TfheParameters

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """The coefficients of the ring secret z, under which ciphertexts are decrypted, and the short secret s; both binary."""
        domain = domain_of(self.parameters)
        return (SecretVector(domain, self.parameters.dimension), SecretVector(domain, self.parameters.lwe_dimension))

    @staticmethod
    def from_json(data: Plain) -> TfheKeyInfo:
        """Inverse of :meth:`to_json`; the parameter set must be the one of its name."""
        info = TfheKeyInfo(**{**data, "parameters": tfhe_from_json(data["parameters"])})
        info.check_types()
        if set(info.files) != set(FILES) or not all(is_hex(digest, 64) for digest in info.files.values()):
            raise ValueError("entries of other types")
        return info


def tfhe_parameters(name: str) -> TfheParameters:
    """A parameter set by name."""
    if name not in TFHE_SETS:
        raise ParameterError(f"unknown parameter set of TFHE {name!r}: choose one of {', '.join(TFHE_SETS)}")
    return TFHE_SETS[name]


def tfhe_from_json(data: Plain) -> TfheParameters:
    """A parameter set from plain data. Raises ParameterError for a set that is not the shipped one of its name."""
    return shipped_set(data, tfhe_parameters)


def sharing_of(committee: Committee, parameters: TfheParameters) -> Sharing:
    """Protocol and domain of the secrets' shares; refuses a committee that cannot make keys."""
    if committee.ring_protocol is None:
        raise ParameterError(
            f"{committee.protocol} shares over prime fields alone, {parameters.name} is modulo 2^64: take a committee of rep-field or semi"
        )
    if committee.authenticated:
        raise ParameterError(macs_refused(parameters, committee.protocol, committee.size))
    return Sharing(committee.ring_protocol, domain_of(parameters))


def load_tfhe_key(folder: Path) -> TfheKeyInfo:
    """The metadata of a TFHE key. Raises KeyFileError for a key of another scheme."""
    info = load_key(folder)
    if not isinstance(info, TfheKeyInfo):
        raise KeyFileError(f"{folder}: a key of {info.parameters.scheme.upper()}, not of TFHE: name a key that keyquorum keygen -p tfhers-2-2 made")
    return info


def load_key_file(folder: Path, info: TfheKeyInfo, kind: str) -> KeyFile:
    """A public file of a TFHE key, checked against its metadata. Raises KeyFileError."""
    path = folder / file_name(kind)
    found = read_key_file(load_public_file(folder, info, path.name), str(path))
    if (found.kind, found.key_id, found.parameters) != (kind, info.key_id, info.parameters):
        raise KeyFileError(f"{path} is of another key: copy that of this key from another party")
    return found


__all__ = ["FILES", "TfheKeyInfo", "load_key_file", "load_tfhe_key", "sharing_of", "tfhe_from_json", "tfhe_parameters"]
