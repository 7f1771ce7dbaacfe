"""Parameter sets of SEAL: explicit primes, validated, loaded from TOML.

A set fixes everything that the bytes of keys and ciphertexts depend on. Both sides must use the same list of primes
in the same order, so files spell the primes out; nothing is generated when a set is loaded.
"""

from __future__ import annotations

import hashlib
import struct
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from importlib import resources
from math import prod
from pathlib import Path
from typing import Any, Literal, get_args

from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import read_text, toml_loads

from ._arith import is_prime
from .errors import SecurityWarning, UnknownParameterSetError

Scheme = Literal["ckks", "bfv", "bgv"]
Security = Literal["tc128", "none"]

SCHEME_NUMBERS: dict[str, int] = {"bfv": 1, "ckks": 2, "bgv": 3}
"""SEAL's numbers of the schemes, as they enter the parms_id."""

MAX_BITS_TC128 = {1024: 27, 2048: 54, 4096: 109, 8192: 218, 16384: 438, 32768: 881}
"""SEAL's table for 128-bit classical security with ternary secrets: most bits of the product of ALL primes."""
TOY_DEGREES = (64, 128, 256, 512)
"""Ring degrees that SEAL takes and that have no security at all: for sets that say so, which tests and experiments make in moments."""

MODULUS_BITS_MAX = 60
"""SEAL's limit on one prime."""
PLAIN_BITS_MAX = 60
"""SEAL's limit on the plain modulus."""
NOISE_BITS_MAX = 50
"""Largest log2 of a noise bound."""
PRIMES_MAX = 64
"""SEAL's limit on the number of primes."""


