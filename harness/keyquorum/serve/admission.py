"""Receivers that a party admits: the certificates in its folder ``receivers``, which is read again when it has changed.

A file that is no certificate is skipped, and named: one bad file keeps no other receiver out.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from keyquorum.model.errors import CommitteeError

from .wire import certificate_of, load_identity

CERTIFICATE_LIMIT = 1 << 16
"""Bytes of the longest certificate file."""
FULL_SECONDS = 1.0
"""Seconds between two looks at every file of the folder. A file that is added or removed changes the folder itself, which is looked at for each
request."""
NONE_ADMITTED = "no receiver may ask for decryptions: keyquorum receiver makes one, or copy its .crt there"
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass
class Certificates:
    """The files of a folder ``receivers``. ``admitted``: name of the file, by the SHA-256 of the certificate; ``skipped``: the reason, by name."""

    admitted: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    der: list[bytes] = field(default_factory=list)


def _certificate(path: Path) -> bytes:
    """The certificate in a file. Raises ValueError, CommitteeError, SSLError or OSError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > CERTIFICATE_LIMIT:
        raise ValueError
    der = ssl.PEM_cert_to_DER_cert(certificate_of(path))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=der)
    return der


def read_certificates(folder: Path) -> Certificates:
    """The certificates in a folder. A file that vanishes meanwhile is neither admitted nor skipped. Raises OSError for a failure that passes, such as a
    lack of descriptors."""
    found = Certificates()
    for path in sorted(folder.glob("*.crt")):
        try:
            der = _certificate(path)
        except FileNotFoundError:
            continue
        except PermissionError:
            found.skipped[path.name] = "it cannot be read"
        except (ssl.SSLError, ValueError, CommitteeError):
            found.skipped[path.name] = "not a certificate"
        else:
            found.admitted[hashlib.sha256(der).hexdigest()] = path.name
            found.der.append(der)
    return found


def skipped_text(path: Path, reason: str) -> str:
    """A line about a file that was skipped, with the cure."""
    return f"{path}: {reason}: copy the receiver's .crt again, or remove it"


class Receivers:
    """Receivers that a party admits. Thread-safe. ``log``: gets a line for each file that is skipped, once until it changes. Raises CommitteeError if
    the folder has no certificate."""

    def __init__(self, identity: Path, folder: Path, log: Callable[[str], None] = lambda line: None) -> None:
        self._identity, self._folder, self._log = identity, folder, log
        self._lock = threading.Lock()
        self._logged: dict[str, tuple[str, Stamp]] = {}
        self._changed, self._stamp, self._looked = -1, Stamp(), 0.0
        self._files, self._context = Certificates(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._load()
        if not self._files.admitted:
            for name, reason in self._files.skipped.items():
                raise CommitteeError(skipped_text(folder / name, reason))
            raise CommitteeError(f"{folder}: {NONE_ADMITTED}")

    @property
    def counts(self) -> tuple[int, int]:
        """Receivers that are admitted, and files that are skipped."""
        with self._lock:
            self._refresh()
            return len(self._files.admitted), len(self._files.skipped)

    def name(self, fingerprint: str) -> str:
        """The name of an admitted receiver, that of its file without ``.crt``; empty if it is not admitted."""
        return self._files.admitted.get(fingerprint, "").removesuffix(".crt")

    def context(self) -> ssl.SSLContext:
        """The TLS context for the next channel. Raises CommitteeError if no receiver is admitted."""
        with self._lock:
            self._refresh()
            self._require_any()
            return self._context

    def require(self, fingerprint: str) -> None:
        """Raises CommitteeError for a receiver that is no longer admitted: a channel may be older than the folder's last change."""
        with self._lock:
            self._refresh()
            self._require_any()
            if fingerprint not in self._files.admitted:
                raise CommitteeError("this receiver may not ask for decryptions any more: its certificate was taken away")

    def reload(self) -> None:
        """Reads the folder again, whether it has changed or not."""
        with self._lock:
            self._load()

    def _require_any(self) -> None:
        if not self._files.admitted:
            raise CommitteeError(f"{self._folder}: {NONE_ADMITTED}")

    def _folder_changed(self) -> int:
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:
            return -1

    def _files_changed(self) -> Stamp:
        found = []
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".crt"):
                        with suppress(OSError):  # it has just gone, or leads nowhere
                            there = entry.stat()
                            found.append((entry.name, there.st_mtime_ns, there.st_size, there.st_mode))
        except OSError:
            return ()
        return tuple(sorted(found))

    def _refresh(self) -> None:
        if self._folder_changed() != self._changed:
            self._load()
        elif time.monotonic() >= self._looked + FULL_SECONDS or not self._files.admitted:
            self._looked = time.monotonic()
            if self._files_changed() != self._stamp:
                self._load()

    def _load(self) -> None:
        # The state of the folder is taken first: what changes meanwhile is read again.
        changed, stamp, self._looked = self._folder_changed(), self._files_changed(), time.monotonic()
        files = read_certificates(self._folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        load_identity(context, self._identity)
        context.verify_mode = ssl.CERT_REQUIRED
        for der in files.der:
            context.load_verify_locations(cadata=der)
        self._changed, self._stamp, self._files, self._context = changed, stamp, files, context
        self._say_skipped()

    def _say_skipped(self) -> None:
        skipped = self._files.skipped
        said = {name: (reason, tuple(entry for entry in self._stamp if entry[0] == name)) for name, reason in skipped.items()}
        for name, entry in said.items():
            if self._logged.get(name) != entry:
                self._log(f"receiver skipped: {skipped_text(self._folder / name, entry[0])}")
        self._logged = said


__all__ = ["Certificates", "Receivers", "read_certificates", "skipped_text"]
