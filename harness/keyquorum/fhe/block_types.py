"""Types of values whose blocks are LWE ciphertexts: the lowest block first, negative integers in two's complement, as in TFHE-rs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from keyquorum.model.errors import CiphertextError, ParameterError

MOST_BITS = 2048
"""Bits of the widest integer, which is that of TFHE-rs."""
Value = int | bool


@dataclass(frozen=True)
class BlockType:
    """``name``: bool, block, or uintN and intN for N bits. A block keeps all that its ciphertext has; the others have no carries."""

    name: str
    bits: int
    signed: bool = False

    def blocks(self, block_bits: int) -> int:
        """Ciphertexts of a value, of ``block_bits`` bits each. Raises ParameterError where they do not fill them."""
        if self.name in ("bool", "block"):
            return 1
        if self.bits % block_bits:
            raise ParameterError(f"{self.name}: blocks of this key have {block_bits} bits: choose a type of a multiple of {block_bits} bits")
        return self.bits // block_bits

    def value(self, messages: Sequence[int], block_bits: int, where: str) -> Value:
        """The value of its blocks. ``where`` names them in errors. Raises CiphertextError for a block with a carry."""
        if self.name == "block":
            return int(messages[0])
        most = 1 if self.name == "bool" else (1 << block_bits) - 1
        for message in messages:
            if message > most:
                raise CiphertextError(
                    f"{where}: a block has the value {message}, and one of {self.name} has at most {most}: decode it as another type, or as block"
                )
        if self.name == "bool":
            return bool(messages[0])
        total = sum(int(message) << (block_bits * place) for place, message in enumerate(messages))
        return total - (1 << self.bits) if self.signed and total >> (self.bits - 1) else total


def block_type(name: str) -> BlockType:
    """The type of a name. Raises ParameterError."""
    if name in ("bool", "block"):
        return BlockType(name, 1)
    found = re.fullmatch(r"(u?)int([1-9]\d{0,3})", name)
    if found is None or not 2 <= int(found[2]) <= MOST_BITS:
        raise ParameterError(f"unknown type {name!r}: choose bool, block, or uintN or intN of 2 to {MOST_BITS} bits, as uint64")
    return BlockType(name, int(found[2]), not found[1])


def typed_values(names: Sequence[str], messages: Sequence[int], block_bits: int, where: str) -> list[Value]:
    """The values of the types, whose blocks follow one another. One type stands for as many values as there are. Raises ParameterError and CiphertextError."""
    types = [block_type(name) for name in names]
    if len(types) == 1:
        types *= max(1, len(messages) // types[0].blocks(block_bits))
    needed = sum(kind.blocks(block_bits) for kind in types)
    if needed != len(messages):
        raise ParameterError(
            f"{where}: {len(messages)} blocks, and {', '.join(names)} takes {types[0].blocks(block_bits) if len(names) == 1 else needed} of {block_bits} bits: name another type"
        )
    values, at = list[Value](), 0
    for kind in types:
        size = kind.blocks(block_bits)
        values.append(kind.value(messages[at : at + size], block_bits, where))
        at += size
    return values


__all__ = ["BlockType", "Value", "block_type", "typed_values"]
