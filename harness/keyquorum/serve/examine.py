"""Examines what a served party needs beside its keys: receivers, limits, audit log, disk, and the record of sessions. For ``keyquorum doctor``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties.audit.log import NAME as AUDIT_LOG
from keyquorum.parties.doctor import Finding

from .admission import read_certificates, skipped_text
from .limits import NAME as LIMITS
from .limits import read_limits
from .sessions import CURE, MOST_CUT_OFFS, MOST_SESSIONS, has_cut_offs, read_sessions
from .sessions import NAME as SESSIONS

LEAST_FREE = 100_000_000
"""Bytes of free disk below which a party may soon refuse requests: a request takes some 400 bytes of the audit log."""


def examine_serving(committee: Committee, parties: Sequence[int]) -> Iterator[Finding]:
    """Looks at what ``parties``, all on this host, need to serve. Parties that have no receiver and never served are passed over."""
    for party in parties:
        folder = committee.party_folder(party)
        if (folder / "receivers").is_dir() or (folder / "serve.json").exists():
            try:
                yield from _examine(party, folder)
            except OSError as error:
                yield Finding(False, f"party {party}: {error.filename}: {error.strerror}")


def _examine(party: int, folder: Path) -> Iterator[Finding]:
    found = read_certificates(folder / "receivers")
    for name, reason in found.skipped.items():
        yield Finding(False, f"party {party}: {skipped_text(folder / 'receivers' / name, reason)}")
    yield Finding(True, f"party {party}: {len(found.admitted)} receivers are admitted")
    try:
        limits = read_limits(folder / LIMITS)
        if (folder / LIMITS).exists():
            yield Finding(
                True, f"party {party}: limits of receivers: {', '.join(map(str, limits.all)) or 'none'}; {len(limits.receivers)} have their own"
            )
        broken, failed = read_sessions(folder / SESSIONS)
        if failed:
            yield Finding(False, f"party {party}: {folder / SESSIONS}: a check failed in a served session ({failed}): {CURE}")
        elif broken:
            cut = has_cut_offs(folder / SESSIONS)
            what, most = ("challenges of MAC checks were cut off", MOST_CUT_OFFS) if cut else ("served sessions broke off", MOST_SESSIONS)
            cure = f", the limit is {most}: the party does not serve: {folder / SESSIONS}: {CURE}" if broken >= most else ""
            yield Finding(not cure, f"party {party}: {broken} {what}{cure}")
    except KeyQuorumError as error:
        yield Finding(False, f"party {party}: {error}")
    yield _audit_log(party, folder / AUDIT_LOG)
    free = shutil.disk_usage(folder).free
    cure = "" if free >= LEAST_FREE else ": make room, a party that cannot write refuses all requests"
    yield Finding(not cure, f"party {party}: {free / 1e9:.1f} GB free on the disk of {folder}{cure}")


def _audit_log(party: int, path: Path) -> Finding:
    """An audit log elsewhere (``--audit-log``) is not looked at."""
    if not path.exists():
        return Finding(True, f"party {party}: no audit log at {path} yet")
    found = path.stat()
    if found.st_mode & 0o077:
        return Finding(False, f"party {party}: {path} is open to others: run chmod 600 {path}")
    if not os.access(path, os.W_OK):
        return Finding(False, f"party {party}: {path} cannot be written: the party refuses all requests until it can")
    return Finding(True, f"party {party}: audit log {path}, {found.st_size / 1e6:.1f} MB")


__all__ = ["examine_serving"]
