"""The function that users get, around AES-128 under the shared key (:mod:`.legendre` has the other function), and the messages between a receiver and the parties.

For an input m of any length, and a domain d (bytes, at most 255; default none):

* x = the first 16 bytes of SHA-256("keyquorum toprf input v1" | 1 byte length of d | d | m);
* an output of 16 bytes takes the block AES_K(x), one of 32 bytes takes AES_K(x') and AES_K(x' xor 1), where x' is x with the lowest bit of its last
  byte cleared, and 1 is that bit;
* F(m) = the first 16 or 32 bytes of SHA-256("keyquorum toprf output v1" | 1 byte length of the output | 1 byte length of d | d | 8 bytes length of m,
  little endian | m | the blocks);
* D(m), from which keys are derived, is F(m) of 32 bytes with "keyquorum toprf derive v1" in the last hash: whoever knows F(m) does not know D(m).

The last hash binds the output to the input: two inputs with the same x, which take about 2^64 hashes to find, have different outputs. It is the second
hash of 2HashDH (Jarecki, Kiayias, Krawczyk: Round-Optimal Password-Protected Secret Sharing and T-PAKE in the Password-Only Model, ASIACRYPT 2014).

A receiver sends x as summands of the committee's sharing (AES: modulo 2); a party gets the summands that it would hold of a share. A request to a party: the
summands that it holds one after another, each with the 16 bytes of every input. An answer: likewise, with the blocks of every input.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError, PartyError

BLOCK = 16
"""Bytes of a block of AES."""
OUTPUTS = {16: 1, 32: 2}
"""Lengths of outputs in bytes, with the blocks that they take."""
MOST_INPUTS = 1024
"""Most inputs in one request."""
_INPUT, _OUTPUT, _DERIVE = b"keyquorum toprf input v1", b"keyquorum toprf output v1", b"keyquorum toprf derive v1"

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]


def check_output(length: int) -> int:
    """Blocks of an output of ``length`` bytes. Raises ParameterError."""
    if length not in OUTPUTS:
        raise ParameterError(f"outputs of {length} bytes: choose {' or '.join(map(str, OUTPUTS))}")
    return OUTPUTS[length]


def _prefixed(domain: bytes) -> bytes:
    if len(domain) > 255:
        raise ParameterError(f"a domain of {len(domain)} bytes: at most 255")
    return bytes([len(domain)]) + domain


def digest_of(data: bytes, domain: bytes) -> bytes:
    """The hash of an input and a domain, of which a point is made. Raises ParameterError for a domain that is too long."""
    return hashlib.sha256(_INPUT + _prefixed(domain) + data).digest()


def point_of(data: bytes, domain: bytes, length: int) -> bytes:
    """x of an input, 16 bytes; x' for outputs of 32 bytes."""
    x = bytearray(digest_of(data, domain)[:BLOCK])
    if check_output(length) > 1:
        x[-1] &= 0xFE
    return bytes(x)


def finalised(data: bytes, domain: bytes, length: int, blocks: bytes, derives: bool = False) -> bytes:
    """F of an input, from its blocks. ``derives``: D."""
    assert len(blocks) == BLOCK * check_output(length)
    said = bytes([length]) + _prefixed(domain) + len(data).to_bytes(8, "little") + data + blocks
    return hashlib.sha256((_DERIVE if derives else _OUTPUT) + said).digest()[:length]


def held_by(committee: Committee, party: int) -> tuple[int, ...]:
    """Numbers of the summands that a party holds."""
    return committee.capabilities.held(party, committee.size, committee.threshold)


def shared_points(committee: Committee, points: Sequence[bytes]) -> list[bytes]:
    """The bodies of a request to every party: fresh uniform summands modulo 2 of the points."""
    size = BLOCK * len(points)
    summands = [np.frombuffer(secrets.token_bytes(size), np.uint8) for _ in range(committee.summands - 1)]
    last = np.frombuffer(b"".join(points), np.uint8)
    for summand in summands:
        last = last ^ summand
    summands.append(last)
    return [b"".join(summands[number].tobytes() for number in held_by(committee, party)) for party in range(committee.size)]


def summands_of(committee: Committee, answers: Sequence[bytes | bytearray], blocks: int, size: int = BLOCK) -> list[Bytes]:
    """The summands of blocks of ``size`` bytes, of which the parties hold these shares. Raises PartyError, which names parties, if an answer has another
    length, or if two copies of a summand differ: then one of the two parties computed wrongly."""
    summands: dict[int, tuple[int, Bytes]] = {}
    for party, answer in enumerate(answers):
        held = held_by(committee, party)
        if len(answer) != len(held) * blocks * size:
            raise PartyError(f"party {party} sent {len(answer)} bytes for {blocks} blocks: run the same version everywhere")
        for number, mine in zip(held, np.frombuffer(bytes(answer), np.uint8).reshape(len(held), -1), strict=True):
            other, known = summands.setdefault(number, (party, mine))
            if not np.array_equal(known, mine):
                raise PartyError(
                    f"parties {other} and {party} sent different copies of summand {number} of the result, so one of them computed wrongly: "
                    "the result was dropped; ask who runs them"
                )
    return [summand for _, summand in summands.values()]


def combined(committee: Committee, answers: Sequence[bytes | bytearray], blocks: int) -> bytes:
    """The blocks of AES of which the parties hold these shares. Raises PartyError as :func:`summands_of`."""
    total = np.zeros(blocks * BLOCK, np.uint8)
    for summand in summands_of(committee, answers, blocks):
        total ^= summand
    return total.tobytes()


def rows_of(blocks: Bytes) -> Words:
    """Bytes [parts, blocks, 16] as shares of bits [parts, 128 blocks]: row 8 i + j has bit j of byte i of every block."""
    bits = np.unpackbits(blocks, axis=2, bitorder="little")
    return bits.transpose(0, 2, 1).reshape(blocks.shape[0], -1).astype(np.uint64)


def blocks_of(rows: Words) -> Bytes:
    """The inverse of :func:`rows_of`, from the lowest bits of words."""
    bits = (rows.reshape(rows.shape[0], 8 * BLOCK, -1) & np.uint64(1)).astype(np.uint8)
    return np.packbits(bits.transpose(0, 2, 1), axis=2, bitorder="little")


__all__ = [
    "BLOCK", "MOST_INPUTS", "OUTPUTS", "blocks_of", "check_output", "combined", "digest_of", "finalised", "held_by", "point_of", "rows_of", "shared_points",
    "summands_of",
]  # fmt: skip
