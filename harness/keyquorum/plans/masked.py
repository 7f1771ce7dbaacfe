"""The rounding that is sometimes wrong, and the warning of whoever takes it."""

from __future__ import annotations

import warnings

from keyquorum.fhe.errors import SecurityWarning
from keyquorum.schemes import encryption_of
from keyquorum.schemes.base import MASKED, MASKED_ONE
from keyquorum.schemes.keys import Parameters


def warn_of_rounding(name: str, parameters: Parameters) -> None:
    """Warns with SecurityWarning where a rounding is chosen whose errors leak the secret."""
    limit = encryption_of(parameters).texts.masked_limit(parameters) if name in (MASKED, MASKED_ONE) else ""
    if not limit:
        return
    warnings.warn(
        f"{name} is sometimes wrong, and its errors tell a receiver of the noise, and so of the secret key: {limit}; round_ltz_circuit, the "
        "default, is never wrong and tells nothing",
        SecurityWarning,
        stacklevel=3,
    )


__all__ = ["MASKED", "warn_of_rounding"]
