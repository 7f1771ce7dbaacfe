"""GHS: parameter sets, and public key files (docs/pages/ghs.md) with their masks, and their noise under secrets in clear text.

Paper: GMPFHE, section 5.2, after Gentry, Halevi, Smart (Homomorphic Evaluation of the AES Circuit, 2012): BGV modulo a cyclotomic polynomial of any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from math import gcd, prod
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import Cyclotomic, expand_uniform, mulmod, mulmod_scalar, submod
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import Json, is_hex, json_loads, read_text, toml_loads

from ._arith import is_prime
from .seeded_files import SEED_BYTES, BodyWriter, unpacked

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

KEY_MAGIC = b"KQGHS001"
PUBLIC, SWITCHING, RECRYPTION = "public", "switching", "recryption"
FEWEST, COUNTED, DEVIATIONS = 256, 1 << 16, 8
"""Parts of a prime whose residues a check counts; residues from which on it does; standard deviations that a count may be off: uniform bodies of a good key
are refused once in 10^12 checks, at most."""
SET_NAMES = ("ghs-53261", "ghs-28679")


@dataclass(frozen=True)
class GhsParameters:
    """A parameter set. Construction validates.

    ``order``: m, polynomials are modulo the m-th cyclotomic polynomial. ``primes``: of the modulus of keys: as many of each of the ``digits`` digits as
    there are, and the rest, at least as many, special ones. ``weight``: entries of a secret that are 1 or -1; all others are 0. ``plain_modulus``: p.
    ``recryption_modulus``: p' of the encryption of a second secret, a power of p; 0: there is no second secret. ``automorphisms``: exponents t of X -> X^t
    that have switching keys. Raises ParameterError naming the set, the field and the cure.
    """

    name: str
    order: int
    primes: tuple[int, ...]
    digits: int
    weight: int
    automorphisms: tuple[int, ...]
    plain_modulus: int = 2
    recryption_modulus: int = 0
    source: str = ""
    scheme: Literal["ghs"] = "ghs"

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ParameterError(f"parameter set {self.name!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        numbers = (self.order, self.digits, self.weight, self.plain_modulus, self.recryption_modulus, *self.primes, *self.automorphisms)
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in numbers) or not 3 <= self.order < 1 << 16:
            yield "order is 3 to 65535, and all numbers are integers: correct the file"
            return
        if len(set(self.primes)) < len(self.primes) or not all(2 < q < 1 << 60 and is_prime(q) and q % (2 * self.length) == 1 for q in self.primes):
            yield f"primes must be different, below 2^60, and 1 modulo {2 * self.length}: choose others"
        if any(q % self.order != 1 for q in self.primes):
            yield f"primes must be 1 modulo the order {self.order}: choose others"
        if not (self.digits >= 1 and self.per_digit >= 1 and len(self.special) >= self.per_digit):
            yield f"{len(self.primes)} primes are too few for {self.digits} digits and as many special primes as a digit has: add primes"
        if not 1 <= self.weight <= self.degree:
            yield f"weight is 1 to {self.degree}, the number of coefficients: choose another"
        if self.plain_modulus != 2 or (self.recryption_modulus and self.recryption_modulus & (self.recryption_modulus - 1)):
            yield "plain_modulus is 2, and recryption_modulus a power of it, or 0: correct the file"
        if self.primes and not 0 <= self.recryption_modulus < min(self.primes) >> 8:
            yield "recryption_modulus times the noise must be far below each prime: choose a smaller one"
        if len(set(self.automorphisms)) < len(self.automorphisms) or any(
            not 1 < t < self.order or gcd(t, self.order) > 1 for t in self.automorphisms
        ):
            yield f"automorphisms are different numbers from 2 to {self.order - 1} that are coprime to the order: choose others"

    @property
    def degree(self) -> int:
        """phi(m), the coefficients of a polynomial."""
        return degree_of(self.order)

    @property
    def length(self) -> int:
        """Values of the convolution of a transform, a power of two."""
        return 1 << (self.order + self.degree - 2).bit_length()

    @property
    def per_digit(self) -> int:
        """Primes of a digit."""
        return len(self.primes) // (self.digits + 1)

    @property
    def special(self) -> tuple[int, ...]:
        """The special primes: ciphertexts do not have them."""
        return self.primes[self.digits * self.per_digit :]

    @property
    def gadget(self) -> list[int]:
        """Q_j of the digits: the product of the special primes, and of the primes of all digits before."""
        return [prod(self.special) * prod(self.primes[: j * self.per_digit]) for j in range(self.digits)]

    @property
    def secrets(self) -> int:
        """Secrets of a key: s_0, and s_r if there is a recryption key."""
        return 2 if self.recryption_modulus else 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the public files of a key."""
        return (PUBLIC, SWITCHING, RECRYPTION) if self.recryption_modulus else (PUBLIC, SWITCHING)

    def targets(self, kind: str) -> list[Target]:
        """What a file of public keys encrypts, in the order of its bodies."""
        p, gadget = self.plain_modulus, tuple(self.gadget)
        if kind == PUBLIC:
            return [Target(0, 0, 1, 1, p, (0,))]
        if kind == SWITCHING:
            return [Target(0, 0, 2, 1, p, gadget), *(Target(0, 0, 1, t, p, gadget) for t in self.automorphisms)]
        return [Target(0, 1, 1, 1, self.recryption_modulus, (1,)), Target(1, 0, 1, 1, p, gadget)]

    def polynomials(self, kind: str) -> int:
        """Bodies of a file, modulo each prime."""
        return sum(len(target.weights) for target in self.targets(kind))

    @property
    def residue_bytes(self) -> int:
        """Bytes of a residue in a file."""
        return -(-max(self.primes).bit_length() // 8)

    def residues(self, kind: str) -> int:
        """Residues of the bodies of a file."""
        return self.polynomials(kind) * len(self.primes) * self.degree


@dataclass(frozen=True)
class Target:
    """What is encrypted: for each weight g, b = f e - a s + g s'(X^t)^r, for the secrets s and s' of these numbers. ``power``: r; ``exponent``: t; ``factor``: f."""

    secret: int
    of: int
    power: int
    exponent: int
    factor: int
    weights: tuple[int, ...]


@cache
def degree_of(order: int) -> int:
    """phi(m)."""
    return sum(gcd(j, order) == 1 for j in range(1, order))


def parameters_from_json(data: Json) -> GhsParameters:
    """A parameter set from plain data, as :func:`dataclasses.asdict` gives it. Raises ParameterError."""
    fields: Json = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    try:
        if fields.get("scheme") != "ghs" or not all(isinstance(fields[name], str) for name in ("name", "source")):
            raise TypeError("scheme, name or source")
        return GhsParameters(**fields)
    except (KeyError, TypeError) as error:
        raise ParameterError(f"no parameter set of GHS: it has other fields ({error}); take params/ghs-53261.toml as a pattern") from None


def load_set(name_or_path: str | Path) -> GhsParameters:
    """A shipped set by name, or the set of a TOML file. Raises ParameterError."""
    if isinstance(name_or_path, Path):
        try:
            return parameters_from_json(toml_loads(read_text(name_or_path)))
        except (OSError, ValueError) as error:
            raise ParameterError(f"{name_or_path} is no file of a parameter set: {error}") from None
    if name_or_path not in SET_NAMES:
        raise ParameterError(f"unknown parameter set of GHS {name_or_path!r}: choose one of {', '.join(SET_NAMES)}")
    return _shipped(name_or_path)


@cache
def _shipped(name: str) -> GhsParameters:
    return parameters_from_json(toml_loads((resources.files(__package__) / "params" / f"{name}.toml").read_text(encoding="utf-8")))


def file_name(kind: str) -> str:
    """Name of a public file in a key folder."""
    return f"{kind}.kqg"


def masks(seed: bytes, prime: int, polynomials: tuple[int, int], parameters: GhsParameters) -> Words:
    """The masks of the polynomials from one to another (exclusive) of a file, modulo prime number ``prime``: uniform values, not coefficients."""
    first, last = polynomials
    own = hashlib.shake_256(b"keyquorum GHS masks" + seed + prime.to_bytes(2, "little")).digest(16)
    expanded: Words = expand_uniform(own, first * parameters.degree, (last - first) * parameters.degree, parameters.primes[prime])
    return expanded


def _header(parameters: GhsParameters, kind: str, key_id: str, seed: bytes) -> Json:
    numbers = asdict(parameters)
    del numbers["source"], numbers["scheme"]
    numbers = {name: list(value) if isinstance(value, tuple) else value for name, value in numbers.items()}
    return {"kind": kind, **numbers, "key_id": key_id, "seed": seed.hex(), "residues": parameters.residues(kind)}


def key_writer(file: BinaryIO, parameters: GhsParameters, kind: str, key_id: str, seed: bytes) -> BodyWriter:
    """Writes a public file. Its bodies come prime after prime, modulo each prime in the order of :meth:`GhsParameters.targets`."""
    return BodyWriter(file, KEY_MAGIC, _header(parameters, kind, key_id, seed), parameters.residues(kind), parameters.residue_bytes)


@dataclass(frozen=True)
class GhsKeyFile:
    """A public file that was checked, on the disk. ``start``: its first residue, in bytes."""

    path: Path
    parameters: GhsParameters
    kind: str
    key_id: str
    seed: bytes
    start: int

    def bodies(self, prime: int, polynomials: tuple[int, int]) -> Words:
        """The values of the polynomials from one to another (exclusive) modulo prime number ``prime``."""
        p, (first, last) = self.parameters, polynomials
        size = p.residue_bytes * p.degree
        with self.path.open("rb") as file:
            file.seek(self.start + size * (prime * p.polynomials(self.kind) + first))
            return unpacked(file.read(size * (last - first)), p.residue_bytes)

    def noise(self, secrets: Sequence[Ints], prime: int) -> Ints:
        """f e of all polynomials modulo prime number ``prime``, [polynomials, phi(m)], centred, with the secrets in clear text."""
        p, q = self.parameters, self.parameters.primes[prime]
        transform, made, at = Cyclotomic(q, p.order), list[Words](), 0
        values = [transform.forward((s % q).astype(np.uint64)) for s in secrets]
        for target in p.targets(self.kind):
            plain = transform.automorphism(values[target.of], target.exponent)
            plain = mulmod(plain, plain, q) if target.power == 2 else plain
            for weight in target.weights:
                places = at, at + 1
                masked = submod(self.bodies(prime, places), mulmod(masks(self.seed, prime, places, p), self._negated(values[target.secret], q), q), q)
                made.append(transform.inverse(submod(masked, mulmod_scalar(plain, weight % q, q), q)))
                at += 1
        residues = np.stack(made)
        return np.where(residues > q // 2, residues - np.uint64(q), residues).view(np.int64)

    @staticmethod
    def _negated(values: Words, q: int) -> Words:
        return mulmod_scalar(values, q - 1, q)


def read_key_file(path: Path) -> GhsKeyFile:
    """Reads a public file a piece at a time, and refuses one that is damaged: header, size, checksum, the range of the bodies, and, as bodies of a key look
    uniform, how often residues are in each of 256 parts of a prime. Raises KeyFileError."""
    damaged = KeyFileError(f"{path}: not a public key of GHS, or a damaged one: copy it from another party, or delete this key and make it again")
    with path.open("rb") as file:
        head = file.read(12)
        length = int.from_bytes(head[8:12], "little")
        if head[:8] != KEY_MAGIC or length > 1 << 16:
            raise damaged
        text = file.read(length)
        parameters, header = None, {}
        with suppress(ValueError, KeyError, TypeError, ParameterError):
            header = json_loads(text)
            fields = {name: header[name] for name in _header_fields()}
            parameters = parameters_from_json({**fields, "source": "", "scheme": "ghs"})
        if parameters is None or not (is_hex(header["key_id"], 32) and is_hex(header["seed"], 2 * SEED_BYTES) and header["kind"] in parameters.kinds):
            raise damaged
        kind, key_id, seed = header["kind"], header["key_id"], bytes.fromhex(header["seed"])
        size = parameters.residue_bytes * parameters.residues(kind)
        if header != _header(parameters, kind, key_id, seed) or path.stat().st_size != 12 + length + size + hashlib.sha256().digest_size:
            raise damaged
        digest, seen = hashlib.sha256(head + text), np.zeros(FEWEST, dtype=np.int64)
        for q in parameters.primes:
            for _ in range(parameters.polynomials(kind)):
                data = file.read(parameters.residue_bytes * parameters.degree)
                digest.update(data)
                words = unpacked(data, parameters.residue_bytes)
                if int(words.max()) >= q:
                    raise damaged
                seen += np.bincount((words.astype(np.float64) * (FEWEST / q)).astype(np.int64), minlength=FEWEST)[:FEWEST]
        if digest.digest() != file.read():
            raise damaged
    count = parameters.residues(kind) / FEWEST
    if parameters.residues(kind) >= COUNTED and np.abs(seen - count).max() > DEVIATIONS * count**0.5:
        raise KeyFileError(f"{path}: its bodies are not as good as random: delete this key, make it again, and report it")
    return GhsKeyFile(path, parameters, kind, key_id, seed, 12 + length)


def _header_fields() -> list[str]:
    return [name for name in GhsParameters.__dataclass_fields__ if name not in ("source", "scheme")]


__all__ = [
    "KEY_MAGIC",
    "PUBLIC",
    "RECRYPTION",
    "SET_NAMES",
    "SWITCHING",
    "GhsKeyFile",
    "GhsParameters",
    "Target",
    "file_name",
    "key_writer",
    "load_set",
    "masks",
    "parameters_from_json",
    "read_key_file",
]
