"""Errors for users: one line each, with the cause and the remedy."""

from __future__ import annotations

import errno

LONGEST = 2000
"""Characters of an error that are shown: an error may quote bytes of a file or a peer, of any length."""
_END = 500
_CURES = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room in the quota of that disk",
    errno.EROFS: "mount it writable, or name another place",
    errno.EACCES: "give the user who runs this the right to it, or name another place",
    errno.ENOENT: "check the path, whose folder must exist",
    errno.ENOTDIR: "a part of the path is a file: name another place",
    errno.EISDIR: "name a file",
    errno.EEXIST: "name another place",
}


def describe_os_error(error: OSError) -> str:
    """The file, what the system says of it, and the cure where it is known: one line."""
    text = f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
    cure = _CURES.get(error.errno or 0)
    return text if cure is None or error.filename is None else f"{text}: {cure}"


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
    """A ciphertext was not approved at a party, and the policy of the key requires approval."""


class PoolError(KeyQuorumError):
    """A pool is missing, too small, in use, or in a state in which its use would not be safe: each item may be used once."""


class PoolTooSmall(PoolError):
    """A pool has fewer items than a request needs; nothing was claimed."""


class PoolLost(PoolError):
    """A pool is damaged, or does not belong to the pools of the other parties. No item of it is used again: to drop it at all parties is safe."""

    @property
    def reason(self) -> str:
        """The text without the cure."""
        return str(self).partition(": keyquorum pool drop")[0]


class PoolUnwritable(PoolError):
    """A pool's journal cannot be written now, so no item may be used: it can when there is room on the disk."""


class CiphertextError(KeyQuorumError):
    """A ciphertext cannot be decrypted with this key."""


class KeyFileError(KeyQuorumError):
    """A key or share file is missing, damaged or foreign."""


class BurnedKeyError(KeyFileError):
    """A MAC check failed or was interrupted under this MAC key: nothing that was made under the key can be used."""


class KeyInUseError(KeyQuorumError):
    """Another session uses this MAC key: only one session at a time may."""


class EpochError(KeyQuorumError):
    """A change of an epoch is unfinished, out of order or refused, or a file of it is damaged, replayed or contradicts another one."""


class MovedError(EpochError):
    """Another committee holds this key now; the text names it. ``proof``: for receivers, what shows this."""

    def __init__(self, text: str = "", proof: bytes = b"") -> None:
        super().__init__(text)
        self.proof = proof


class AuditError(KeyQuorumError):
    """The audit log of a served party cannot be opened or written: nothing is answered without it."""


class BackendError(KeyQuorumError):
    """MP-SPDZ is missing, too old, not built for a protocol, or lacks what a job needs."""


class ResourceError(KeyQuorumError):
    """A host lacks what is needed: memory, disk, or an optional package."""


class PoolCannotGrow(ResourceError):
    """A party cannot store items that it would make; the text names it. All parties of the pool have given these items up, and have what they had before."""


class OutputError(KeyQuorumError):
    """A result cannot be written to its output path; the text says whether the result exists, and where it is."""
