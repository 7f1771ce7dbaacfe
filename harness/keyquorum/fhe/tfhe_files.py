"""Files that TFHE-rs writes by ``safe_serialize``: what their headers say. Their content is read by the bridge alone (Source/tfhe).

A header has three texts, each after its length (u64, little endian): the version of the header, after a u32 (0: data with versions, 1: without) the version
of that, and the name of the type.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = 512
"""Bytes that suffice for a header."""
_LONGEST = 128
SECRET = ("ClientKey", "CompressedXofKeySet", "XofKeySet")
"""Types that have a secret key, or a seed of one."""
VALUES = ("FheUint", "FheInt", "FheBool", "Ciphertext")
"""Types that the bridge takes: integers of all widths of TFHE-rs, bools, and blocks of shortint."""


@dataclass(frozen=True)
class TfheHeader:
    """``type``: as TFHE-rs names it, without its module; ``version``: of the data format, or of the crate where the data have none (``versioned`` is False)."""

    type: str
    version: str
    versioned: bool


def read_header(head: bytes) -> TfheHeader | None:
    """The header of a file that begins with ``head`` (:data:`HEADER` bytes, or all of a shorter file); None for other files."""
    _, at = _text(head, 0)
    mode = int.from_bytes(head[at : at + 4], "little") if at else 2
    version, at = _text(head, at + 4) if mode < 2 else ("", 0)
    name, at = _text(head, at) if at else ("", 0)
    if not at or "::" not in name:
        return None
    return TfheHeader(name.rpartition("::")[2], version, mode == 0)


def _text(head: bytes, at: int) -> tuple[str, int]:
    """A text and the place behind it; place 0 where there is none."""
    size = int.from_bytes(head[at : at + 8], "little")
    data = head[at + 8 : at + 8 + size]
    if not 1 <= size <= _LONGEST or len(data) != size or not data.isascii() or not data.decode("ascii").isprintable():
        return "", 0
    return data.decode("ascii"), at + 8 + size


def cure(type_name: str) -> str:
    """What the owner of a file of another type than :data:`VALUES` can do to have its values decrypted."""
    if "List" in type_name:
        return "expand it, and write each value by safe_serialize"
    if type_name.startswith("CompressedFhe"):
        return "decompress it first"
    if type_name.startswith("SquashedNoise"):
        return "write the value before its noise is squashed"
    if type_name == "FheAsciiString":
        return "write each character as FheUint8"
    return "name a ciphertext"


__all__ = ["HEADER", "SECRET", "VALUES", "TfheHeader", "cure", "read_header"]
