"""What a file is that was given in the place of another: errors name it, and the command that takes it."""

from __future__ import annotations

from contextlib import suppress

from keyquorum.fhe.errors import SealFormatError
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import (
    Ciphertext,
    Plaintext,
    read_ciphertext,
    read_plaintext,
    read_public_key,
    read_switch_keys,
)
from keyquorum.model.errors import CiphertextError
from keyquorum.schemes import recognise


def ciphertext_of(parameters: ParameterSet, data: bytes, what: str) -> Ciphertext:
    """A SEAL ciphertext of a parameter set; ``what`` names it in errors. Raises CiphertextError, which says what else the bytes are, or
    SealFormatError if they are nothing that is known."""
    try:
        return read_ciphertext(parameters, data, what)
    except SealFormatError:
        refuse_others(parameters, data, what)
        raise


def refuse_others(parameters: ParameterSet, data: bytes, what: str) -> None:
    """Raises CiphertextError, which says what the bytes are, if they are known to be something else than a SEAL ciphertext."""
    with suppress(SealFormatError):
        read_ciphertext(parameters, data, what)
        return
    if _is_plaintext(parameters, data):
        raise CiphertextError(f"{what} is a SEAL plaintext, not a ciphertext: it is decrypted already, and keyquorum decode prints its numbers")
    other = _other(parameters, data)
    if other:
        raise CiphertextError(f"{what} is {other}, not a SEAL ciphertext: name a file that keyquorum encrypt or eval wrote")


def plaintext_of(parameters: ParameterSet, data: bytes, what: str) -> Plaintext:
    """A SEAL plaintext of a parameter set; ``what`` names it in errors. Raises CiphertextError if it is a ciphertext or a key, or
    SealFormatError if the bytes are nothing that is known."""
    try:
        return read_plaintext(parameters, data, what)
    except SealFormatError:
        with suppress(SealFormatError):
            read_ciphertext(parameters, data, what)
            raise CiphertextError(f"{what} is a SEAL ciphertext, not a plaintext: decrypt it first, with keyquorum decrypt") from None
        other = _other(parameters, data)
        if other:
            raise CiphertextError(f"{what} is {other}, not a SEAL plaintext: name a file that keyquorum decrypt wrote") from None
        raise


def _is_plaintext(parameters: ParameterSet, data: bytes) -> bool:
    with suppress(SealFormatError):
        read_plaintext(parameters, data)
        return True
    return False


def _other(parameters: ParameterSet, data: bytes) -> str:
    """What the bytes are, if neither ciphertext nor plaintext; empty if that is not known."""
    other = recognise(data)
    if other is not None:
        return f"a file of {other.title} ciphertexts"
    if data.startswith(b"KQSHARE"):
        return "a file of shares"
    with suppress(SealFormatError):
        read_public_key(parameters, data)
        return "a SEAL public key"
    with suppress(SealFormatError):
        read_switch_keys(parameters, data)
        return "a file of SEAL relinearisation or Galois keys"
    if data[:1] in b"{[" and data[:1]:
        return "a text (JSON)"
    return ""


__all__ = ["ciphertext_of", "plaintext_of", "refuse_others"]
