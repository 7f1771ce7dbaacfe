"""Stock SEAL, through seal-python, on files of SEAL's bytes: encode, encrypt, a few operations, decode.

For demos and the command line; applications call SEAL itself. This module uses no secret key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from types import ModuleType
from typing import TypeVar

import numpy as np

from ._stream import labelled
from .errors import SealMissingError, SealOperationError
from .parameters import ParameterSet
from .seal_format import CIPHERTEXT_HEADERS
from .seal_types import LevelId, SealCiphertext, SealContext, SealEncoder, SealEvaluator, SealKeys, SealLevel, SealParameters, SealPlaintext
from .values import Numbers, fit_values, log2_bound

OPERATIONS = (
    "add", "subtract", "multiply", "square", "negate", "rotate", "swap", "rescale", "next-level", "last-level",
)  # fmt: skip
"""Operations of :func:`evaluate`. ``swap``: complex conjugation (CKKS) or exchange of the rows (BFV, BGV)."""

T = TypeVar("T")


def require_seal() -> ModuleType:
    """The module of seal-python. Raises SealMissingError."""
    try:
        return import_module("seal")
    except ImportError as error:
        raise SealMissingError(f"seal-python is not installed ({error}): run `pip install seal-python`") from error


def _call(what: str, function: Callable[..., T], *args: object) -> T:
    """Calls SEAL; its exceptions (ValueError, RuntimeError, ...) become SealOperationError."""
    try:
        return function(*args)
    except (ValueError, RuntimeError, TypeError, IndexError, OverflowError) as error:
        reason = str(error).splitlines()[0].strip("'") if str(error) else repr(error)
        if "scale out of bounds" in reason:
            reason += ": this level has too few bits left, rescale earlier or use a longer chain"
        raise SealOperationError(f"SEAL refuses {what}: {reason}") from error


def _encryption_parameters(parameters: ParameterSet) -> SealParameters:
    seal = require_seal()
    chosen: SealParameters = seal.EncryptionParameters(getattr(seal.scheme_type, parameters.scheme))
    chosen.set_poly_modulus_degree(parameters.ring_degree)
    chosen.set_coeff_modulus([seal.Modulus(q) for q in parameters.coeff_modulus])
    if parameters.scheme != "ckks":
        chosen.set_plain_modulus(parameters.plain_modulus)
    return chosen


def _saved(ciphertext: SealCiphertext) -> bytes:
    """SEAL's bytes of a ciphertext, uncompressed, in a version that other releases of SEAL load too."""
    return labelled(ciphertext.to_string(), CIPHERTEXT_HEADERS)


@lru_cache(maxsize=8)
def context(parameters: ParameterSet) -> SealContext:
    """SEAL's context of a parameter set (cached). Raises SealMissingError, SealOperationError."""
    seal = require_seal()
    chosen = _encryption_parameters(parameters)
    result: SealContext = seal.SEALContext(chosen, True, getattr(seal.sec_level_type, parameters.security))
    if not result.parameters_set():
        raise SealOperationError(f"SEAL refuses parameter set {parameters.name}: {result.parameter_error_message()}")
    return result


def encode(parameters: ParameterSet, values: object, scale: float | None = None, primes: int | None = None) -> SealPlaintext:
    """A SEAL Plaintext. CKKS: at most N/2 reals or complex numbers, at ``scale`` (default: that of the set) and the level of so many ``primes``
    (default: all data primes). BFV and BGV: at most N integers modulo t, which have no level.

    Raises ValuesError, SealOperationError.
    """
    seal, ctx = require_seal(), context(parameters)
    array = fit_values(parameters, values)
    if parameters.scheme != "ckks":
        plain: SealPlaintext = _call("these integers", seal.BatchEncoder(ctx).encode, array)
        return plain
    used = parameters.scale if scale is None else scale
    encoder: SealEncoder = seal.CKKSEncoder(ctx)
    what = "these values" if array.dtype.kind == "c" else f"these values (up to 2^{log2_bound(array):.1f}) at scale 2^{math.log2(used):.1f}"
    plain = _call(what, encoder.encode_complex if array.dtype.kind == "c" else encoder.encode, array, used)
    if primes is not None:
        _call("this level", seal.Evaluator(ctx).mod_switch_to_inplace, plain, level_id(parameters, primes))
    return plain


