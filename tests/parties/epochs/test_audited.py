"""Lines of epochs in audit logs: one for each state, also after a crash or a full disk, and in one chain with those of a daemon."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import DECIDED
from keyquorum.parties.audit.chain import Signer, chained, read_line
from keyquorum.parties.audit.log import AuditLog
from keyquorum.parties.audit.verify import verify
from keyquorum.parties.epochs import Change, Record, audited
from keyquorum.parties.epochs.audited import MARK, unaudited
from keyquorum.parties.epochs.lines import read_journal
from keyquorum.plans.epochs.orders import examine_epochs

from tests.long import LONG

from .changes import OLD, Killed, committee_of, killed_at, prepare, record_of, talk


def log_of(committee: Committee, party: int) -> Path:
    return committee.party_folder(party) / "audit.jsonl"


def lines_of(committee: Committee, party: int, name: str = "audit.jsonl") -> list[dict[str, object]]:
    """Entries of a log, after its verification."""
    path = committee.party_folder(party) / name
    return [json.loads(line) for line in path.read_text().splitlines()]


def states(committee: Committee, party: int) -> list[str]:
    """States in a log whose chain and signatures hold, with the numbers of own lines of the journal."""
    folder = committee.party_folder(party)
    verify([log_of(committee, party)], committee.parties[party].fingerprint)
    own = [line["said"]["kind"] for line in read_journal(folder / "epochs.journal", committee.parties[party].fingerprint) if line["own"]]
    found = [str(line["state"]) for line in lines_of(committee, party) if line.get("event") == "epoch"]
    assert Counter(found) == Counter(own), "one line for each state"
    assert not unaudited(folder)
    return found


def erase_all(committee: Committee, changes: list[Change]) -> None:
    for change in changes:
        change.erase()


def test_every_state_of_a_change_has_its_line(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    record = replace(record_of(committee), dealers=(0, 2), checks=("seeds compared",))
    changes = [prepare(committee, party, record) for party in range(3)]
    assert talk(changes) == ["committed"] * 3
    erase_all(committee, changes)
    assert states(committee, 1) == ["proposed", "voted", "committed", "erased"]
    *_, committed, erased = lines_of(committee, 1)
    said = {
        "event": "epoch",
        "epoch": record.name,
        "epoch_number": 1,
        "record": record.digest,
        "from": committee.digest.hex(),
        "to": committee.digest.hex(),
    }
    said |= {"keys": {"k": "ab" * 16}, "dealers": [0, 2], "checks": ["seeds compared"], "party": 1}
    assert {name: committed[name] for name in said} == said and committed["result"] == "new epoch"
    assert erased["result"] == "old shares erased" and erased["bytes_erased"] == 3 * 400
    assert OLD[:20] not in log_of(committee, 1).read_bytes()


def test_refusals_and_what_is_given_up(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    record = record_of(committee)
    refused = Change.propose(committee, 0, record)
    refused.refuse()
    frozen = prepare(committee, 1, record)
    frozen.give_up([committee.parties[2].fingerprint])
    talk([refused, frozen])
    assert states(committee, 0) == ["proposed", "refused"] and lines_of(committee, 0)[-1]["result"] == "old epoch"
    assert states(committee, 1) == ["proposed", "voted", "frozen", "given-up"]
    assert lines_of(committee, 1)[2]["lost"] == [committee.parties[2].fingerprint]


def _change(committee: Committee, record: Record) -> None:
    """One party's steps, as after a restart."""
    Change.unfinished(committee, 0)
    last = Change.last(committee, 0)
    change = last if last is not None and last.standing.stage in DECIDED else prepare(committee, 0, record)
    for party in (1, 2):
        other = Change(committee, party, change.record)
        change.hear(other.show())
        change.advance()
        other.hear(change.show())
        other.advance()
    talk([change, *(Change(committee, party, change.record) for party in (1, 2))])
    change.erase()


def test_a_crash_at_any_point_leaves_one_line_for_each_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between journal and log the line is missing, and is written later; between log and mark it is found in the log."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    place, passed = 0, list[str]()
    while True:
        folder = tmp_path / str(place)
        folder.mkdir()
        committee = committee_of(folder)
        record = record_of(committee)
        for party in (1, 2):
            prepare(committee, party, record)
        passed.clear()
        try:
            with killed_at(place, passed):
                _change(committee, record)
            break
        except Killed:
            pass
        _change(committee, record)
        assert states(committee, 0) == ["proposed", "voted", "committed", "erased"], passed[-1]
        place += 1 if LONG else 2
    assert {"epoch/audited", "epoch/voted/durable"} <= set(passed)


def test_without_the_search_a_crash_doubles_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AuditLog, "entries_from", lambda self, number: iter(()))
    committee = committee_of(tmp_path)
    record = record_of(committee)
    monkeypatch.setattr(audited, "reached", lambda name: (_ for _ in ()).throw(Killed(name)))
    with pytest.raises(Killed):
        Change.propose(committee, 0, record)
    monkeypatch.undo()
    monkeypatch.setattr(AuditLog, "entries_from", lambda self, number: iter(()))
    prepare(committee, 0, record)
    with pytest.raises(AssertionError, match="one line for each state"):
        states(committee, 0)


