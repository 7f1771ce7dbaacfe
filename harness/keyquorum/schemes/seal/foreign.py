"""Files of SEAL under parameters that are neither shipped nor of a key beside them: what `keyquorum inspect` says without the parameters."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from keyquorum.fhe._stream import HEADER_BYTES, open_object
from keyquorum.fhe.errors import SealFormatError
from keyquorum.fhe.parameters import ParameterSet, list_parameter_sets
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.errors import KeyFileError, KeyQuorumError
from keyquorum.model.inspected import STRUCTURE, Candidate, Kind, Report

from .key import load_seal_key

_METADATA = struct.Struct("<32sBQQQdQ")
NEAR = ("*.toml", "keys/*/key.json", "party-*/keys/*/key.json", "*/keys/*/key.json", "*/party-*/keys/*/key.json")
"""Where sets of a user are looked for, below the folder of a file: own TOML files, and keys of a committee folder there."""
MOST_NEAR = 64
START = 48
"""Bytes at the start of an object in which its identifier of parameters lies, behind a header or not."""


def sets_near(folder: Path) -> Iterator[ParameterSet]:
    """Sets of SEAL in TOML files and keys near a file; files that are none are passed over."""
    for pattern in NEAR:
        for path in islice(sorted(folder.glob(pattern)), MOST_NEAR):
            with suppress(KeyQuorumError, OSError, ValueError, KeyError, TypeError):
                yield load_parameters(path, warn=False) if path.suffix == ".toml" else load_seal_key(path.parent).parameters


def _refuse_damaged(path: Path, start: bytes, known: Sequence[ParameterSet]) -> None:
    """Refuses an object that is of a set that we have, or should be, and could not be read under it: it is damaged. Raises KeyFileError."""
    ours = [parameters.parms_id(count) for parameters in known for count in range(1, len(parameters.coeff_modulus) + 1)]
    if (path.parent / "key.json").exists() or Path(f"{path}.json").is_file() or any(each in start for each in ours):
        raise KeyFileError(f"{path}: a damaged file of SEAL: copy it from another party, or make it again")


def _foreign(candidate: Candidate) -> Report:
    """A ciphertext by its metadata; of other objects the header alone is known. Raises SealFormatError for a damaged header, and KeyFileError for a damaged
    object of a set that is known."""
    start = bytes(open_object(candidate.data, str(candidate.path)).take(min(START, len(candidate.data) - HEADER_BYTES)))
    shipped = [load_parameters(name, warn=False) for name in list_parameter_sets()]
    _refuse_damaged(candidate.path, start, [*shipped, *sets_near(candidate.path.parent)])
    source = open_object(candidate.data, str(candidate.path))
    unknown = "under parameters that no shipped set, no key and no TOML file near it has: the numbers in it were not checked"
    with suppress(SealFormatError):
        _, is_ntt, size, degree, primes, scale, _ = _METADATA.unpack(source.take(_METADATA.size))
        if is_ntt <= 1 and 2 <= size <= 16 and degree.bit_count() == 1 and 1024 <= degree <= 1 << 17 and 1 <= primes <= 64:
            form = "NTT" if is_ntt else "coefficient"
            lines = [f"SEAL ciphertext of {size} parts, N = {degree}, {primes} primes, {form} form, scale {scale:g}", unknown]
            return Report(lines, STRUCTURE, {"seal": "ciphertext", "ring_degree": degree, "primes": primes, "parts": size})
    return Report(["SEAL key, plaintext or parameters", unknown], STRUCTURE, {"seal": "other"})


FOREIGN = Kind("SEAL object of other parameters", lambda c: c.head[:2] == b"\x5e\xa1", _foreign, ())
