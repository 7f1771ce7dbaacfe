"""Errors of the SEAL bridge: one line each, with the cause and the remedy."""

from __future__ import annotations

from keyquorum.model.errors import CiphertextError, KeyFileError, KeyQuorumError, ParameterError


class SecurityWarning(UserWarning):
    """A parameter set without 128-bit security is in use."""


class UnknownParameterSetError(ParameterError):
    """No shipped parameter set has this name, and no file is there."""


class SealFormatError(KeyQuorumError):
    """Bytes that are no SEAL object of the expected kind and parameters."""


class TruncatedError(SealFormatError):
    """The bytes end early, continue after the object, or contradict the lengths in their headers."""


class HeaderError(SealFormatError):
    """No SEAL header, or one of a version or compression mode that is not read here."""


class DecompressionError(SealFormatError):
    """A compressed payload that is damaged."""


class SeedError(SealFormatError):
    """A seed of a generator that is not read here; only SHAKE256 (type 2) is."""


class CoefficientRangeError(SealFormatError):
    """A coefficient that is not below its modulus."""


class WrongParametersError(SealFormatError):
    """The object belongs to other encryption parameters."""


class ShapeError(SealFormatError):
    """Stated dimensions that contradict the parameters."""


class CiphertextFormatError(SealFormatError, CiphertextError):
    """A ciphertext whose metadata contradict its scheme."""


class LevelError(CiphertextFormatError):
    """A ciphertext at the key level, which no ciphertext may have."""


class CiphertextSizeError(CiphertextFormatError):
    """A ciphertext that does not have two parts."""


class FormError(CiphertextFormatError):
    """Coefficient form where the scheme has NTT form, or the reverse."""


class ScaleError(CiphertextFormatError):
    """A scale that the scheme or the level does not allow."""


class CorrectionFactorError(CiphertextFormatError):
    """A correction factor outside [1, t)."""


class KeyFormatError(SealFormatError, KeyFileError):
    """A public, relinearisation or Galois key that is not usable."""


class MissingDigitError(KeyFormatError):
    """A key-switching key without all of its digits. SEAL loads it and fails at its first use."""


class MissingKeyError(KeyFormatError):
    """A key-switching key is missing from a file, or a file has one that was not requested."""


class KeyNoiseError(KeyFormatError):
    """A key that does not belong to the secret, or whose noise is not one small polynomial for all primes."""


class SealMissingError(KeyQuorumError):
    """seal-python is not installed."""


class SealOperationError(KeyQuorumError):
    """SEAL refused parameters or an operation."""


class ValuesError(KeyQuorumError):
    """A file or array of values that cannot be encoded."""
