"""Metadata of LWE keys, their public keys on disk, and the sharing of their secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keyquorum.fhe.lwe import LWE_SETS, LweParameters, lwe_parameters
from keyquorum.fhe.lwe_public import PUBLIC_FILE, LwePublicKey, read_lwe_public_key
from keyquorum.fhe.lwe_sets import shipped_set
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain, Field, Ring, Sharing
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import is_hex
from keyquorum.schemes.key_folder import load_key, load_public_file
from keyquorum.schemes.keys import KeyInfo, Plain, SecretVector
from keyquorum.sharing.numbers import kind_of


@dataclass(frozen=True, kw_only=True)
class LweKeyInfo(KeyInfo):
    """Metadata of an LWE key. No public file: the key is of before public keys."""

    parameters: LweParameters

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """The secret, of binary entries."""
        return (SecretVector(domain_of(self.parameters), self.parameters.dimension),)

    @staticmethod
    def from_json(data: Plain) -> LweKeyInfo:
        """Inverse of :meth:`to_json`; the parameter set must be the one of its name."""
        info = LweKeyInfo(**{**data, "parameters": shipped_set(data["parameters"], lwe_parameters)})
        info.check_types()
        if not all(is_hex(digest, 64) for digest in info.files.values()):
            raise ValueError("entries of other types")
        return info


def domain_of(parameters: LweParameters) -> Domain:
    """The domain of the secret's shares."""
    return Field(parameters.prime) if parameters.prime else Ring(64)


def _sets(prime: bool) -> str:
    """Names of the parameter sets modulo a prime, or modulo 2^64."""
    return ", ".join(name for name, p in LWE_SETS.items() if bool(p.prime) == prime)


def sharing_of(committee: Committee, parameters: LweParameters) -> Sharing:
    """Protocol and domain of the secret's shares; refuses a committee that cannot share modulo q."""
    if parameters.prime:
        if not kind_of(committee).plain_shares:
            raise ParameterError(
                f"{committee.protocol}: phases modulo a prime are scaled share by share, which MACs do not follow: take one of {_sets(False)}"
            )
        return Sharing(committee.field_protocol, domain_of(parameters))
    if committee.ring_protocol is None:
        raise ParameterError(
            f"{committee.protocol} shares over prime fields alone, {parameters.name} is modulo 2^64: take {_sets(True)}, or another committee"
        )
    return Sharing(committee.ring_protocol, domain_of(parameters))


def load_lwe_key(folder: Path) -> LweKeyInfo:
    """The metadata of an LWE key. Raises KeyFileError for a key of another scheme."""
    info = load_key(folder)
    if not isinstance(info, LweKeyInfo):
        raise KeyFileError(f"{folder}: a key of {info.parameters.scheme.upper()}, not of LWE: name a key that keyquorum keygen -p lwe64-p2 made")
    return info


def load_lwe_public_key(folder: Path, info: LweKeyInfo) -> LwePublicKey:
    """The public key of an LWE key, checked against its metadata. Raises :class:`KeyFileError`, which says what to do where there is none."""
    if PUBLIC_FILE not in info.files:
        raise KeyFileError(
            f"{folder}: this LWE key has no public key, as it was made before there were any: make a new one with keyquorum keygen -p "
            f"{info.parameters.name}"
        )
    key = read_lwe_public_key(load_public_file(folder, info, PUBLIC_FILE), str(folder / PUBLIC_FILE))
    if key.key_id != info.key_id or key.parameters.name != info.parameters.name:
        raise KeyFileError(f"{folder / PUBLIC_FILE} is of another key: copy that of this key from another party")
    return key
