"""Bits that the parties encrypt together under their shared secret: public LWE ciphertexts (a, b) modulo 2^32, with a from a public seed.

Only bodies b = <a, s> + e + 2^31 m are opened (program `lwe_bodies`). They are pseudorandom if LWE is hard, so everybody may have them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import pack, unpack
from keyquorum.model.errors import KeyFileError
from keyquorum.model.plain import is_hex
from keyquorum.programs import Call, Layout
from keyquorum.programs.signatures import lwe_bodies, sample_tuniform
from keyquorum.sharing.shares import DomainRun

from .parameters import GateParameters, gate_parameters

Words = NDArray[np.uint64]
Half = NDArray[np.uint32]
SEED = 64
"""Bytes of a seed."""
AT_ONCE = 4096
"""Ciphertexts of which the vectors a are in memory together: 10 MB for n = 630."""
NOISE_AT_ONCE = 16384
"""Noise terms whose bits are made in one round."""
MAGIC = b"KQLWEGT1"


class Runs(Protocol):
    """Runs a program among the parties, on shares of one protocol and domain."""

    def __call__(self, call: Call, **options: Any) -> NDArray[np.int64]:
        """The words that were opened to this party."""


def runs_of(runs: DomainRun) -> Runs:
    """The programs of a plan over one domain."""

    def run(call: Call, **options: Any) -> NDArray[np.int64]:
        return runs.run(call, options.pop("shares"), purpose=options.pop("context", b""), **options)

    return run


def vectors(seed: bytes, indices: Iterable[int], n: int) -> Half:
    """The vectors a of these ciphertexts of a seed, [count, n]: SHAKE-128(seed | index, 8 bytes little endian), words of 32 bits."""
    parts = [hashlib.shake_128(seed + int(i).to_bytes(8, "little")).digest(4 * n) for i in indices]
    return np.frombuffer(b"".join(parts), "<u4").reshape(-1, n)


@dataclass(frozen=True)
class EncryptedBits:
    """Ciphertexts of bits. ``bodies``: b of each; the vectors a follow from ``seed`` (:func:`vectors`)."""

    parameters: GateParameters
    seed: bytes
    bodies: Half

    def words(self, indices: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The public input of `lwe_phase` for these ciphertexts, in blocks of :data:`AT_ONCE`."""
        made: list[NDArray[np.int64]] = []
        for first in range(0, indices.size, AT_ONCE):
            part = indices[first : first + AT_ONCE]
            made += [vectors(self.seed, part, self.parameters.dimension).reshape(-1).astype(np.int64), self.bodies[part].astype(np.int64)]
        return made

    def to_bytes(self, key_id: str) -> bytes:
        """A file: header (parameter set, key, seed), the bodies, little endian, and SHA-256."""
        return pack(MAGIC, {"parameters": self.parameters.name, "key_id": key_id, "seed": self.seed.hex()}, self.bodies.astype("<u4").tobytes())


def read_encrypted_bits(data: bytes, count: int | None, where: str) -> tuple[EncryptedBits, str]:
    """Ciphertexts and the id of their key, from :meth:`EncryptedBits.to_bytes`. Raises KeyFileError for other bytes, or another number of
    ciphertexts (None: any)."""
    damaged = KeyFileError(f"{where}: no encrypted bits, or damaged ones: copy the file from another party")
    if data[:8] != MAGIC:
        raise damaged
    try:
        header, body = unpack(data)
        parameters, key_id, seed = gate_parameters(header["parameters"]), header["key_id"], header["seed"]
    except (ValueError, KeyError, TypeError):
        raise damaged from None
    if not (is_hex(key_id, 32) and is_hex(seed, 2 * SEED)) or len(body) % 4 or count not in (None, len(body) // 4):
        raise damaged
    return EncryptedBits(parameters, bytes.fromhex(seed), np.frombuffer(body, "<u4").astype(np.uint32)), key_id


def encrypt_shared(run: Runs, parameters: GateParameters, secret: Words, messages: Words, public_seed: bytes) -> EncryptedBits:
    """Encrypts shared bits; every party calls this. ``secret``: our components of s, [parts, n]; ``messages``: of the bits modulo q, [parts, count].

    Rounds and bytes are those of `sample_tuniform`, and of `lwe_bodies` for every :data:`AT_ONCE` bits. ``public_seed``: tossed by all parties for
    these ciphertexts alone."""
    n, count = parameters.dimension, messages.shape[1]
    noise = ShareVector()
    run(sample_tuniform(size=count, b=parameters.noise_bound, chunk=NOISE_AT_ONCE), shares=noise)
    layout = Layout(secret=n, messages=count, noise=count)
    file = ShareVector.from_words(np.concatenate([secret, messages, noise.words], axis=1))
    noise.wipe()
    opened = []
    try:
        for first in range(0, count, AT_ONCE):
            last = min(first + AT_ONCE, count)
            m, e = (layout[name].rows(first, last, 1) for name in ("messages", "noise"))
            call = lwe_bodies(n=n, count=last - first, shift=parameters.noise_length, s=layout["secret"], m=m, e=e)
            a = vectors(public_seed, range(first, last), n).reshape(-1).astype(np.int64)
            opened.append(run(call, public=[a], shares=file))
    finally:
        file.wipe()
    return EncryptedBits(parameters, public_seed, np.concatenate(opened).astype(np.uint32))


__all__ = ["SEED", "EncryptedBits", "encrypt_shared", "read_encrypted_bits", "vectors"]
