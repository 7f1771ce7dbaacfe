"""Metadata of GHS keys, and their public files."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from keyquorum.fhe.ghs import GhsKeyFile, GhsParameters, file_name, parameters_from_json, read_key_file
from keyquorum.model.domains import Field
from keyquorum.model.errors import KeyFileError
from keyquorum.model.plain import is_hex
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.keys import KeyInfo, Plain, SecretVector

NOISES = ("gaussian", "cbd")
"""How noise is distributed: a discrete Gaussian of deviation 3.2, as in the paper, or centred binomial of variance 10.5."""


@dataclass(frozen=True, kw_only=True)
class GhsKeyInfo(KeyInfo):
    """Metadata of a GHS key. ``noise``: its distribution, one of :data:`NOISES`; empty where the key is known by a file alone."""

    parameters: GhsParameters
    noise: str = ""

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """The coefficients of s_0, and of s_r if there is one, modulo the first prime, under which ciphertexts are decrypted."""
        return (SecretVector(Field(self.parameters.primes[0]), self.parameters.degree),) * self.parameters.secrets

    def to_json(self) -> Plain:
        return {**super().to_json(), "parameters": parameters_to_json(self.parameters)}

    @staticmethod
    def from_json(data: Plain) -> GhsKeyInfo:
        """Inverse of :meth:`to_json`."""
        info = GhsKeyInfo(**{**data, "parameters": parameters_from_json(data["parameters"])})
        info.check_types([info.noise])
        files = {file_name(kind) for kind in info.parameters.kinds}
        if info.noise not in NOISES or set(info.files) != files or not all(is_hex(digest, 64) for digest in info.files.values()):
            raise ValueError("entries of other types")
        return info


def parameters_to_json(parameters: GhsParameters) -> Plain:
    """Plain data, with lists."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(parameters).items()}


def check_file(folder: Path, info: GhsKeyInfo, kind: str) -> GhsKeyFile:
    """Reads a public file of a key. Raises KeyFileError for a damaged one, or one of another key."""
    path = folder / file_name(kind)
    found = read_key_file(path)
    if (found.kind, found.key_id, found.parameters) != (kind, info.key_id, replace(info.parameters, source="")):
        raise KeyFileError(f"{path} is of another key: copy that of this key from another party")
    return found


def load_ghs_key(folder: Path) -> GhsKeyInfo:
    """The metadata of a key. Raises KeyFileError for a key of another scheme."""
    info = load_key(folder)
    if not isinstance(info, GhsKeyInfo):
        raise KeyFileError(f"{folder}: a key of {info.parameters.scheme.upper()}, not of GHS: name a key that keyquorum keygen -p ghs-53261 made")
    return info


__all__ = ["NOISES", "GhsKeyInfo", "check_file", "load_ghs_key", "parameters_to_json"]