def decode(parameters: ParameterSet, plaintext: bytes, complex_values: bool = False) -> Numbers:
    """The values of SEAL's plaintext bytes: float64 or complex128 [N/2] (CKKS), int64 [N] centred modulo t (BFV, BGV).

    Raises SealOperationError.
    """
    seal, ctx = require_seal(), context(parameters)
    plain = _call("this plaintext", ctx.from_plain_str, plaintext)
    if parameters.scheme == "ckks":
        encoder: SealEncoder = seal.CKKSEncoder(ctx)
        return np.asarray(_call("to decode", encoder.decode_complex if complex_values else encoder.decode, plain))
    return np.asarray(_call("to decode", seal.BatchEncoder(ctx).decode, plain))


def encrypt(parameters: ParameterSet, public_key: bytes, values: object, scale: float | None = None, primes: int | None = None) -> bytes:
    """SEAL's bytes of a fresh encryption of values, see :func:`encode`. CKKS encrypts at the level of the plaintext. Raises ValuesError,
    SealOperationError."""
    seal, ctx = require_seal(), context(parameters)
    plain = encode(parameters, values, scale, primes)
    encryptor = seal.Encryptor(ctx, _call("this public key", ctx.from_public_str, public_key))
    return _saved(_call("to encrypt", encryptor.encrypt, plain))


def level_id(parameters: ParameterSet, primes: int) -> LevelId:
    """SEAL's identifier of the level of so many primes, from 1 to ``parameters.levels``. Raises SealOperationError."""
    data: SealLevel | None = context(parameters).first_context_data()
    while data is not None and data.chain_index() != primes - 1:
        data = data.next_context_data()
    if data is None:
        raise SealOperationError(f"{parameters.name} has no level of {primes} primes: name 1 to {parameters.levels}")
    return data.parms_id()


