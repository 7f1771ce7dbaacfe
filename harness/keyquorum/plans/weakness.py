"""Warnings of the weaknesses of a key, a request or a rounding."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from keyquorum.fhe.errors import SecurityWarning


def warn_all(weaknesses: Iterable[str]) -> None:
    """Warns with SecurityWarning of each. Every party does, whoever wrote the job."""
    for weakness in weaknesses:
        warnings.warn(weakness, SecurityWarning, stacklevel=3)
