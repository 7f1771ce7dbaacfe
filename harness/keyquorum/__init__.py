"""Threshold FHE from generic MPC: a quorum makes keys for unmodified Microsoft SEAL, and decrypts together.

The names below are those of :mod:`keyquorum.api`, loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyquorum.api import *  # noqa: F403

__version__ = "0.1.0"

__all__ = [  # noqa: F405
    "OPERATIONS",
    "VARIANTS",
    "ApprovalError",
    "AuditError",
    "BackendError",
    "BgvNoise",
    "BurnedKeyError",
    "CiphertextError",
    "CiphertextFile",
    "Committee",
    "CommitteeError",
    "DecryptResult",
    "Decrypted",
    "EncryptedFile",
    "Engine",
    "EngineError",
    "ErrorBound",
    "FloodPolicy",
    "KeyFileError",
    "KeyInUseError",
    "KeyInfo",
    "KeyMaterial",
    "KeyQuorumError",
    "KeyRequest",
    "KeygenResult",
    "MpSpdz",
    "Needs",
    "Noise",
    "NoiseEstimate",
    "OutputError",
    "ParameterError",
    "ParameterSet",
    "Parameters",
    "Party",
    "PartyError",
    "PartyInterrupted",
    "Persistence",
    "PhaseReport",
    "PolicyError",
    "PoolCannotGrow",
    "PoolError",
    "PoolLost",
    "PoolTooSmall",
    "PoolUnwritable",
    "Precision",
    "ProgramError",
    "ProgramRequest",
    "Progress",
    "Protocol",
    "ResourceError",
    "RunReport",
    "SealDecrypted",
    "SealFormatError",
    "SealKeyInfo",
    "SealMissingError",
    "SealOperationError",
    "SealRequest",
    "SecretVector",
    "SecurityWarning",
    "UnknownParameterSetError",
    "ValuesError",
    "address",
    "approve",
    "check_receipt",
    "decode",
    "decode_values",
    "decrypt",
    "decrypt_in_process",
    "decrypt_job",
    "encrypt",
    "evaluate",
    "export_key",
    "fingerprint",
    "galois_elements",
    "in_process_committee",
    "init",
    "keygen",
    "keygen_in_process",
    "keygen_job",
    "keygen_needs",
    "load_key",
    "load_parameters",
    "load_public_file",
    "move",
    "parameter_set_names",
    "pool_drop",
    "pool_fill",
    "pool_fill_job",
    "pool_lines",
    "pool_list",
    "pool_needs",
    "run",
    "run_party",
    "share",
    "share_job",
    "trust",
    "write_job",
    "write_receipt",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("keyquorum.api"), name)
    raise AttributeError(f"module 'keyquorum' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
