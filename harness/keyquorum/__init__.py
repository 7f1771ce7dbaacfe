"""Threshold FHE from generic MPC: a quorum makes keys for unmodified Microsoft SEAL, and decrypts together.

The package has the names of :mod:`keyquorum.api`. They are loaded when the first of them is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyquorum.api import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "__all__" or not name.startswith("_"):
        api = import_module("keyquorum.api")
        if name == "__all__" or name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'keyquorum' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*import_module("keyquorum.api").__all__, "__version__"]
