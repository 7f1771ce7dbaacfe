"""The metadata of a key on the disk, which the package does not know."""

from __future__ import annotations

from pathlib import Path

from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import json_loads
from keyquorum.schemes.key_folder import METADATA

from .key import GateKeyInfo
from .parameters import GateParameters

MADE_BY = "name a key that python -m bench.baselines.toprf_lwe keygen made"


def load_gate_key(folder: Path) -> GateKeyInfo:
    """The metadata of a key of AES on LWE ciphertexts. Raises KeyFileError for a key of another scheme."""
    path = folder / METADATA
    if not path.exists():
        raise KeyFileError(f"{folder}: no key here (no {METADATA}): {MADE_BY}")
    try:
        data = json_loads(path.read_text())
        if data["parameters"]["scheme"] != GateParameters.scheme:
            raise KeyFileError(f"{folder}: a key of {str(data['parameters']['scheme']).upper()}: {MADE_BY}")
        return GateKeyInfo.from_json(data)
    except (ValueError, KeyError, TypeError, AttributeError, ParameterError) as error:
        raise KeyFileError(f"{path}: not the metadata of a key ({error}): restore it from a backup") from None


__all__ = ["load_gate_key"]
