"""Lines of epochs in a party's audit log: one for every state of a change that the party wrote into its journal, and for tests and recoveries of shares.

A state is in the journal first, then in the audit log. What a crash or a full disk left out is written with the next state, or order about epochs. So a log that cannot be written holds nothing up: a change that
stopped in its middle for a line could cost a key. ``epochs.audited`` says how far the log has the journal. It is not synced: lines that the log has beyond it are found there, and not written again. If the log was moved away in
between, such a line is in both files. Tests and recoveries are not in the journal: a crash or a full disk at this moment leaves their line out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum._engine import EngineError
from keyquorum.model import journal
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import BACK, Stage
from keyquorum.model.errors import AuditError, EpochError, KeyQuorumError
from keyquorum.model.locks import say_on_stderr
from keyquorum.model.plain import Json, is_count, is_hex, json_loads
from keyquorum.parties.audit.chain import Signer
from keyquorum.parties.audit.log import NAME, AuditLog

from .record import JOURNAL, Record

MARK = "epochs.audited"
"""File in a party's folder."""
FORMAT = 1
_TAIL = 256
"""Bytes of the journal by which the mark knows its place."""
_RESULTS = {Stage.COMMITTED: "new epoch", Stage.ERASED: "old shares erased", **dict.fromkeys(BACK, "old epoch")}
"""What became of the change; before, it is ``open``."""


@dataclass(frozen=True)
class Mark:
    """How far the log has the journal. ``size``: bytes of the journal; ``tail``: SHA-256 of the last ones of these; ``number``: lines of the log then."""

    size: int = 0
    tail: str = ""
    number: int = 0

    @staticmethod
    def parse(data: bytes) -> Mark:
        """From the file. What is damaged says nothing: then the log is searched from its beginning."""
        try:
            said = json_loads(data)
            size, tail, number = said["bytes"], said["tail"], said["number"]
            proper = said["format"] == FORMAT and is_count(size) and is_count(number) and is_hex(tail, 64)
        except (ValueError, KeyError, TypeError):
            proper = False
        return Mark(size, tail, number) if proper else Mark()

    def to_bytes(self) -> bytes:
        """The file."""
        return json.dumps({"format": FORMAT, "bytes": self.size, "tail": self.tail, "number": self.number}).encode() + b"\n"


def _tail(data: bytes) -> str:
    return hashlib.sha256(data[-_TAIL:]).hexdigest()


def _since(data: bytes, mark: Mark) -> tuple[Mark, list[tuple[str, Json]]]:
    """The mark, if it is of this journal, and own lines that came after it, with their checksums. Whoever goes on from the journal verifies these."""
    whole = data[: data.rfind(b"\n") + 1]
    if mark.size > len(whole) or (mark.size and _tail(whole[: mark.size]) != mark.tail):
        mark = Mark()
    found = []
    for line in whole[mark.size :].splitlines():
        checksum, _, text = line.decode(errors="replace").partition(" ")
        try:
            entry = json_loads(text)
            if entry["own"]:
                found.append((checksum, entry))
        except (ValueError, KeyError, TypeError):
            continue
    return mark, found


def unaudited(party_folder: Path) -> int:
    """States of changes in a party's journal that have no line in its audit log, as far as the mark says."""
    journal_file, mark_file = party_folder / JOURNAL, party_folder / MARK
    if not journal_file.exists():
        return 0
    mark = Mark.parse(mark_file.read_bytes()) if mark_file.exists() else Mark()
    return len(_since(journal_file.read_bytes(), mark)[1])


def audit_states(committee: Committee, party: int) -> None:
    """Writes the lines of all states that have none. A log that cannot be written is told on standard error, and holds nothing up."""
    folder = committee.party_folder(party)
    if not unaudited(folder):
        return
    try:
        mark_file = os.open(folder / MARK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return _tell(party, f"{folder / MARK}: {error.strerror}")
    try:
        journal.lock(mark_file)
        _write_missing(committee, party, mark_file)
    except (OSError, KeyQuorumError, EngineError, ValueError) as error:
        _tell(party, str(error))
    finally:
        os.close(mark_file)


def _write_missing(committee: Committee, party: int, mark_file: int) -> None:
    folder = committee.party_folder(party)
    data = (folder / JOURNAL).read_bytes()
    mark, lines = _since(data, Mark.parse(os.pread(mark_file, 1 << 12, 0)))
    log = _log(committee, party)
    try:
        known = {entry.get("journal") for entry in log.entries_from(mark.number)}
        for checksum, entry in lines:
            if checksum not in known:
                _write(log, {**_state(committee, party, entry), "journal": checksum})
        whole = data[: data.rfind(b"\n") + 1]
        written = Mark(len(whole), _tail(whole), log.number).to_bytes()
    finally:
        log.close()
    reached("epoch/audited")
    os.ftruncate(mark_file, 0)
    os.pwrite(mark_file, written, 0)


def audit(committee: Committee, party: int, state: str, more: Json) -> None:
    """Writes a line of what is no state of a change: a test (``proved``) or a recovery (``recovered``) of shares. A log that cannot be written is told on standard error."""
    try:
        log = _log(committee, party)
        try:
            _write(log, {"event": "epoch", "state": state, **more})
        finally:
            log.close()
    except (OSError, KeyQuorumError, EngineError, ValueError) as error:
        _tell(party, str(error), f"nothing else has that this party {state} shares")


def _log(committee: Committee, party: int) -> AuditLog:
    return AuditLog(committee.party_folder(party) / NAME, {"party": party}, signer=Signer(committee.identity_path(party)), goes_on=True)


def _write(log: AuditLog, entry: Json) -> None:
    try:
        log.write(entry)
    except AuditError:
        raise AuditError(f"{log.path}: {log.failure}") from None


def _tell(party: int, why: str, then: str = "epochs.journal has it, and the log gets it with the next state or keyquorum epoch commit") -> None:
    say_on_stderr(f"party {party}: a line of epochs is not in the audit log ({why}): {then}")


def _state(committee: Committee, party: int, entry: Json) -> Json:
    """The line of an own line of the journal."""
    said, me = entry["said"], committee.parties[party].fingerprint
    stage = Stage(said["kind"])
    found: Json = {"event": "epoch", "epoch": entry["epoch"], "state": stage.value, "date": entry["date"], "result": _RESULTS.get(stage, "open")}
    try:
        record = Record.load(committee.party_folder(party), entry["epoch"])
    except (EpochError, OSError):
        record = None
    if record is not None:
        leaves = me not in record.new["parties"]
        if leaves and stage == Stage.COMMITTED:
            found |= {"state": "passed on", "result": "moved"}
        found |= {
            "epoch_number": record.number, "record": record.digest, "from": record.old["digest"], "to": record.new["digest"],
            "keys": {name: held["key_id"] for name, held in record.keys.items()}, "dealers": _numbers(record.dealers), "checks": list(record.checks),
            **({"absent": _numbers(record.absent)} if record.absent else {}),
            **({"kept": True} if record.kept else {}),
        }  # fmt: skip
    if said.get("lost"):
        found["lost"] = said["lost"]
    if stage == Stage.ERASED:
        found["bytes_erased"] = said.get("bytes")
    return found


def _numbers(dealers: Sequence[int]) -> list[int]:
    return [int(dealer) for dealer in dealers]


__all__ = ["MARK", "Mark", "audit", "audit_states", "unaudited"]
