"""Files of values to encrypt and of results: JSON, CSV and npy."""

from __future__ import annotations

import csv
import json
import math
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.outputs import save_file
from keyquorum.model.plain import json_loads

from .errors import ValuesError
from .parameters import ParameterSet

FORMATS = (".json", ".csv", ".npy")
Numbers = NDArray[Any]


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValuesError(f"{path}: values are read and written as {', '.join(FORMATS)}: choose one of these endings")
    return suffix


def _number(text: str) -> float | int | complex:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return complex(text.replace(" ", ""))


def _read_npy(path: Path) -> Numbers:
    """The array of a .npy file, mapped before it is copied: so a header cannot make us allocate more memory than the file has bytes."""
    try:
        return np.array(np.lib.format.open_memmap(path, mode="r"))
    except (OSError, ValueError):
        raise
    except Exception as error:  # numpy parses the header with Python's tokenizer and parser, whose errors are of many types
        raise ValueError(f"a damaged header ({type(error).__name__})") from None


def as_numbers(values: object) -> Numbers:
    """The array of a caller's values, of any shape and type. Raises ValuesError for lists of unequal lengths in a list."""
    try:
        return np.asarray(values)
    except (ValueError, OverflowError):
        raise ValuesError("the values are lists of unequal lengths: give one list of numbers") from None


def read_values(path: Path | str) -> Numbers:
    """A vector of numbers, int64, float64 or complex128. JSON: a list; CSV: numbers in reading order; npy: any shape,
    flattened. Complex numbers: CSV ``1+2j``, npy.

    Raises ValuesError naming the file.
    """
    path = Path(path)
    suffix = _suffix(path)
    try:
        if suffix == ".npy":
            array = _read_npy(path)
        elif suffix == ".json":
            found = json_loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, list) or any(isinstance(each, list) for each in found):
                raise ValueError("not a list of numbers, or with lists in it")
            array = np.asarray(found)
        else:
            rows = csv.reader(StringIO(path.read_text(encoding="utf-8-sig")))
            array = np.asarray([_number(cell) for row in rows for cell in row if cell.strip()])
    except FileNotFoundError:
        raise ValuesError(f"{path}: no such file: name a list of numbers") from None
    except (OSError, ValueError, OverflowError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValuesError(f"{path} cannot be read as {suffix[1:]} numbers ({reason}): give a list of numbers") from error
    if array.dtype.kind not in "iufc" or array.size == 0:
        raise ValuesError(f"{path} holds no numbers that can be encoded: give a list of integers or reals")
    flat: Numbers = array.reshape(-1)
    return flat


def write_values(path: Path | str, values: Numbers) -> None:
    """Writes a vector in the format of the ending. Complex numbers: CSV and npy only. Raises ValuesError."""
    path = Path(path)
    suffix = _suffix(path)
    if suffix == ".json":
        if values.dtype.kind == "c":
            raise ValuesError(f"{path}: JSON has no complex numbers: write .csv or .npy")
        data = (json.dumps(values.tolist()) + "\n").encode()
    elif suffix == ".csv":
        data = "".join(f"{str(v).strip('()')}\n" for v in values.tolist()).encode()
    else:
        buffer = BytesIO()
        np.save(buffer, values, allow_pickle=False)
        data = buffer.getvalue()
    try:
        save_file(path, data)
    except OSError as error:
        raise ValuesError(f"{path} cannot be written: {error.strerror}") from error


def fit_values(parameters: ParameterSet, values: object) -> Numbers:
    """Checks that values can be encoded: float64 or complex128 for CKKS, int64 centred modulo t for BFV and BGV.

    BFV and BGV take integers from -(t-1)/2 to t - 1. Raises ValuesError.
    """
    array = np.asarray(values)
    if array.ndim != 1 or not 1 <= array.size <= parameters.slots:
        raise ValuesError(f"values of shape {array.shape}: {parameters.name} takes 1 to {parameters.slots} numbers")
    if array.dtype.kind not in "iufc":
        raise ValuesError(f"values of type {array.dtype} cannot be encoded: give integers or reals")
    if parameters.scheme == "ckks":
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        if not np.isfinite(array).all():
            raise ValuesError("an infinite value or a NaN cannot be encoded: replace it")
        return array
    t = parameters.plain_modulus
    if array.dtype.kind == "c" or (array.dtype.kind == "f" and not (array == np.floor(array)).all()):
        raise ValuesError(f"{parameters.scheme.upper()} encodes integers only: round the values, or use CKKS")
    if not (array >= -(t // 2)).all() or not (array < t).all():
        raise ValuesError(f"a value is outside {-(t // 2)} to {t - 1}: reduce it modulo t = {t}")
    integers = array.astype(np.int64)
    return np.where(integers > t // 2, integers - t, integers)


def log2_bound(values: Numbers) -> float:
    """log2 of the largest absolute value; 0 for an all-zero vector."""
    largest = float(np.abs(values).max())
    return math.log2(largest) if largest > 0 else 0.0
