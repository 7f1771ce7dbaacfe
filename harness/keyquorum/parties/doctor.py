"""Examines a committee from each party of this host: files, reachability, fingerprints, versions, clocks."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from keyquorum import _engine
from keyquorum.model.committee import BASE_OT, Committee
from keyquorum.model.errors import KeyFileError

from . import mac_key

MAX_CLOCK_SKEW = 5.0
"""Seconds by which the clocks of two hosts may differ."""


@dataclass(frozen=True)
class Finding:
    """The result of one check, in one line, with the remedy if it failed."""

    ok: bool
    text: str


def examine(committee: Committee, parties: Sequence[int], seconds: float) -> Iterator[Finding]:
    """Runs the checks of each of ``parties`` (all on this host, at the same time), for at most ``seconds``."""
    missing = [p.index for p in committee.parties if not p.fingerprint]
    for index in missing:
        yield Finding(False, f"party {index}: no fingerprint in committee.toml: keyquorum trust {shlex.quote(str(committee.folder))} {index} ...")
    yield Finding(True, f"base OT, where a protocol takes it: {committee.base_ot} ({BASE_OT[committee.base_ot]})")
    usable = []
    for index in parties:
        findings = list(_files(committee, index))
        yield from findings
        if all(f.ok for f in findings) and not missing:
            usable.append(index)
    if not usable:
        return

    def look(index: int) -> list[tuple[int, dict[str, object]]]:
        peers = [(p.host, p.port, p.fingerprint) for p in committee.parties]
        path = str(committee.identity_path(index))
        said = "\n".join(f"{name}={value}" for name, value in committee.entries())
        try:
            return list(_engine.probe_committee(index, path, peers, committee.digest, seconds, said))
        except _engine.NetworkError as error:  # our own port: the others cannot reach it either
            return [(index, {"error": str(error)})]

    with ThreadPoolExecutor(len(usable)) as pool:
        for index, reports in zip(usable, pool.map(look, usable), strict=True):
            for peer, report in reports:
                yield _judge(committee, index, peer, report)


def _files(committee: Committee, index: int) -> Iterator[Finding]:
    path = committee.identity_path(index)
    if not path.exists():
        yield Finding(False, f"party {index}: {path} is missing: it runs on another host, or run keyquorum init again")
        return
    try:
        fingerprint = _engine.identity_fingerprint(str(path))
    except _engine.EngineError as error:
        yield Finding(False, f"party {index}: {error}")
        return
    listed = committee.parties[index].fingerprint
    if fingerprint != listed:
        yield Finding(False, f"party {index}: committee.toml lists {listed or 'nothing'}, its identity has {fingerprint}")
    elif path.parent.stat().st_mode & 0o077:
        yield Finding(False, f"party {index}: {path.parent} is open to others: chmod 700 it")
    elif (closed := _unwritable(path.parent)) is not None:
        yield Finding(
            False, f"party {index}: {closed} cannot be written: every job writes there: mount it writable, or give it to the user who runs the party"
        )
    else:
        yield Finding(True, f"party {index}: identity and permissions")
    key = mac_key.kept(committee, index)
    if key is not None:
        yield _mac_key(key, index)


def _unwritable(folder: Path) -> Path | None:
    """The first folder of a party in which this process cannot make a file: its own, that of its keys, or that of its pools."""
    for each in (folder, folder / "keys", folder / "pools"):
        if each.is_dir():
            try:
                tempfile.TemporaryFile(dir=each).close()
            except OSError:
                return each
    return None


def _mac_key(path: Path, index: int) -> Finding:
    try:
        state = mac_key.state(path)
    except KeyFileError as error:
        return Finding(False, f"party {index}: {error}")
    if state.burned:
        return Finding(False, f"party {index}: {state.burned}")
    if path.exists() and (path.stat().st_size != mac_key.BYTES or path.stat().st_mode & 0o077):
        return Finding(False, f"party {index}: {path} has not {mac_key.BYTES} bytes, or is open to others: restore it from a backup, chmod 600")
    return Finding(True, f"party {index}: {state}")


def _judge(committee: Committee, index: int, peer: int, report: dict[str, object]) -> Finding:
    who = f"party {index} -> party {peer} ({committee.parties[peer].place})"
    if peer == index:
        return Finding(False, f"party {index}: {report['error']}")
    if report["error"]:
        return Finding(False, f"{who}: {report['error']}")
    if report["version"] != _engine.__version__:
        return Finding(False, f"{who}: version {report['version']} there, {_engine.__version__} here: install the same")
    skew = float(str(report["clock_offset"]))
    if abs(skew) > MAX_CLOCK_SKEW:
        return Finding(False, f"{who}: clocks differ by {skew:.1f} s: set them (NTP)")
    return Finding(True, f"{who}: reachable, certificate and version right, {float(str(report['round_trip'])) * 1e3:.1f} ms, {report['security']}")