@dataclass(frozen=True)
class ParameterSet:
    """SEAL encryption parameters. Construction validates; every instance is usable.

    ``coeff_modulus``: the primes q_0, ..., q_{L-1}, P in SEAL's order; the last is the special prime of key
    switching, and no ciphertext has it. ``plain_modulus``: t of BFV and BGV, 0 for CKKS. ``scale_bits``: log2 of the
    usual CKKS scale, 0 for BFV and BGV. ``noise_bits``: b of the flooding policy of CKKS keys that ask for no other
    (:class:`keyquorum.schemes.seal.policy.FloodPolicy`); 0: computed (:func:`keyquorum.schemes.seal.noise.default_bits`). ``security``: ``tc128``,
    checked against SEAL's table, or ``none``, which must be given explicitly and makes :func:`load` warn. ``source``: the origin of the set.

    Raises ParameterError naming the set, the field and the cure.
    """

    name: str
    scheme: Scheme
    ring_degree: int
    coeff_modulus: tuple[int, ...]
    plain_modulus: int = 0
    scale_bits: int = 0
    security: Security = "tc128"
    source: str = ""
    noise_bits: int = 0

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise self._refuse(problem)

    # Derived

    @property
    def levels(self) -> int:
        """L: number of primes of a fresh ciphertext, also the number of digits of a key-switching key."""
        return len(self.coeff_modulus) - 1

    @property
    def special_prime(self) -> int:
        """P, the last prime."""
        return self.coeff_modulus[-1]

    @property
    def scale(self) -> float:
        """The usual CKKS scale; 1.0 for BFV and BGV."""
        return 2.0**self.scale_bits

    @property
    def slots(self) -> int:
        """Values in one ciphertext: N/2 complex numbers for CKKS, N integers modulo t for BFV and BGV."""
        return self.ring_degree // 2 if self.scheme == "ckks" else self.ring_degree

    @property
    def total_bits(self) -> int:
        """Bits of the product of all primes."""
        return prod(self.coeff_modulus).bit_length()

    @property
    def noise_factor(self) -> int:
        """f of a key's noise f·e: t for BGV, else 1."""
        return self.plain_modulus if self.scheme == "bgv" else 1

    def moduli(self, count: int) -> tuple[int, ...]:
        """The first ``count`` primes: the level with ``count`` primes, the key level for all of them."""
        if not 1 <= count <= len(self.coeff_modulus):
            raise ParameterError(f"{self.name}: no level has {count} primes: choose 1 to {len(self.coeff_modulus)}")
        return self.coeff_modulus[:count]

    def parms_id(self, count: int) -> bytes:
        """SEAL's 32-byte identifier of the level with ``count`` primes: BLAKE2b-256 of scheme, N, primes and t."""
        primes = self.moduli(count)
        words = (SCHEME_NUMBERS[self.scheme], self.ring_degree, *primes, self.plain_modulus)
        return hashlib.blake2b(struct.pack(f"<{len(words)}Q", *words), digest_size=32).digest()

    @property
    def key_parms_id(self) -> bytes:
        """Identifier of the key level."""
        return self.parms_id(len(self.coeff_modulus))

    @cached_property
    def _level_by_id(self) -> dict[bytes, int]:
        return {self.parms_id(count): count for count in range(1, len(self.coeff_modulus) + 1)}

    def primes_of(self, parms_id: bytes) -> int | None:
        """Number of primes of the level with this identifier; None if it is of other parameters."""
        return self._level_by_id.get(parms_id)

    def to_toml(self) -> str:
        """The set as TOML, which :func:`load` reads."""
        lines = []
        for key, value in asdict(self).items():
            if key == "coeff_modulus":
                lines.append("coeff_modulus = [\n" + "".join(f"    {q},\n" for q in value) + "]")
            elif isinstance(value, str):
                escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                lines.append(f'{key} = "{escaped}"')
            else:
                lines.append(f"{key} = {value}")
        return "\n".join(lines) + "\n"

    # Validation

    def _refuse(self, what: str) -> ParameterError:
        return ParameterError(f"parameter set {self.name!r}: {what}")

    def _problems(self) -> Iterator[str]:
        """What is wrong, each with its cure in one line. What cannot be judged because of an earlier problem is left out."""
        found = list(self._wrong_types())
        yield from found
        if found:
            return
        if self.ring_degree not in MAX_BITS_TC128 and (self.security != "none" or self.ring_degree not in TOY_DEGREES):
            choices = ", ".join(map(str, MAX_BITS_TC128))
            yield f"ring_degree {self.ring_degree} is not supported: choose one of {choices}"
            return
        yield from self._wrong_primes()
        yield from self._wrong_ckks() if self.scheme == "ckks" else self._wrong_plain_modulus()
        yield from self._wrong_security()

    def _wrong_types(self) -> Iterator[str]:
        kinds: dict[str, type] = {
            "name": str,
            "scheme": str,
            "ring_degree": int,
            "coeff_modulus": tuple,
            "plain_modulus": int,
            "scale_bits": int,
            "security": str,
            "source": str,
            "noise_bits": int,
        }
        for field, kind in kinds.items():
            value = getattr(self, field)
            if not isinstance(value, kind) or isinstance(value, bool):
                yield f"{field} is a {type(value).__name__}: give a {kind.__name__}{' (in TOML a list)' if kind is tuple else ''}"
        if not self.name:
            yield "it has no name: give it one"
        if isinstance(self.coeff_modulus, tuple) and not all(isinstance(q, int) and not isinstance(q, bool) for q in self.coeff_modulus):
            yield "coeff_modulus must be a list of integers: spell the primes out"
        for field, known in (("scheme", get_args(Scheme)), ("security", get_args(Security))):
            if isinstance(getattr(self, field), str) and getattr(self, field) not in known:
                yield f"{field} {getattr(self, field)!r} is unknown: choose {' or '.join(known)}"

    def _wrong_primes(self) -> Iterator[str]:
        primes, n = self.coeff_modulus, self.ring_degree
        if not 2 <= len(primes) <= PRIMES_MAX:
            yield f"coeff_modulus has {len(primes)} primes: give 2 to {PRIMES_MAX}, the special prime last"
        for i, q in enumerate(primes):
            if not 2 <= q < 1 << MODULUS_BITS_MAX:
                yield f"coeff_modulus[{i}] = {q} does not fit SEAL's {MODULUS_BITS_MAX} bits: take a smaller prime"
            elif not is_prime(q):
                yield f"coeff_modulus[{i}] = {q} is not prime: take one of seal.CoeffModulus.Create({n}, bits)"
            elif q % (2 * n) != 1:
                yield f"coeff_modulus[{i}] = {q} is not 1 mod 2N = {2 * n}: the NTT needs that, take another"
            if q in primes[:i]:
                yield f"coeff_modulus[{i}] = {q} is there twice: all primes must differ"
        widest = max((q.bit_length() for q in primes), default=0)
        if primes and primes[-1].bit_length() < widest:
            yield (
                f"the special prime {primes[-1]} (last of coeff_modulus) has fewer bits than the widest prime "
                f"({widest}): "
                "put the widest last, or key switching adds too much noise"
            )

    def _wrong_ckks(self) -> Iterator[str]:
        if self.plain_modulus != 0:
            yield f"plain_modulus is {self.plain_modulus}, but CKKS has none: leave it out"
        most = prod(self.coeff_modulus[:-1]).bit_length() - 1
        if not 1 <= self.scale_bits < most:
            yield f"scale_bits {self.scale_bits} does not fit the ciphertext modulus: choose 1 to {most - 1}"
        if not 0 <= self.noise_bits <= NOISE_BITS_MAX:
            yield f"noise_bits {self.noise_bits}: choose 1 to {NOISE_BITS_MAX}, or leave it out"

    def _wrong_plain_modulus(self) -> Iterator[str]:
        t, n = self.plain_modulus, self.ring_degree
        if self.noise_bits != 0:
            yield f"noise_bits is {self.noise_bits}, but only CKKS results are flooded: leave it out"
        if self.scale_bits != 0:
            yield f"scale_bits is {self.scale_bits}, but only CKKS has a scale: leave it out"
        if not 2 <= t < 1 << PLAIN_BITS_MAX or not is_prime(t):
            yield f"plain_modulus {t} is not a prime of at most {PLAIN_BITS_MAX} bits, and the parties compute in the field of messages: take 65537, say"
        elif t % (2 * n) != 1:
            yield f"plain_modulus {t} is not 1 mod 2N = {2 * n}: batching needs that, and values are encoded into slots: take {slots_prime(n, t)}"
        smallest = min(self.coeff_modulus, default=0)
        if t >= smallest:
            yield f"plain_modulus {t} is not below every prime of coeff_modulus (least {smallest}): take a smaller one"

    def _wrong_security(self) -> Iterator[str]:
        most = most_bits(self.ring_degree)
        if self.security == "tc128" and self.total_bits > most:
            yield (
                f"coeff_modulus has {self.total_bits} bits, 128-bit security allows {most} at ring_degree "
                f"{self.ring_degree}: "
                'take smaller primes or a larger ring, or, for experiments only, say security = "none"'
            )


