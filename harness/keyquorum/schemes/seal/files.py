"""Stock SEAL on files, under a joint key: encrypt, evaluate, decode. Needs the public files of the key, and no party."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keyquorum.fhe import noise_bound, seal
from keyquorum.fhe._stream import open_object
from keyquorum.fhe.keys import galois_element
from keyquorum.fhe.noise_bgv import BgvNoise
from keyquorum.fhe.values import Numbers, as_numbers
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError
from keyquorum.model.outputs import save_file
from keyquorum.schemes.base import EncryptedFile
from keyquorum.schemes.key_folder import load_public_file
from keyquorum.schemes.keys import Plain

from .key import SealKeyInfo
from .noise import Noise, evaluated, fresh, rotations
from .precision import Precision, expectation, key_precision, noise_estimate
from .receipts import check_receipt, noise_after, write_receipt
from .recognise import ciphertext_of, plaintext_of, refuse_others

AnyNoise = Noise | noise_bound.NoiseEstimate | BgvNoise


@dataclass(frozen=True)
class CiphertextFile(EncryptedFile):
    """A ciphertext that was written, with its receipt ``<path>.json``: its key, its bytes, and the noise that follows from how it was made
    (None: an input had no receipt)."""

    info: SealKeyInfo
    noise: AnyNoise | None

    @property
    def budget(self) -> float | None:
        """BFV and BGV: bits of the noise budget that are left when it is decrypted; below 0: the result may be wrong. None if not known."""
        if self.noise is None or isinstance(self.noise, Noise):
            return None
        return noise_bound.final_budget(self.info.parameters, self.noise)

    @property
    def precision(self) -> Precision | None:
        """CKKS: the error that joint decryption adds to a value, at the scale of the ciphertext."""
        if self.info.parameters.scheme != "ckks":
            return None
        return key_precision(self.info, ciphertext_of(self.info.parameters, self.data, str(self.path)).scale)

    def stated(self) -> list[str]:
        """Lines for people: what joint decryption will give."""
        lines = []
        if self.budget is not None:
            lines.append(f"noise budget left when decrypted: {max(self.budget, 0):.0f} bits")
        if self.info.parameters.scheme == "ckks":
            lines.append(expectation(self.info, ciphertext_of(self.info.parameters, self.data, str(self.path)).scale))
        if isinstance(self.noise, Noise):
            lines.append(noise_estimate(self.info, self.noise))
        return lines

    def warnings(self) -> list[str]:
        """See :class:`.EncryptedFile`."""
        used_up = self.budget is not None and self.budget < 0
        return ["the noise budget is used up: decryption may be wrong, and will be refused"] if used_up else []

    def described(self) -> Plain:
        """Plain data."""
        error = self.precision
        return {**super().described(), "noise_budget": self.budget, "largest_error": None if error is None else error.largest}


def encrypt_to(folder: Path, info: SealKeyInfo, values: Any, output: Path, bound: float | None = None) -> CiphertextFile:
    """Encrypts numbers under the public key in ``folder`` and writes SEAL's bytes and a receipt.

    ``values``: at most N integers modulo t (BFV, BGV), at most N/2 reals or complex numbers (CKKS). ``bound``: CKKS, on their absolute values, for
    estimates of noise (default: 1, or the next power of two). Raises ValuesError, ParameterError, KeyFileError, OSError."""
    if bound is not None and info.parameters.scheme != "ckks":
        raise ParameterError(f"--bound is for CKKS, and this is a key of {info.parameters.scheme.upper()}: leave it out")
    public = load_public_file(folder, info, "public.key")
    numbers = as_numbers(values)
    data = seal.encrypt(info.parameters, public, numbers)
    noise: AnyNoise | None = noise_bound.fresh(info.parameters)
    if info.parameters.scheme == "ckks":
        noise = fresh(info.parameters, hashlib.sha256(data).hexdigest(), _value_bound(numbers, bound))
    return _written(CiphertextFile(output, data, info, noise))


def _value_bound(numbers: Any, bound: float | None) -> float:
    """The stated bound, checked; without one 1, or the next power of two above the values."""
    largest = float(np.abs(numbers).max()) if np.size(numbers) else 0.0
    if bound is None:
        return 2.0 ** max(0, math.ceil(math.log2(largest))) if largest > 1 else 1.0
    if not largest <= bound < math.inf:
        raise ParameterError(f"the values reach beyond --bound {bound:g}: state a bound that holds for all that you encrypt")
    return bound


def evaluate_to(folder: Path, info: SealKeyInfo, operation: str, inputs: Sequence[Path], output: Path, step: int = 1) -> CiphertextFile:
    """Computes one of :data:`keyquorum.fhe.seal.OPERATIONS` on one or two ciphertext files, and writes SEAL's bytes and a receipt.

    ``step``: of rotate, to the left. Raises CiphertextError, KeyFileError (the key lacks what the operation takes), SealOperationError, OSError."""
    data, operands = [], []
    for path in inputs:
        if not path.exists():
            raise ParameterError(f"{path}: no such file")
        data.append(path.read_bytes())
        refuse_others(info.parameters, data[-1], str(path))
        open_object(data[-1], str(path))
        noted = check_receipt(path, data[-1], info)
        if info.parameters.scheme == "ckks":
            operands.append(
                (ciphertext_of(info.parameters, data[-1], str(path)), noted or fresh(info.parameters, hashlib.sha256(data[-1]).hexdigest()))
            )
    _check_keys(info, operation, step)

    def file(name: str) -> bytes | None:
        return load_public_file(folder, info, name) if name in info.files else None

    result = seal.evaluate(info.parameters, operation, data, file("relin.key"), file("galois.key"), step)
    switches = len(rotations(info.parameters, step, info.galois_elements)) if operation == "rotate" else 1
    noise: AnyNoise | None = noise_after(info, operation, list(zip(inputs, data, strict=True)), result, switches)
    if operands:
        noise = evaluated(info.parameters, operation, operands, hashlib.sha256(result).hexdigest(), step, info.galois_elements)
    return _written(CiphertextFile(output, result, info, noise))


def _check_keys(info: SealKeyInfo, operation: str, step: int) -> None:
    """Refuses an operation for which the joint key has no key-switching key."""
    name = info.parameters.name
    if operation in ("multiply", "square") and not info.relin:
        raise KeyFileError(
            f"key {info.key_id} has no relinearisation key, which {operation} takes: make a key with keyquorum keygen -p {name} --relin"
        )
    if operation == "rotate" and step == 0:
        raise ParameterError("rotate by step 0: nothing would move: choose another --step; the operation swap conjugates, or swaps the rows")
    if operation not in ("rotate", "swap"):
        return
    n = info.parameters.ring_degree
    wanted = rotations(info.parameters, step, info.galois_elements) if operation == "rotate" else [galois_element(0, n)]
    chosen = step if operation == "rotate" else 0
    if galois_element(chosen, n) not in info.galois_elements and not set(wanted) <= set(info.galois_elements):
        what = f"{operation} by {step}" if operation == "rotate" else operation
        raise KeyFileError(f"key {info.key_id} has no Galois key for {what}: make a key with keyquorum keygen -p {name} -s {chosen}")


def _written(made: CiphertextFile) -> CiphertextFile:
    save_file(made.path, made.data)
    write_receipt(made.path, made.data, made.info, made.noise)
    return made


def decode_file(info: SealKeyInfo, path: Path, count: int = 0) -> tuple[Numbers, Precision | None]:
    """The first ``count`` values (0: all) of a plaintext that the receiver of a decryption wrote: int64 centred modulo t (BFV, BGV), float64 (CKKS);
    and for CKKS the error that the flooding added. Raises CiphertextError, ParameterError."""
    if count < 0:
        raise ParameterError(f"{count} values: choose how many to print, or 0 for all")
    if not path.exists():
        raise CiphertextError(f"{path}: no such file: keyquorum decrypt writes it at the receiver, as CIPHERTEXT.plain")
    data = path.read_bytes()
    plaintext = plaintext_of(info.parameters, data, str(path))
    values = seal.decode(info.parameters, data)
    precision = key_precision(info, plaintext.scale) if info.parameters.scheme == "ckks" else None
    return (values[:count] if count else values), precision


__all__ = ["CiphertextFile", "decode_file", "encrypt_to", "evaluate_to"]