@pytest.mark.parametrize("ablated", [False, True], ids=["verified", "ablated"])
def test_a_forged_line_keeps_no_state_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """Somebody who may write the log appends the line of a state before the party does, with a signature of nobody. Without its verification the party takes it for its own."""
    committee = committee_of(tmp_path)
    prepare(committee, 0, record_of(committee))
    with monkeypatch.context() as patch:
        patch.setattr("keyquorum.parties.epochs.change.audit_states", lambda *given: None)
        Change.last(committee, 0).give_up([committee.parties[2].fingerprint])  # type: ignore[union-attr]
    checksum = (committee.party_folder(0) / "epochs.journal").read_text().splitlines()[-1].partition(" ")[0]
    path = log_of(committee, 0)
    data, _, _ = chained([{"event": "epoch", "state": "voted", "journal": checksum}], verify([path]).head, None, False)
    path.write_bytes(path.read_bytes() + data[:-3] + f'", "signature": "{"ab" * 64}"}}\n'.encode())
    if ablated:
        monkeypatch.setattr(AuditLog, "_is_signed", lambda self, line: line.signature != "")
    Change.unfinished(committee, 0)
    found = [line["state"] for line in lines_of(committee, 0)]
    assert found == ["proposed", "voted", "voted" if ablated else "frozen"]


def test_a_full_disk_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No line can be written: the change goes on to its end, and its lines follow when there is room."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    prepare(committee, 0, record)
    size = log_of(committee, 0).stat().st_size

    def full(descriptor: int, data: bytes) -> int:
        os.pwrite(descriptor, bytes(data)[:20], os.fstat(descriptor).st_size)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("keyquorum.parties.audit.log.os.write", full)
    changes = [prepare(committee, party, record) for party in range(3)]
    assert talk(changes) == ["committed"] * 3
    erase_all(committee, changes)
    assert log_of(committee, 0).stat().st_size == size and unaudited(committee.party_folder(0)) == 2
    assert "No space left on device): epochs.journal has it" in capsys.readouterr().err
    found = [finding.text for finding in examine_epochs(committee, [0]) if not finding.ok]
    assert found == ["party 0: 2 states of its epochs have no line in its audit log: make room or see its mode, then keyquorum epoch commit"]
    monkeypatch.undo()
    Change.unfinished(committee, 0)
    assert states(committee, 0) == ["proposed", "voted", "committed", "erased"]
    assert not [finding for finding in examine_epochs(committee, [0]) if not finding.ok]


def test_a_mark_that_is_lost_or_of_another_journal_costs_a_search(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    record = record_of(committee)
    prepare(committee, 0, record)
    mark = committee.party_folder(0) / MARK
    for content in (
        b"",
        b"{",
        mark.read_bytes().replace(b'"tail": "', b'"tail": "0')[:-3] + b"}\n",
        b'{"format": 1, "bytes": 9, "tail": "' + b"0" * 64 + b'", "number": 1}\n',
    ):
        mark.write_bytes(content)
        Change.unfinished(committee, 0)
        assert states(committee, 0) == ["proposed", "voted"]


def test_a_log_that_was_moved_away_goes_on(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    record = record_of(committee)
    changes = [prepare(committee, party, record) for party in range(3)]
    moved = committee.party_folder(0) / "audit.1"
    log_of(committee, 0).rename(moved)
    talk(changes)
    assert verify([moved, log_of(committee, 0)], committee.parties[0].fingerprint).head.number == 3
    assert [line["state"] for line in lines_of(committee, 0)] == ["committed"]


def _serve(committee: Committee, lines: int, begun: object) -> None:
    log = AuditLog(log_of(committee, 0), {"party": 0, "key_id": "ab" * 16}, signer=Signer(committee.identity_path(0)))
    begun.wait()  # type: ignore[attr-defined]
    for number in range(lines):
        log.write({"receiver": "cd" * 32, "request": f"request{number}", "sha256": None, "bytes": 1, "result": "answered"})
    log.close()


@pytest.mark.parametrize("ablated", [False, True], ids=["locked", "ablated"])
def test_a_daemon_and_an_order_write_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """Three processes, one chain. Without the step that goes on from what others wrote, their lines are cut off."""
    if ablated:
        monkeypatch.setattr(AuditLog, "_catch_up", lambda self: None)
    monkeypatch.setattr("os.fsync", lambda _: None)
    committee, context = committee_of(tmp_path), multiprocessing.get_context("fork")
    begun = context.Barrier(3)
    served = [context.Process(target=_serve, args=(committee, 60, begun)) for _ in range(2)]
    for process in served:
        process.start()
    record = record_of(committee)
    begun.wait()
    changes = [prepare(committee, party, record) for party in range(3)]
    assert talk(changes) == ["committed"] * 3
    erase_all(committee, changes)
    for process in served:
        process.join(60)
        assert process.exitcode == 0
    whole = [line.entry for line in map(read_line, log_of(committee, 0).read_bytes().splitlines(keepends=True)) if line is not None]
    if ablated:
        assert len(whole) < 124
        return
    assert states(committee, 0) == ["proposed", "voted", "committed", "erased"]
    assert len(whole) == 124 and verify([log_of(committee, 0)]).head.number == 124


def test_lines_that_the_party_did_not_sign_are_taken_off(tmp_path: Path) -> None:
    """Somebody else appends a line that is chained, while a daemon has the log open: it is no line of the party."""
    from keyquorum.parties.audit.chain import Head, chained

    committee = committee_of(tmp_path)
    log = AuditLog(log_of(committee, 0), {"party": 0}, signer=Signer(committee.identity_path(0)))
    log.write({"event": "begun"})
    forged, _, _ = chained([{"time": "now", "party": 0, "event": "forged"}], Head(log.number, log._head.chain), None, False)
    with log_of(committee, 0).open("ab") as file:
        file.write(forged)
    log.write({"event": "later"})
    assert [line["event"] for line in lines_of(committee, 0)] == ["begun", "later"]
    assert verify([log_of(committee, 0)], committee.parties[0].fingerprint).unsigned == 0
