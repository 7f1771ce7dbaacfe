"""The roundings that are sometimes wrong, the warning of whoever takes them, and where their masks come from."""

from __future__ import annotations

import warnings

from keyquorum.fhe.errors import SecurityWarning
from keyquorum.model.errors import ParameterError
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


def check_masks(name: str, pooled: bool) -> None:
    """Refuses to make the masks of a rounding for one decryption, where it has no programs for that. Raises ParameterError."""
    if name == MASKED_ONE and not pooled:
        raise ParameterError(
            f"{name} takes its masks from a pool: keyquorum pool fill --rounding {name}, and add --pool; or take {MASKED}, which has the same errors"
        )


__all__ = ["MASKED", "check_masks", "warn_of_rounding"]
