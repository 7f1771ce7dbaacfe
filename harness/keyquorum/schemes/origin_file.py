"""The file beside a party's shares of a secret vector that says which run made them, ``mac-<j>.kqs`` beside ``share-<j>.kqs``: what :mod:`keyquorum.dsl.files.binding` binds shares by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum._engine import ShareFile
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.binding import Binding, binding_of
from keyquorum.dsl.files.origin import NO_ORIGIN, Origin
from keyquorum.model.errors import KeyFileError, ProgramError
from keyquorum.model.plain import Json


@dataclass(frozen=True)
class OriginFile:
    """Where it is, or would be: protocols of which nothing is stored with shares have none, and then nothing is written or read. ``folder``, ``index``: of the share file; ``share_header``: its header."""

    folder: Path
    index: int
    share_header: Json

    @property
    def path(self) -> Path:
        """Its path."""
        return self.folder / f"mac-{self.index}.kqs"

    @property
    def binding(self) -> Binding:
        """What binds the shares."""
        return binding_of(self.share_header["protocol"])

    @property
    def _header(self) -> Json:
        return {**self.share_header, "length": 1}

    def write(self, data: bytes) -> None:
        """Stores what shares state (:meth:`.ShareVector.export_mac`). Raises KeyFileError for shares that must state something, and do not."""
        if data:
            ShareFile.write(str(self.path), self._header, data)
        elif not self.binding.fits(0):
            raise KeyFileError(f"{self.path}: shares of {self.binding.protocol} without a MAC key: please report it")

    def read(self) -> bytes:
        """What :meth:`write` stored. Raises KeyFileError if it is missing, StoreError if it is damaged."""
        if not self.binding.stored:
            return b""
        if not self.path.exists():
            raise KeyFileError(f"{self.path}: missing: {self.binding.cure}")
        return self._read()

    def _read(self) -> bytes:
        return ShareFile.read(str(self.path), self._header)

    def load(self, share: ShareVector, tested: bool = True) -> None:
        """Gives shares what :meth:`write` stored. Raises KeyFileError, also if they must be ``tested`` and have no test."""
        data = self.read()
        try:
            share.import_mac(self.binding.protocol, data)
        except ProgramError as error:
            raise KeyFileError(f"{self.path}: {error}") from None
        if tested and self.binding.stored and not share.origins:
            raise KeyFileError(f"{self.path}: {NO_ORIGIN}")

    def check(self) -> None:
        """Reads it back after it was written. Raises StoreError if it is missing or damaged, ProgramError if it is empty."""
        if self.binding.stored:
            Origin(self._read())

    def public(self) -> str:
        """What other parties may know of it, and can state for :meth:`restore`, as hexadecimal digits: with MACs nothing. Raises as :meth:`read`."""
        return self.binding.public(self.read()).hex()

    def restore(self, public: Sequence[str]) -> None:
        """Writes what the other parties stated of theirs, one for each vector."""
        if self.binding.stored:
            ShareFile.write(str(self.path), self._header, bytes.fromhex(public[self.index]))

    def carry(self, new: OriginFile, purpose: str) -> None:
        """Writes that of shares which every party computed from these, for ``purpose`` (:meth:`.Binding.carried`). Raises as :meth:`read`."""
        new.write(self.binding.carried(self.read(), purpose))


__all__ = ["OriginFile"]
