"""Metadata of keys: an LWE secret and a key of AES-128, which exist as shares only, and the encrypted bits of the round keys, which are public."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keyquorum.fhe.lwe_sets import shipped_set
from keyquorum.model.domains import Ring
from keyquorum.model.errors import KeyFileError
from keyquorum.model.plain import is_hex
from keyquorum.schemes.key_folder import load_public_file
from keyquorum.schemes.keys import KeyInfo, Plain, SecretVector

from .encryption import EncryptedBits, read_encrypted_bits
from .parameters import GateParameters, gate_parameters
from .public import GatePublicKey, samples_of

PUBLIC_FILE = "round-keys.lwebits"
PUBLIC_KEY = "public.lwebits"
"""Names of the public files."""
ROUND_KEY_BITS = 1408
BITS = Ring(1)
"""The domain of shares of bits."""


@dataclass(frozen=True, kw_only=True)
class GateKeyInfo(KeyInfo):
    """Metadata of a key of AES on LWE ciphertexts."""

    parameters: GateParameters

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """The LWE secret s, then the bits of the round keys of AES: 128 r + 8 i + j is bit j of byte i of round key r."""
        return (SecretVector(self.parameters.domain, self.parameters.dimension), SecretVector(BITS, ROUND_KEY_BITS))

    @staticmethod
    def from_json(data: Plain) -> GateKeyInfo:
        """Inverse of :meth:`to_json`; the parameter set must be the one of its name."""
        info = GateKeyInfo(**{**data, "parameters": shipped_set(data["parameters"], gate_parameters)})
        info.check_types()
        if set(info.files) not in ({PUBLIC_FILE}, {PUBLIC_FILE, PUBLIC_KEY}) or not all(is_hex(digest, 64) for digest in info.files.values()):
            raise ValueError("entries of other types")
        return info


def load_round_keys(folder: Path, info: GateKeyInfo) -> EncryptedBits:
    """The encrypted bits of the round keys, checked against the metadata. Raises KeyFileError."""
    return round_keys_of(load_public_file(folder, info, PUBLIC_FILE), info, str(folder / PUBLIC_FILE))


def load_public_key(folder: Path, info: GateKeyInfo) -> GatePublicKey:
    """The public key, checked against the metadata. Raises KeyFileError, also for a key that was made before there were any."""
    return public_key_of(load_public_file(folder, info, PUBLIC_KEY), info, str(folder / PUBLIC_KEY))


def public_key_of(data: bytes, info: GateKeyInfo, where: str) -> GatePublicKey:
    """The same from the bytes of the file."""
    return GatePublicKey(_of_key(data, info, samples_of(info.parameters), where))


def round_keys_of(data: bytes, info: GateKeyInfo, where: str) -> EncryptedBits:
    """The same from the bytes of the file."""
    return _of_key(data, info, ROUND_KEY_BITS, where)


def _of_key(data: bytes, info: GateKeyInfo, count: int, where: str) -> EncryptedBits:
    bits, key_id = read_encrypted_bits(data, count, where)
    if key_id != info.key_id or bits.parameters != info.parameters:
        raise KeyFileError(f"{where} is of another key: copy that of this key from another party")
    return bits


__all__ = [
    "BITS", "PUBLIC_FILE", "PUBLIC_KEY", "ROUND_KEY_BITS", "GateKeyInfo", "load_public_key", "load_round_keys", "public_key_of", "round_keys_of",
]  # fmt: skip