class Evaluator:
    """A few operations of stock SEAL on ciphertext bytes.

    Products are relinearised, and rescaled for CKKS unless ``rescale`` is False. Operands at different levels are
    brought to the lower one. Every method returns SEAL's bytes and raises SealOperationError with the operation's
    name.
    """

    def __init__(self, parameters: ParameterSet, relin_keys: bytes | None = None, galois_keys: bytes | None = None) -> None:
        seal = require_seal()
        self.parameters = parameters
        self._context = context(parameters)
        self._evaluator: SealEvaluator = seal.Evaluator(self._context)
        self._relin_keys = relin_keys
        self._galois_keys = galois_keys

    # Helpers

    def _load(self, data: bytes, what: str) -> SealCiphertext:
        return _call(what, self._context.from_cipher_str, data)

    def _level(self, ciphertext: SealCiphertext) -> int:
        return int(self._context.get_context_data(ciphertext.parms_id()).chain_index())

    def _pair(self, a: bytes, b: bytes, operation: str) -> tuple[SealCiphertext, SealCiphertext]:
        x, y = self._load(a, f"operand 1 of {operation}"), self._load(b, f"operand 2 of {operation}")
        if self._level(x) > self._level(y):
            x = _call(operation, self._evaluator.mod_switch_to, x, y.parms_id())
        elif self._level(y) > self._level(x):
            y = _call(operation, self._evaluator.mod_switch_to, y, x.parms_id())
        return x, y

    def _sum(self, a: bytes, b: bytes, operation: str, function: Callable[..., SealCiphertext]) -> bytes:
        x, y = self._pair(a, b, operation)
        if self.parameters.scheme == "ckks":
            if not math.isclose(x.scale(), y.scale(), rel_tol=2.0**-16):
                raise SealOperationError(
                    f"{operation}: the operands have scales 2^{math.log2(x.scale()):.3f} and "
                    f"2^{math.log2(y.scale()):.3f}: "
                    "rescale or encode them alike"
                )
            y.scale(x.scale())
        return _saved(_call(operation, function, x, y))

    @cached_property
    def _relin(self) -> SealKeys:
        if self._relin_keys is None:
            raise SealOperationError("products need relinearisation keys: give the file relin.key of the key")
        return _call("these relinearisation keys", self._context.from_relin_str, self._relin_keys)

    @cached_property
    def _galois(self) -> SealKeys:
        if self._galois_keys is None:
            raise SealOperationError("rotations need Galois keys: give the file galois.key of the key")
        return _call("these Galois keys", self._context.from_galois_str, self._galois_keys)

    def _product(self, product: SealCiphertext, operation: str, rescale: bool) -> bytes:
        result = _call(operation, self._evaluator.relinearize, product, self._relin)
        if self.parameters.scheme == "ckks" and rescale:
            result = self._rescaled(result, operation)
        return _saved(result)

    def _rescaled(self, ciphertext: SealCiphertext, operation: str) -> SealCiphertext:
        if self._level(ciphertext) == 0:
            raise SealOperationError(f"{operation}: the ciphertext is at the last level, nothing to rescale by: use a longer chain")
        return _call(operation, self._evaluator.rescale_to_next, ciphertext)

    # Operations

    def add(self, a: bytes, b: bytes) -> bytes:
        """a + b."""
        return self._sum(a, b, "add", self._evaluator.add)

    def subtract(self, a: bytes, b: bytes) -> bytes:
        """a - b."""
        return self._sum(a, b, "subtract", self._evaluator.sub)

    def negate(self, a: bytes) -> bytes:
        """-a."""
        return _saved(_call("negate", self._evaluator.negate, self._load(a, "operand of negate")))

    def multiply(self, a: bytes, b: bytes, rescale: bool = True) -> bytes:
        """a · b."""
        x, y = self._pair(a, b, "multiply")
        return self._product(_call("multiply", self._evaluator.multiply, x, y), "multiply", rescale)

    def square(self, a: bytes, rescale: bool = True) -> bytes:
        """a^2."""
        x = self._load(a, "operand of square")
        return self._product(_call("square", self._evaluator.square, x), "square", rescale)

    def rescale(self, a: bytes) -> bytes:
        """CKKS: divides the scale by the last prime and drops it."""
        if self.parameters.scheme != "ckks":
            raise SealOperationError(f"{self.parameters.scheme.upper()} has no rescaling: use next-level")
        return _saved(self._rescaled(self._load(a, "operand of rescale"), "rescale"))

    def rotate(self, a: bytes, step: int) -> bytes:
        """Rotates the slots to the left by ``step`` (each row, for BFV and BGV). The Galois keys must have this step."""
        x, keys = self._load(a, "operand of rotate"), self._galois
        ckks = self.parameters.scheme == "ckks"
        function = self._evaluator.rotate_vector if ckks else self._evaluator.rotate_rows
        return _saved(_call(f"to rotate by {step}", function, x, step, keys))

    def swap(self, a: bytes) -> bytes:
        """Complex conjugation (CKKS) or exchange of the two rows (BFV, BGV)."""
        x, keys = self._load(a, "operand of swap"), self._galois
        ckks = self.parameters.scheme == "ckks"
        function = self._evaluator.complex_conjugate if ckks else self._evaluator.rotate_columns
        return _saved(_call("swap", function, x, keys))

    def next_level(self, a: bytes) -> bytes:
        """Drops one prime; the message stays."""
        x = self._load(a, "operand of next-level")
        if self._level(x) == 0:
            raise SealOperationError("next-level: the ciphertext is at the last level already")
        return _saved(_call("next-level", self._evaluator.mod_switch_to_next, x))

    def last_level(self, a: bytes) -> bytes:
        """Drops all primes but q_0: the level of exact joint decryption, at which decryption costs least.

        CKKS: refuses a scale that does not fit q_0.
        """
        x = self._load(a, "operand of last-level")
        q = self.parameters.coeff_modulus[0]
        if self.parameters.scheme == "ckks" and x.scale() >= q / 2:
            raise SealOperationError(
                f"last-level: scale 2^{math.log2(x.scale()):.1f} does not fit the last prime of {q.bit_length()} bits: rescale first"
            )
        return _saved(_call("last-level", self._evaluator.mod_switch_to, x, self._context.last_parms_id()))


def evaluate(
    parameters: ParameterSet,
    operation: str,
    ciphertexts: Sequence[bytes],
    relin_keys: bytes | None = None,
    galois_keys: bytes | None = None,
    step: int | None = None,
    rescale: bool = True,
) -> bytes:
    """One of OPERATIONS by name, on SEAL's bytes. ``step``: for rotate. Raises SealOperationError."""
    if operation not in OPERATIONS:
        raise SealOperationError(f"unknown operation {operation!r}: choose one of {', '.join(OPERATIONS)}")
    wanted = 2 if operation in ("add", "subtract", "multiply") else 1
    if len(ciphertexts) != wanted:
        raise SealOperationError(f"{operation} takes {wanted} ciphertext{'s' * (wanted > 1)}, {len(ciphertexts)} given")
    evaluator = Evaluator(parameters, relin_keys, galois_keys)
    if operation == "rotate":
        if step is None:
            raise SealOperationError("rotate needs a step: say how far to the left")
        return evaluator.rotate(ciphertexts[0], step)
    if operation == "multiply":
        return evaluator.multiply(ciphertexts[0], ciphertexts[1], rescale)
    if operation == "square":
        return evaluator.square(ciphertexts[0], rescale)
    method: Callable[..., bytes] = getattr(evaluator, operation.replace("-", "_"))
    return method(*ciphertexts)
