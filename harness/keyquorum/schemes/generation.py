"""The frame of every key generation; a scheme fills in the phases that make its secrets and its public parts.

1. The parties compare a description of what they make, and toss public randomness; a hash of both begins the transcript, and gives the key id.
2. Phases of the scheme: programs make secrets and noise as shares, and open the public parts of the key.
3. The parties compare a hash of all that was public.
4. The key: its metadata, its public files, and this party's shares.

If a step fails, the shares that were made for the key are wiped, and whatever else was entered in :attr:`Generation.wiping`."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Generic, TypeVar

from keyquorum.dsl import ShareVector
from keyquorum.parties.context import PartyContext
from keyquorum.sharing.shares import Run

from .key_folder import growing_file
from .keys import K, KeyMaterial, KeyRequest

Q = TypeVar("Q", bound=KeyRequest)

KEY_ID_DIGITS = 32
"""Hexadecimal digits of a key id: half of a SHA-256."""


def tossed_first(described: bytes, tossed: bytes) -> Iterable[bytes]:
    """The beginning of a transcript: what was tossed, then the description."""
    return tossed, described


def digest_first(described: bytes, tossed: bytes) -> Iterable[bytes]:
    """The beginning of a transcript: the SHA-256 of the description, then what was tossed."""
    return hashlib.sha256(described).digest(), tossed


def framed(label: str, data: bytes) -> Iterable[bytes]:
    """A label and data, each after its length in 8 bytes: the bytes of two entries differ wherever the entries do."""
    for part in (label.encode(), data):
        yield len(part).to_bytes(8, "little")
        yield part


@dataclass(frozen=True)
class Preamble:
    """How the key generations of a scheme begin; no shared value is opened here. ``title``: what the parties compare first, for errors; ``tag``: the first bytes of the transcript;
    ``begins``: the bytes after them, of description and toss; ``toss``: bytes that are tossed; ``phase``: in which this is measured; ``seeded``:
    whether the description says that there is a seed."""

    title: str
    tag: bytes
    begins: Callable[[bytes, bytes], Iterable[bytes]] = tossed_first
    toss: int = 32
    phase: str | None = None
    seeded: bool = True


class Transcript:
    """A hash of everything public, in order."""

    def __init__(self, *parts: bytes) -> None:
        self._hash = hashlib.sha256()
        self.add(*parts)

    def add(self, *parts: bytes) -> None:
        """Adds bytes, one part after another."""
        for part in parts:
            self._hash.update(part)

    def digest(self) -> bytes:
        """The hash so far, 32 bytes."""
        return self._hash.digest()

    def hexdigest(self) -> str:
        """The same as 64 hexadecimal digits."""
        return self._hash.hexdigest()


class Generation(Generic[Q]):
    """One party's part of a key generation, in a ``with`` block; every party makes one, which runs step 1. ``description``: plain data of the
    request, and what else must be the same everywhere; protocol, size and threshold of the committee follow, and then ``more``. ``folder``: of the
    new key, for files of :meth:`file` (None: they stay in memory).

    key_id: 32 hexadecimal digits. tossed: public random bytes. transcript: to which the scheme adds what it opens. run: for its programs. public:
    the bytes of public files by name."""

    def __init__(
        self, context: PartyContext, request: Q, preamble: Preamble, description: Sequence[object], folder: Path | None = None, more: Sequence[object] = ()
    ) -> None:  # fmt: skip
        self.context, self.request, self.run, self.wiping = context, request, Run(context), ExitStack()
        self.public: dict[str, bytes] = {}
        self.phase = context.phase
        self._folder, self._written, self._shares = folder, list[str](), list[ShareVector]()
        committee = context.committee
        parts = [
            *description,
            committee.protocol,
            committee.size,
            committee.threshold,
            *([context.seed is not None] if preamble.seeded else []),
            *more,
        ]
        described = json.dumps(parts).encode()
        measured: AbstractContextManager[object] = nullcontext() if preamble.phase is None else context.phase(preamble.phase)
        with measured:
            context.session.compare(preamble.title, hashlib.sha256(described).digest())
            self.tossed = context.session.toss(preamble.toss)
        self.transcript = Transcript(preamble.tag, *preamble.begins(described, self.tossed))
        self.key_id = self.transcript.hexdigest()[:KEY_ID_DIGITS]

    def __enter__(self) -> Generation[Q]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if error is not None:
            for share in self._shares:
                share.wipe()
        self.wiping.close()

    def keep(self, share: ShareVector) -> ShareVector:
        """A share file of the key, after those that are kept already; it may still be empty. Returns it."""
        self._shares.append(share)
        return share

    @contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """A public file of the key, to write in pieces."""
        with growing_file(None if self._folder is None else self._folder / name) as file:
            yield file
            if isinstance(file, io.BytesIO):
                self.public[name] = file.getvalue()
            else:
                self._written.append(name)

    def compare(self) -> None:
        """Step 3. Raises ProtocolError, which names a party that has another transcript."""
        self.context.session.compare("transcript of the key", self.transcript.digest())

    def finish(self, kind: Callable[..., K], transcript: str | None = None, **fields: object) -> KeyMaterial[K]:
        """Step 4. ``kind``: the scheme's metadata; ``fields``: those that its keys have besides. ``transcript``: instead of the hash of
        :attr:`transcript`."""
        committee = self.context.committee
        info = kind(
            key_id=self.key_id, parameters=self.request.parameters, protocol=committee.protocol, parties=committee.size,
            threshold=committee.threshold, transcript=self.transcript.hexdigest() if transcript is None else transcript, **fields,
        )  # fmt: skip
        return KeyMaterial(info, self.public, self._shares, tuple(self._written))


__all__ = ["Generation", "Preamble", "Transcript", "digest_first", "framed", "tossed_first"]
