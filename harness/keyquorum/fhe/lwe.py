"""LWE ciphertexts: parameter sets, files of many ciphertexts, and a reference in clear text that needs the secret.

A ciphertext of m is (a, b) with b = <a, s> + D m + e mod q, D = q / 2^(plain_bits + padding_bits), s binary or ternary. Several ciphertexts
are one object, so that their phases are one matrix product.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.plain import Json, json_loads

from .block_types import block_type
from .lwe_sets import FHEW_SETS, LWE_SETS, TFHE_SETS, FhewParameters, LweParameters, TfheParameters, ciphertext_parameters, lwe_parameters

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
MAGIC = b"KQLWE002"
FLOODED = "round_flood"
_DIGEST = 32


def pack(magic: bytes, header: Json, body: bytes) -> bytes:
    """A file: 8 bytes of ``magic``, the length of the header, the header as JSON, the body, and SHA-256 of all preceding bytes."""
    text = json.dumps(header).encode()
    data = magic + len(text).to_bytes(4, "little") + text + body
    return data + hashlib.sha256(data).digest()


def unpack(data: bytes | bytearray) -> tuple[Json, memoryview]:
    """Header and body of a file of :func:`pack`, whose magic the caller has checked. Raises ValueError if it is damaged."""
    end = len(data) - _DIGEST
    size = int.from_bytes(data[8:12], "little")
    view = memoryview(data)
    if 12 + size > end or hashlib.sha256(view[:end]).digest() != data[end:]:
        raise ValueError("damaged")
    header = json_loads(bytes(view[12 : 12 + size]))
    if not isinstance(header, dict):
        raise ValueError("a header of another type")
    return header, view[12 + size : end]


@dataclass(frozen=True)
class LweCiphertexts:
    """``a``: [count, n], ``b``: [count], canonical modulo q. ``noise_bits``: log2 of the bound on each |e| that the encryptor states;
    None: no bound is stated. ``types``: of the values whose blocks the ciphertexts are (:mod:`.block_types`), in their order; empty: messages of their own."""

    parameters: LweParameters
    a: Words
    b: Words
    noise_bits: float | None = None
    types: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of ciphertexts."""
        return int(self.b.size)

    def to_bytes(self, key_id: str) -> bytes:
        """A file: header (parameter set, key, count, noise if it is stated), a, b, all little endian, and SHA-256."""
        header: Json = {"parameters": self.parameters.name, "key_id": key_id, "count": self.count}
        if self.noise_bits is not None:
            header["noise_bits"] = self.noise_bits
        if self.types:
            header["types"] = list(self.types)
        return pack(MAGIC, header, self.a.astype("<u8").tobytes() + self.b.astype("<u8").tobytes())

    def part(self, first: int, last: int) -> LweCiphertexts:
        """The ciphertexts ``first`` to ``last - 1``, without types: a value may be cut."""
        return replace(self, a=self.a[first:last], b=self.b[first:last], types=())

    def check_rounding(self, rounding: str, where: str) -> None:
        """Raises CiphertextError if the ciphertexts state more noise than half the distance of two messages, which no rounding takes, or with `round_flood` more than its flooding
        hides. Both are in units of q, as stated noise is: phases modulo a prime may be scaled to a larger ring, or not at all. ``where`` names them in errors."""
        p = self.parameters
        most = (p.prime.bit_length() or 64) - p.message_bits - 1
        if self.noise_bits is not None and self.noise_bits > most:
            raise CiphertextError(
                f"{where} states noise of up to 2^{self.noise_bits:.1f}, no rounding takes more than 2^{most} of {self.parameters.name}: "
                "make it anew, with a bootstrap before it is decrypted"
            )
        if rounding == FLOODED and self.noise_bits is not None and self.noise_bits > self.parameters.noise_bits:
            raise CiphertextError(
                f"{where} states noise of up to 2^{self.noise_bits:.1f}, {FLOODED} hides 2^{self.parameters.noise_bits} of {self.parameters.name}: "
                "decrypt it by a rounding without flooding, as round_ltz_circuit"
            )

    def words(self, block: int) -> list[Ints]:
        """The public input of `lwe_phase`."""
        parts: list[Ints] = []
        for first in range(0, self.count, block):
            parts += [self.a[first : first + block].reshape(-1).view(np.int64), self.b[first : first + block].view(np.int64)]
        return parts

    def digest(self) -> bytes:
        """SHA-256 of parameters, content, and noise if it is stated."""
        stated = "" if self.noise_bits is None else f" noise {self.noise_bits!r}"
        state = hashlib.sha256((self.parameters.name + stated).encode())
        for part in (self.a, self.b):
            state.update(np.ascontiguousarray(part, dtype="<u8").data)
        return state.digest()


