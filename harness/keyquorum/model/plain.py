"""JSON and TOML from files and peers: every malformed text raises ValueError."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, NoReturn

Json = dict[str, Any]
"""An object of JSON, or a table of TOML. The types of the values are unknown until they are checked."""
INTEGER_BITS = 64
"""Bits of the longest integer in a TOML file: Python refuses to print much longer ones, even in an error."""
TEXT_BYTES = 64 << 20
"""Bytes of the longest file that :func:`read_text` reads."""


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def read_text(path: Path) -> str:
    """A text file of somebody else. Raises ValueError for more than :data:`TEXT_BYTES`, as of a device that never ends, and for bytes that are not UTF-8."""
    with path.open("rb") as file:
        data = file.read(TEXT_BYTES + 1)
    if len(data) > TEXT_BYTES:
        raise ValueError(f"more than {TEXT_BYTES >> 20} MiB")
    return data.decode()


def json_loads(text: str | bytes) -> Any:
    """``json.loads`` that also raises ValueError for lists or objects that are nested too deeply, and for NaN and infinities."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def toml_loads(text: str) -> Json:
    """``tomllib.loads`` that also raises ValueError for values that are nested too deeply, and for integers of more than 64 bits."""
    try:
        data = tomllib.loads(text)
        _check_integers(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return data


def _check_integers(value: object) -> None:
    if isinstance(value, int) and value.bit_length() > INTEGER_BITS:
        raise ValueError(f"an integer of {value.bit_length()} bits: at most {INTEGER_BITS} are read")
    if isinstance(value, dict):
        for each in value.values():
            _check_integers(each)
    elif isinstance(value, list):
        for each in value:
            _check_integers(each)


def is_hex(value: object, digits: int) -> bool:
    """Whether a value is a text of ``digits`` lower-case hexadecimal digits."""
    return isinstance(value, str) and len(value) == digits and set(value) <= set("0123456789abcdef")


def is_count(value: object, least: int = 0) -> bool:
    """Whether a value is an integer, and no bool, from ``least`` to 2^62, so that sums of such values fit 64 bits."""
    return type(value) is int and least <= value <= 1 << 62
