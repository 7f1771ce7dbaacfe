"""Errors that a user sees: one line each, naming the culprit and the cure."""

from __future__ import annotations


class KeyQuorumError(Exception):
    """Base of all errors of this package."""


class ParameterError(KeyQuorumError):
    """A parameter set or a parameter of a command is not usable."""


class ProgramError(KeyQuorumError):
    """A program failed, or does something outside the supported subset."""


class CommitteeError(KeyQuorumError):
    """A committee folder is missing, incomplete or inconsistent."""


class PartyError(KeyQuorumError):
    """A party of a joint run failed; the text names it."""


class PolicyError(KeyQuorumError):
    """The decryption policy of a key does not allow this decryption."""


class PoolError(KeyQuorumError):
    """A pool of material that may be used once is missing, too small, in use, or in a state in which using it would not be safe."""


class PoolTooSmall(PoolError):
    """A pool has fewer items than a request needs; nothing was claimed."""


class CiphertextError(KeyQuorumError):
    """A ciphertext cannot be decrypted with this key."""


class KeyFileError(KeyQuorumError):
    """A key or share file is missing, damaged or foreign."""


class BackendError(KeyQuorumError):
    """MP-SPDZ is missing, too old, not built for a protocol, or cannot do what is asked."""


class ResourceError(KeyQuorumError):
    """A host has less memory than a plan states that it needs."""
