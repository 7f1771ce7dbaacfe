"""Types of seal-python's objects, as far as KeyQuorum uses them: the library itself has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .values import Numbers

LevelId = Sequence[int]
"""SEAL's ``parms_id`` of a level."""


class SealPlaintext(Protocol):
    """``seal.Plaintext``."""

    def to_bytes(self) -> bytes:
        """SEAL's bytes."""


class SealCiphertext(Protocol):
    """``seal.Ciphertext``."""

    def scale(self, value: float = ..., /) -> float:
        """The scale, which an argument sets first."""

    def parms_id(self) -> LevelId:
        """The level."""

    def to_string(self) -> bytes:
        """SEAL's bytes."""


class SealKeys(Protocol):
    """``seal.PublicKey``, ``seal.RelinKeys`` or ``seal.GaloisKeys``."""

    def to_bytes(self) -> bytes:
        """SEAL's bytes."""


class SealLevel(Protocol):
    """``seal.ContextData``: one level of a context."""

    def parms_id(self) -> LevelId:
        """The level's identifier."""

    def chain_index(self) -> int:
        """Number of the level; 0 is the last one."""

    def next_context_data(self) -> SealLevel | None:
        """The next lower level; None after the last one."""


class SealContext(Protocol):
    """``seal.SEALContext``."""

    def parameters_set(self) -> bool:
        """Whether the parameters are valid."""

    def parameter_error_message(self) -> str:
        """The reason why they are not."""

    def first_context_data(self) -> SealLevel:
        """The highest data level."""

    def last_parms_id(self) -> LevelId:
        """The last level."""

    def get_context_data(self, parms_id: LevelId, /) -> SealLevel:
        """The level of an identifier."""

    def from_plain_str(self, data: bytes, /) -> SealPlaintext:
        """Reads a plaintext."""

    def from_cipher_str(self, data: bytes, /) -> SealCiphertext:
        """Reads a ciphertext."""

    def from_public_str(self, data: bytes, /) -> SealKeys:
        """Reads a public key."""

    def from_relin_str(self, data: bytes, /) -> SealKeys:
        """Reads relinearisation keys."""

    def from_galois_str(self, data: bytes, /) -> SealKeys:
        """Reads Galois keys."""


class SealParameters(Protocol):
    """``seal.EncryptionParameters``."""

    def set_poly_modulus_degree(self, degree: int, /) -> None:
        """Sets the ring degree."""

    def set_coeff_modulus(self, primes: Sequence[object], /) -> None:
        """Sets the primes."""

    def set_plain_modulus(self, modulus: int, /) -> None:
        """Sets t."""


class SealEncoder(Protocol):
    """``seal.CKKSEncoder``."""

    def encode(self, values: NDArray[np.float64], scale: float, /) -> SealPlaintext:
        """Encodes reals, at the highest level."""

    def encode_complex(self, values: NDArray[np.complex128], scale: float, /) -> SealPlaintext:
        """Encodes complex numbers, at the highest level."""

    def decode(self, plain: SealPlaintext, /) -> Numbers:
        """The real parts of the slots."""

    def decode_complex(self, plain: SealPlaintext, /) -> Numbers:
        """The slots."""


class SealEvaluator(Protocol):
    """``seal.Evaluator``. Each operation makes a new ciphertext, except those whose names end in ``_inplace``."""

    def add(self, a: SealCiphertext, b: SealCiphertext, /) -> SealCiphertext: ...
    def add_many(self, terms: Sequence[SealCiphertext], /) -> SealCiphertext: ...
    def add_plain(self, a: SealCiphertext, b: SealPlaintext, /) -> SealCiphertext: ...
    def add_plain_inplace(self, a: SealCiphertext, b: SealPlaintext, /) -> None: ...
    def sub(self, a: SealCiphertext, b: SealCiphertext, /) -> SealCiphertext: ...
    def negate(self, a: SealCiphertext, /) -> SealCiphertext: ...
    def multiply(self, a: SealCiphertext, b: SealCiphertext, /) -> SealCiphertext: ...
    def multiply_plain(self, a: SealCiphertext, b: SealPlaintext, /) -> SealCiphertext: ...
    def square(self, a: SealCiphertext, /) -> SealCiphertext: ...
    def relinearize(self, a: SealCiphertext, keys: SealKeys, /) -> SealCiphertext: ...
    def rescale_to_next(self, a: SealCiphertext, /) -> SealCiphertext: ...
    def mod_switch_to(self, a: SealCiphertext, level: LevelId, /) -> SealCiphertext: ...
    def mod_switch_to_inplace(self, a: SealCiphertext | SealPlaintext, level: LevelId, /) -> None: ...
    def mod_switch_to_next(self, a: SealCiphertext, /) -> SealCiphertext: ...
    def rotate_vector(self, a: SealCiphertext, step: int, keys: SealKeys, /) -> SealCiphertext: ...
    def rotate_rows(self, a: SealCiphertext, step: int, keys: SealKeys, /) -> SealCiphertext: ...
    def complex_conjugate(self, a: SealCiphertext, keys: SealKeys, /) -> SealCiphertext: ...
    def rotate_columns(self, a: SealCiphertext, keys: SealKeys, /) -> SealCiphertext: ...