def most_bits(ring_degree: int) -> int:
    """Bits of all primes together that 128-bit security allows; 0 for the degrees of toys."""
    return MAX_BITS_TC128.get(ring_degree, 0)


def slots_prime(ring_degree: int, least: int) -> int:
    """The least prime from ``least`` on that is 1 mod 2N: a plain modulus with N slots."""
    step = 2 * ring_degree
    candidate = -(-(max(least, 2) - 1) // step) * step + 1
    while not is_prime(candidate):
        candidate += step
    return candidate


_FIELDS = frozenset(ParameterSet.__dataclass_fields__)


def from_toml(text: str, origin: str) -> ParameterSet:
    """Parses and validates one set; ``origin`` is named in errors."""
    data, wrong = _fields(text, origin)
    for problem in wrong:
        raise ParameterError(problem)
    return ParameterSet(**data)


def problems(text: str, origin: str) -> list[str]:
    """Everything that is wrong with a set in TOML, a line each, with the cure; empty where nothing is."""
    data, wrong = _fields(text, origin)
    if not wrong:
        unchecked = object.__new__(ParameterSet)
        for field in fields(ParameterSet):
            object.__setattr__(unchecked, field.name, data.get(field.name, field.default))
        wrong = [f"{origin}: {problem}" for problem in unchecked._problems()]
    return wrong


def _fields(text: str, origin: str) -> tuple[dict[str, Any], list[str]]:
    """The fields of a set, and what is wrong with their names."""
    try:
        data = toml_loads(text)
    except ValueError as error:
        return {}, [f"{origin} is no valid TOML: {error}"]
    wrong = [f"{origin}: unknown field {name!r}: the fields are {', '.join(sorted(_FIELDS))}" for name in sorted(set(data) - _FIELDS)]
    missing = sorted({"name", "scheme", "ring_degree", "coeff_modulus", "security"} - set(data))
    wrong += [f"{origin}: field {name!r} is missing: add it" for name in missing]
    if isinstance(data.get("coeff_modulus"), list):
        data["coeff_modulus"] = tuple(data["coeff_modulus"])
    return data, wrong


def _shipped() -> Any:
    """The folder of shipped sets inside the package: links to ``params/`` in a checkout, copies in a wheel."""
    return resources.files(__package__) / "params"


@cache
def shipped_schemes() -> dict[str, str]:
    """The field ``scheme`` of the shipped sets of all schemes, by name, sorted."""
    files = sorted((entry for entry in _shipped().iterdir() if entry.name.endswith(".toml")), key=lambda entry: str(entry.name))
    return {entry.name.removesuffix(".toml"): str(toml_loads(entry.read_text(encoding="utf-8")).get("scheme")) for entry in files}


def list_parameter_sets() -> list[str]:
    """Names of the shipped sets of SEAL's schemes, sorted."""
    return [name for name, scheme in shipped_schemes().items() if scheme in SCHEME_NUMBERS]


def load(name_or_path: str | Path, warn: bool = True) -> ParameterSet:
    """A shipped set by name, or a set from a TOML file (a path, or any text that ends in ``.toml``), or the lines of such a file, as in a job.

    Warns with SecurityWarning when the set has ``security = "none"``, unless ``warn`` is False, which is for inspection only.
    Raises UnknownParameterSetError, or ParameterError from validation.
    """
    text = str(name_or_path)
    if "\n" in text:
        parameters = from_toml(text, "the parameter set of the job")
    elif isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text:
        path = Path(name_or_path)
        try:
            content = read_text(path)
        except (OSError, ValueError) as error:
            raise UnknownParameterSetError(f"parameter file {path} cannot be read: {error}") from error
        parameters = from_toml(content, str(path))
    else:
        names = list_parameter_sets()
        if text not in names:
            raise UnknownParameterSetError(f"there is no parameter set {text!r}: choose one of {', '.join(names)}, or a .toml file")
        parameters = from_toml((_shipped() / f"{text}.toml").read_text(encoding="utf-8"), text)
        if parameters.name != text:
            raise ParameterError(f"parameter set {text!r} calls itself {parameters.name!r}: rename one of them")
    if warn and parameters.security == "none":
        warnings.warn(
            f'parameter set {parameters.name!r} has NO claimed security (security = "none"): for experiments only',
            SecurityWarning,
            stacklevel=2,
        )
    return parameters
