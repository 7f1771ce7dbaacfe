"""Values to encrypt, or decoded values: the last kind that is tried."""

from __future__ import annotations

import numpy as np

from keyquorum.fhe.values import read_values
from keyquorum.model.inspected import Candidate, Kind, Report


def _is_values(candidate: Candidate) -> bool:
    suffix = candidate.path.suffix.lower()
    return not candidate.is_folder and (suffix in (".csv", ".npy") or (suffix == ".json" and candidate.head[:1] == b"["))


def _values(candidate: Candidate) -> Report:
    values = read_values(candidate.path)
    kind = {"i": "integers", "u": "integers", "f": "real numbers", "c": "complex numbers"}[values.dtype.kind]
    return Report([f"{values.size:,} {kind} to encrypt, or as decoded"], details={"count": int(np.size(values))})


KINDS = (Kind("values", _is_values, _values, ("fhe/values",)),)
