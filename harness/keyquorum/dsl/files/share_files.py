"""Share files of programs on the disk, in the engine's format: reading, writing, and the reasons of refusals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from keyquorum import _engine
from keyquorum._engine import Engine
from keyquorum.model.committee import sync_folder
from keyquorum.model.errors import ProgramError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS

from .binding import binding_of
from .origin import NO_ORIGIN
from .share_vector import ShareVector

CLAIM = ".claimed"
"""Ending of the mark beside a share file."""
CLAIMED = b"a run that read these shares has not come to its end (docs/pages/security/stored-masks.md)\n"
"""Content of the mark."""


def shares_path(folder: Path, party: int) -> Path:
    """Path of a party's share file in a working folder."""
    return folder / "Persistence" / f"Shares-P{party}"


def claim_path(path: Path) -> Path:
    """Path of the mark beside a share file that a run has begun to read."""
    return path.with_name(f"{path.name}{CLAIM}")


Identity = tuple[int, int, int] | None
"""What tells a share file from one that replaces it; None: there is no file."""


def identity(path: Path) -> Identity:
    """The identity of a share file now."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def claim(path: Path, loaded: Identity) -> None:
    """Marks a share file durably, before a run uses its shares: what the run opens may depend on them. ``loaded``: its identity before the run read it.

    Raises :class:`ProgramError` if another run has marked it, and if another run has replaced it since: that run may have used these shares."""
    try:
        mark = os.open(claim_path(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        _refuse_claimed(path)
        raise ProgramError(f"{path}: another run has used it a moment ago: run the program again") from None
    with os.fdopen(mark, "wb") as file:
        file.write(CLAIMED)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    if identity(path) != loaded:
        release(path)
        raise ProgramError(f"{path}: another run has replaced it, and may have used the shares that this one has read: run the program again, alone")


def release(path: Path) -> None:
    """Takes the mark of :func:`claim` away."""
    claim_path(path).unlink(missing_ok=True)
    sync_folder(path.parent)


def _refuse_claimed(path: Path) -> None:
    """Raises :class:`ProgramError` if a run that has read these shares did not come to its end. At once, also for programs that use no shares: the others must not
    begin to use theirs, which would be marked as well."""
    mark = claim_path(path)
    if not mark.exists():
        return
    raise ProgramError(
        f"{path}: a run that had read these shares was broken off, after it may have opened something that depends on them, or still runs. If programs use some "
        f"of them once, as masks, store new ones in another folder; if programs may use all of them any number of times, remove {mark.name} beside it"
    )


def _header(engine: Engine, length: int) -> Json:
    return {
        "protocol": engine.protocol,
        "domain": engine.domain,
        "parties": engine.parties,
        "threshold": engine.threshold,
        "party": engine.party,
        "key_id": "00" * 16,
        "length": length,
    }


def _chooses_threshold(protocol: str) -> bool:
    """Whether runs under this protocol, which may be of another version, have the option for the threshold."""
    return protocol in PROTOCOLS and PROTOCOLS[protocol].chooses_threshold


def _options(header: Json, engine: Any) -> str:
    """The options of keyquorum run under which a share file can be read."""
    domain = str(header["domain"])
    options = [f"-E {header['protocol']}", f"-R {domain[3:]}" if domain.startswith("Z2^") else f"-P {domain.removeprefix('F_')}"]
    if (header["parties"], header["threshold"]) != (engine.parties, engine.threshold):
        options.append(f"-N {header['parties']}")
    if _chooses_threshold(header["protocol"]):
        options.append(f"-T {header['threshold']}")
    return " ".join(options)


def of_another_run(path: Path, engine: Engine) -> str | None:
    """The reason, with the remedy, why a share file does not fit this engine's protocol, domain and committee; None if it fits."""
    header = _engine.ShareFile.header(str(path))
    if all(header[name] == getattr(engine, name) for name in ("protocol", "domain", "parties", "threshold")):
        return None

    def shown(protocol: str, domain: str, parties: int, threshold: int) -> str:
        return f"{protocol} over {domain} among {parties} part{'y' if parties == 1 else 'ies'}" + (
            f" (threshold {threshold})" if _chooses_threshold(protocol) else ""
        )

    theirs, ours = (
        shown(*(header[n] for n in ("protocol", "domain", "parties", "threshold"))),
        shown(engine.protocol, engine.domain, engine.parties, engine.threshold),
    )
    return (
        f"{path} holds shares that a run of {theirs} wrote, this run is {ours}: shares do not go from one to the other. Run it with "
        f"{_options(header, engine)}, or in another folder; if the shares are no longer needed, move {path.parent} away"
    )


def _files_of_the_run(path: Path) -> list[Path]:
    """A party's share file. If it does not exist: the files of the other parties in the folder, so that no file is added to those of another run."""
    if path.exists():
        return [path]
    return sorted(file for file in path.parent.glob("Shares-P*") if file.name.removeprefix("Shares-P").isdigit())


def load_shares(path: Path, engine: Any, if_needed: bool = False) -> ShareVector:
    """The shares of a file; empty if there is no file.

    Raises :class:`ProgramError` if they are of another protocol, domain or committee. With ``if_needed`` the error is raised only when a
    program reads or stores shares. Also if a run that used them was broken off. The engine refuses files of other parties, and damaged ones."""
    refusals = (of_another_run(file, engine) for file in _files_of_the_run(path))
    refusal = next((reason for reason in refusals if reason is not None), None)
    if refusal is not None:
        if if_needed:
            return ShareVector.refused(refusal)
        raise ProgramError(refusal)
    if not path.exists():
        return ShareVector()  # a mark stays: somebody may bring the file back
    header = _engine.ShareFile.header(str(path))
    data = _engine.ShareFile.read(str(path), _header(engine, 0))
    length = header["length"] * engine.share_parts * engine.element_bytes
    binding, beside = binding_of(engine.protocol), len(data) - length
    if binding.marks_files:
        _refuse_claimed(path)
    if beside < 0 or not binding.fits(beside):
        raise ProgramError(
            f"{path}: has {len(data):,} bytes, its {header['length']:,} shares need {length:,}, more with MACs alone: restore it from a backup"
        )
    if not binding.complete(beside) and isinstance(engine, Engine):
        if if_needed:
            return ShareVector.refused(f"{path}: {NO_ORIGIN}")
        raise ProgramError(f"{path}: {NO_ORIGIN}")
    shares = ShareVector.from_export(data[:length], engine.share_parts, engine.element_bytes)
    shares.bind(engine.protocol, engine.domain)
    if beside:
        shares.import_mac(engine.protocol, data[length:])
    return shares


def save_shares(path: Path, shares: ShareVector, engine: Any) -> None:
    """Writes a share file, 0600 in a folder of 0700: the shares, then the bytes of :meth:`ShareVector.export_mac`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _engine.ShareFile.write(str(path), _header(engine, shares.length), shares.export() + shares.export_mac())