def read_lwe(data: bytes | bytearray, where: str) -> tuple[LweCiphertexts, str]:
    """Ciphertexts and the id of their key, from :meth:`LweCiphertexts.to_bytes`; ``where`` names the source in errors."""
    damaged = f"{where}: not a file of LWE ciphertexts, or a damaged one: make it again"
    if data[:8] != MAGIC:
        raise CiphertextError(damaged)
    try:
        header, body = unpack(data)
        parameters, key_id, count = ciphertext_parameters(header["parameters"]), str(header["key_id"]), header["count"]
        noise, types = header.get("noise_bits"), header.get("types", [])
    except (ValueError, KeyError, TypeError):
        raise CiphertextError(damaged) from None
    n = parameters.dimension
    stated = noise is None or (type(noise) in (int, float) and 0 <= noise < 64)
    if not stated or type(count) is not int or count < 1 or len(body) != 8 * count * (n + 1):
        raise CiphertextError(damaged)
    words = np.frombuffer(body, dtype="<u8").astype(np.uint64)
    if parameters.prime and int(words.max()) >= parameters.prime:
        raise CiphertextError(f"{where}: a number is not below the modulus {parameters.prime}: make the file again")
    return LweCiphertexts(
        parameters, words[: count * n].reshape(count, n), words[count * n :], noise, _types(types, parameters, count, damaged)
    ), key_id


