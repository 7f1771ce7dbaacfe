"""Files of epochs: where a party is, records of changes, votes, and the journal."""

from __future__ import annotations

import re
from pathlib import Path

from keyquorum import _engine
from keyquorum.model.errors import EpochError
from keyquorum.model.inspected import Candidate, Kind, Report, openness, require
from keyquorum.parties.epochs import EPOCH_FILE, JOURNAL, RECORDS, Record
from keyquorum.parties.epochs.audited import MARK, Mark, unaudited
from keyquorum.parties.epochs.lines import read_journal
from keyquorum.parties.epochs.record import STANDBYS, parse_epoch
from keyquorum.parties.epochs.statements import read_votes
from keyquorum.plans.epochs.origins import SEMI_HONEST
from keyquorum.schemes.holding import CORRECT


def _epoch(candidate: Candidate) -> Report:
    found = parse_epoch(candidate.path)
    lines = [f"epoch {found.number} of a party: {found.name}", f"{len(found.keys)} keys were passed on to it: {', '.join(found.keys) or 'none'}"]
    return Report([*lines, *openness(candidate.path)], details={"number": found.number, "epoch": found.name, "keys": list(found.keys)})


def _assumed(record: Record) -> list[str]:
    """Keys of which nothing shows that a committee before passed on the right shares."""
    if not any(text.endswith(SEMI_HONEST) for text in record.origin[:-1]):
        return []
    return [name for name, held in record.keys.items() if CORRECT not in held.get("flags", ())]


def _record(candidate: Candidate) -> Report:
    record = Record.parse(candidate.data, str(candidate.path))
    lines = [
        f"record of the change to epoch {record.number}, {record.name}, after {record.previous or 'key generation'}",
        f"from {record.old['protocol']} of {len(record.old['parties'])} to {record.new['protocol']} of {len(record.new['parties'])}: {len(record.keys)} keys",
        *(f"keys were {'passed on to' if number else 'made by'} {text}" for number, text in enumerate(record.origin)),
        *([f"{record.old['name']} keeps its shares: {record.new['name']} is a standby, and the keys fall if either does"] if record.kept else []),
        *(f"checked: {text}" for text in record.checks),
        *(f"key {name}: correct: assumed, unless keyquorum epoch prove has tested its shares since" for name in _assumed(record)),
        f"sha256, which votes sign: {record.digest}",
    ]
    return Report(
        lines, details={"epoch": record.name, "number": record.number, "digest": record.digest, "origin": list(record.origin), "kept": record.kept}
    )


def _votes(candidate: Candidate) -> Report:
    path = candidate.path
    record = Record.load(path.parent.parent, path.stem)
    votes = read_votes(record, candidate.data, str(path))
    return Report([f"votes of all {len(votes)} members for epoch {record.name}"], "signatures, against the record", {"epoch": record.name})


def _own(path: Path) -> str:
    """The fingerprint of the party with this journal, which its checksums begin with."""
    identity = path.with_name("identity.pem")
    if not identity.is_file():
        raise EpochError(f"{path}: a journal without identity.pem beside it, which its checksums depend on: look at it in the party's folder")
    return str(_engine.identity_fingerprint(str(identity)))


def _journal(candidate: Candidate) -> Report:
    path = candidate.path
    lines = read_journal(path, _own(path))
    if not lines or not candidate.data.endswith(b"\n"):
        raise EpochError(f"{path}: empty, or its last line is torn: the party's next step cuts the line off")
    last = lines[-1]
    own = [line["said"]["kind"] for line in lines if line["own"] and line["epoch"] == last["epoch"]]
    said = [f"journal of epochs: {len(lines)} lines, the last change is to {last['epoch']}", f"this party there: {own[-1] if own else 'nothing'}"]
    return Report([*said, *openness(path)], "checksum of every line", {"lines": len(lines), "epoch": last["epoch"]})


def _mark(candidate: Candidate) -> Report:
    mark, left = Mark.parse(candidate.data), unaudited(candidate.path.parent)
    require(mark.size > 0, candidate.path, "the party writes it again with the next state of an epoch")
    lines = [f"how far the audit log has the journal of epochs: {mark.size:,} bytes of it; {left} states have no line yet"]
    return Report([*lines, *openness(candidate.path)], details={"bytes": mark.size, "left": left})


def _is_record(candidate: Candidate) -> bool:
    return candidate.path.parent.name in (RECORDS, STANDBYS) and re.fullmatch(r"[0-9a-f]{32}\.json", candidate.path.name) is not None


KINDS = (
    Kind("epoch of a party", lambda c: c.named(EPOCH_FILE), _epoch, ("parties/epochs/record",)),
    Kind("journal of epochs", lambda c: c.named(JOURNAL), _journal, ("model/journal", "parties/epochs/change", "parties/epochs/restore")),
    Kind("mark of audited epochs", lambda c: c.named(MARK), _mark, ("parties/epochs/audited",)),
    Kind("record of a change of epoch", _is_record, _record, ("parties/epochs/change", "parties/epochs/record", "parties/epochs/restore")),
    Kind(
        "votes for an epoch",
        lambda c: not c.is_folder and c.path.suffix == ".votes",
        _votes,
        ("parties/epochs/change", "parties/epochs/restore", "plans/epochs/orders"),
    ),
)
