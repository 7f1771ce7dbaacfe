"""Errors that a user sees: one line each, naming the culprit and the cure."""

from __future__ import annotations

LONGEST = 2000
"""Characters of an error that are shown: what a file or a peer says may be quoted in it."""
_END = 500


class KeyQuorumError(Exception):
    """Base of all errors of this package. Shown as one line of printable characters; of a long one the middle is left out."""

    def __str__(self) -> str:
        text = super().__str__()
        if not text.isprintable():
            text = "".join(c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode() for c in text)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - _END - 5]} ... {text[-_END:]}"


class ParameterError(KeyQuorumError):
    """A parameter set or a parameter of a command is not usable."""


class ProgramError(KeyQuorumError):
    """A program failed, or does something outside the supported subset."""


class CommitteeError(KeyQuorumError):
    """A committee folder is missing, incomplete or inconsistent."""


class PartyError(KeyQuorumError):
    """A party of a joint run failed; the text names it."""


class PartyInterrupted(PartyError):
    """A party was interrupted by its user; the text names it."""


class PolicyError(KeyQuorumError):
    """The decryption policy of a key does not allow this decryption."""


class ApprovalError(KeyQuorumError):
    """A ciphertext was not approved at a party whose key wants that."""


class PoolError(KeyQuorumError):
    """A pool of material that may be used once is missing, too small, in use, or in a state in which using it would not be safe."""


class PoolTooSmall(PoolError):
    """A pool has fewer items than a request needs; nothing was claimed."""


class CiphertextError(KeyQuorumError):
    """A ciphertext cannot be decrypted with this key."""


class KeyFileError(KeyQuorumError):
    """A key or share file is missing, damaged or foreign."""


class BurnedKeyError(KeyFileError):
    """A MAC key under which a check failed, or was cut off: nothing that was made under it can be used."""


class KeyInUseError(KeyQuorumError):
    """A MAC key that another session uses: one at a time may."""


class AuditError(KeyQuorumError):
    """The audit log of a served party cannot be opened or written: nothing is answered without it."""


class BackendError(KeyQuorumError):
    """MP-SPDZ is missing, too old, not built for a protocol, or cannot do what is asked."""


class ResourceError(KeyQuorumError):
    """A host has less memory, or less room on its disk, than a plan states that it needs."""


class OutputError(KeyQuorumError):
    """A result cannot be put where it was asked for; the text says whether it was made, and where it is then."""
