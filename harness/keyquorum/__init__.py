"""Threshold FHE from generic MPC: a quorum makes keys for unmodified Microsoft SEAL, and decrypts together.

The names below are those of :mod:`keyquorum.api`, loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyquorum.api import (
        Committee,
        FloodPolicy,
        KeyInfo,
        ParameterSet,
        decrypt,
        decrypt_in_process,
        galois_elements,
        in_process_committee,
        init,
        keygen,
        keygen_in_process,
        load_parameters,
        run,
        trust,
    )

__version__ = "0.1.0"

__all__ = [
    "Committee",
    "FloodPolicy",
    "KeyInfo",
    "ParameterSet",
    "decrypt",
    "decrypt_in_process",
    "galois_elements",
    "in_process_committee",
    "init",
    "keygen",
    "keygen_in_process",
    "load_parameters",
    "run",
    "trust",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("keyquorum.api"), name)
    raise AttributeError(f"module 'keyquorum' has no attribute {name!r}")