def _types(names: object, parameters: LweParameters, count: int, damaged: str) -> tuple[str, ...]:
    """The types in the header of a file, whose blocks are its ciphertexts. Raises CiphertextError."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CiphertextError(damaged)
    try:
        blocks = sum(block_type(name).blocks(parameters.block_bits) for name in names)
    except ParameterError:
        raise CiphertextError(damaged) from None
    if names and blocks != count:
        raise CiphertextError(damaged)
    return tuple(names)


def messages_to_bytes(messages: Ints, types: Sequence[str] = ()) -> bytes:
    """The file of the messages of a joint decryption: JSON, a list, or with types an object with both."""
    own = messages.tolist()
    return json.dumps({"types": list(types), "messages": own} if types else own).encode() + b"\n"


def read_messages(path: Path) -> tuple[list[int], tuple[str, ...]]:
    """The messages that a joint decryption wrote (JSON), and the types of their values. Raises CiphertextError for other files."""
    try:
        found = json_loads(path.read_bytes())
        messages, types = (found["messages"], found["types"]) if isinstance(found, dict) else (found, [])
    except (ValueError, KeyError):
        messages = types = None
    numbers = isinstance(messages, list) and all(type(m) is int and m >= 0 for m in messages)
    if not numbers or not isinstance(types, list) or not all(isinstance(name, str) for name in types):
        raise CiphertextError(f"{path}: no messages of LWE, or damaged ones: decrypt again")
    return messages, tuple(types)


def is_lwe(data: bytes) -> bool:
    """Whether a file that begins with ``data`` has LWE ciphertexts."""
    return data[:8] == MAGIC


def file_scheme(head: bytes) -> str | None:
    """The scheme of the keys of a file of LWE ciphertexts, from its first 64 bytes or more; ``lwe`` for an unknown set, None for other files."""
    if not is_lwe(head):
        return None
    named = re.match(rb'\{"parameters": ?"([^"]*)"', head[12:])
    name = named[1].decode(errors="replace") if named else ""
    try:
        return ciphertext_parameters(name).scheme
    except ParameterError:
        return "lwe"


def encode(parameters: LweParameters, messages: Ints) -> Words:
    """D m for each message, D = q / 2^(bits of a message with its padding), rounded. Raises ParameterError for other messages."""
    if messages.size == 0 or messages.min() < 0 or int(messages.max()) >> parameters.plain_bits:
        raise ParameterError(f"messages of {parameters.name} are 0 to {(1 << parameters.plain_bits) - 1}")
    words, j = messages.astype(np.uint64), parameters.message_bits
    if not parameters.prime:
        return words << np.uint64(64 - j)
    assert parameters.prime << j < 1 << 64
    scaled: Words = (words * np.uint64(parameters.prime) + np.uint64(1 << (j - 1))) >> np.uint64(j)
    return scaled


def inner_products(parameters: LweParameters, a: Words, secret: Ints) -> Words:
    """<a, s> mod q of each row, for s with entries -1, 0 and 1; sums of up to 2048 residues below 2^53 fit 64 bits."""
    if not parameters.prime:
        wrapped: Words = a @ secret.astype(np.uint64)
        return wrapped
    q = np.uint64(parameters.prime)
    plus, minus = (a @ (secret == sign).astype(np.uint64) % q for sign in (1, -1))
    total: Words = (plus + (q - minus)) % q
    return total


def encrypt(parameters: LweParameters, secret: Ints, messages: Ints, rng: np.random.Generator, noise: Ints | None = None) -> LweCiphertexts:
    """Reference encryption with the secret in clear text. ``noise``: the e of each (default: fresh, rounded Gaussian)."""
    count, q, scaled = messages.size, parameters.modulus, encode(parameters, messages)
    e = np.rint(rng.normal(0, parameters.deviation, count)).astype(np.int64) if noise is None else noise
    a = rng.integers(0, q - 1, (count, parameters.dimension), dtype=np.uint64, endpoint=True)
    offset = np.array([(int(s) + int(v)) % q for s, v in zip(scaled, e, strict=True)], dtype=np.uint64)
    b = inner_products(parameters, a, secret) + offset
    return LweCiphertexts(parameters, a, b % np.uint64(q) if parameters.prime else b)


def decrypt_clear(ciphertexts: LweCiphertexts, secret: Ints) -> tuple[Ints, NDArray[np.float64]]:
    """Messages (with padding bits) and |e| / D, with the secret in clear text."""
    parameters = ciphertexts.parameters
    q, j = parameters.modulus, parameters.message_bits
    products = inner_products(parameters, ciphertexts.a, secret)
    phases = [(int(b) - int(p)) % q for b, p in zip(ciphertexts.b, products, strict=True)]
    nearest = [((w << j) + q // 2) // q for w in phases]
    error = [abs(w * (1 << j) - m * q) / q for w, m in zip(phases, nearest, strict=True)]
    return np.array([m % (1 << j) for m in nearest], dtype=np.int64), np.array(error)


def flooding_bits(parameters: LweParameters, security: int) -> int:
    """f of `round_flood`: uniform flooding in [-2^f, 2^f), in units of the ring, that hides noise below 2^noise_bits with ``security`` bits a
    decryption.

    Noise is in units of q. A phase modulo a prime is scaled to a ring of 2^k before the flooding is added, and its noise with it, by 2^k / q.
    Raises :class:`ParameterError` if flooding and noise together may reach half the distance of two messages in the ring.
    """
    bound = ring_noise(parameters)
    f, limit = math.ceil(math.log2(bound)) + security, parameters.noise_length - 1
    if math.log2(2.0**f + bound) >= limit:
        need = f + 2 + parameters.message_bits - (parameters.ring_bits - parameters.modulus.bit_length() if parameters.prime else 0)
        raise ParameterError(
            f"{parameters.name} is too small for flooding with {security} bits of security: that needs a modulus of {need} bits; "
            "take a rounding without flooding"
        )
    return f


def ring_noise(parameters: LweParameters) -> float:
    """The bound on |e| in units of the ring 2^k of the roundings. Scaling a phase modulo a prime rounds each of up to 16 summands by half a unit.
    These 8 units are covered by a factor of 2: the statistical distance |e| / 2^(f+1) is half of what ``security`` requires. In a ring below the prime
    they are added."""
    if not parameters.prime:
        return 2.0**parameters.noise_bits
    wider = parameters.ring_bits - parameters.prime.bit_length()
    return 2.0 ** (parameters.noise_bits + wider) + (8 if wider < 0 else 0)


__all__ = [
    "FHEW_SETS",
    "LWE_SETS",
    "TFHE_SETS",
    "FhewParameters",
    "LweCiphertexts",
    "LweParameters",
    "TfheParameters",
    "ciphertext_parameters",
    "decrypt_clear",
    "encode",
    "encrypt",
    "file_scheme",
    "inner_products",
    "is_lwe",
    "lwe_parameters",
    "messages_to_bytes",
    "read_lwe",
    "read_messages",
]
