"""Who changes an audit log is found out: lines are chained, and the party signs them."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum.cli import main
from keyquorum.model.errors import AuditError
from keyquorum.parties.audit import chain as audit_chain
from keyquorum.parties.audit import log as audit_log
from keyquorum.parties.audit import verify as audit_verify
from keyquorum.parties.audit.chain import HEAD, Head, Signer, chained, read_line
from keyquorum.parties.audit.log import AuditLog
from keyquorum.parties.audit.verify import Verification, fingerprint_beside, verify

LINES = 6


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A committee, whose party 0 keeps the log."""
    return api.init(tmp_path_factory.mktemp("audit") / "c", 2, "semi")


@pytest.fixture
def path(made: Any) -> Any:
    """The log of party 0, of six lines."""
    place = made.party_folder(0) / "audit.jsonl"
    write(made, place, LINES)
    yield place
    for file in made.party_folder(0).glob("audit*"):
        file.unlink()


def opened(committee: Any, place: Path) -> AuditLog:
    return AuditLog(place, {"party": 0}, signer=Signer(committee.identity_path(0)))


def write(committee: Any, place: Path, count: int) -> None:
    log = opened(committee, place)
    for number in range(count):
        log.write({"receiver": "ab" * 32, "sha256": f"{number:064x}", "result": "answered"})
    log.close()


def removed(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], *lines[3:]]


def changed(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b"answered", b"refused_"), *lines[3:]]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[3], lines[2], *lines[4:]]


def first_removed(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def doubled(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[2], *lines[3:]]


def cut_off(lines: list[bytes]) -> list[bytes]:
    return lines[:4]


Attack = Callable[[list[bytes]], list[bytes]]
ATTACKS: dict[Attack, str] = {
    removed: "line 3: the chain breaks here",
    changed: "line 3: the chain breaks here",
    swapped: "line 3: the chain breaks here",
    first_removed: "line 1: the log does not begin here",
    doubled: "line 4: the chain breaks here",
    cut_off: r"the log ends at line 3, .*audit.jsonl.head has line 5: 2 lines at its end are missing",
}


def attacked(path: Path, attack: Attack) -> None:
    path.write_bytes(b"".join(attack(path.read_bytes().splitlines(keepends=True))))


def forged(path: Path) -> None:
    """Somebody without the party's key takes a line out and makes the chain anew, with the old signatures, and the old head file."""
    lines = [read_line(line) for line in removed(path.read_bytes().splitlines(keepends=True))]
    last, out = Head(), b""
    for number, line in enumerate(lines):
        assert line is not None
        body = json.dumps({**line.entry, "number": number})
        last = Head(number + 1, audit_chain.hashed(last.chain, body))
        out += f'{body[:-1]}, "chain": "{last.chain}", "signature": "{line.signature}"}}\n'.encode()
    path.write_bytes(out)
    path.with_name(path.name + HEAD).unlink()


def test_a_log_is_chained_signed_and_whole(made: Any, path: Path) -> None:
    found = verify([path], fingerprint_beside(path))
    assert (found.first, found.head.number, found.unsigned, found.torn, found.earlier) == (0, LINES, 0, 0, 0)
    assert found.certificates == [made.parties[0].fingerprint]
    write(made, path, 2)  # the party starts again
    again = verify([path], fingerprint_beside(path), [found.head.chain])
    assert again.head.number == LINES + 2 and again.unsigned == 0
    with pytest.raises(AuditError, match="no line has the chain"):
        verify([path], None, ["ab" * 32])


@pytest.mark.parametrize("attack", ATTACKS)
def test_audit_chain_blocked_lines_taken_or_moved(path: Path, attack: Attack) -> None:
    attacked(path, attack)
    with pytest.raises(AuditError, match=ATTACKS[attack]):
        verify([path], fingerprint_beside(path))


def test_audit_chain_blocked_forged_anew(made: Any, path: Path) -> None:
    """The chain fits, its signatures do not; nor does a log of another key, or one without signatures."""
    forged(path)
    with pytest.raises(AuditError, match="line 3: its signature is not of the party's key"):
        verify([path], fingerprint_beside(path))
    other = path.with_name("audit2.jsonl")
    log = AuditLog(other, {"party": 0}, signer=Signer(made.identity_path(1)))
    log.write({"result": "answered"})
    with pytest.raises(AuditError, match="the log is another party's, or forged"):
        verify([other], fingerprint_beside(other))
    assert verify([other], None).certificates == [made.parties[1].fingerprint], "whose it is must be compared"
    plain = path.with_name("audit3.jsonl")
    AuditLog(plain, {"party": 0}).write({"result": "answered"})
    with pytest.raises(AuditError, match="the log is not signed"):
        verify([plain], fingerprint_beside(plain))


@pytest.mark.parametrize("attack", [removed, changed, swapped, doubled])
def test_audit_chain_ablated_links(path: Path, monkeypatch: pytest.MonkeyPatch, attack: Attack) -> None:
    """Without the comparison of hashes a log of signed lines may lose them; the head beside it shows the number alone."""
    monkeypatch.setattr(Verification, "_links", lambda self, line: True)
    monkeypatch.setattr(Verification, "_is_signed", lambda self, line: True)
    attacked(path, attack)
    assert verify([path], fingerprint_beside(path)).head.number > 0


def test_audit_chain_ablated_signatures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of signatures a chain that was made anew passes."""
    monkeypatch.setattr(Verification, "_is_signed", lambda self, line: True)
    forged(path)
    assert verify([path], fingerprint_beside(path)).head.number == LINES - 1


def test_audit_chain_ablated_head(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the head beside it, or a value that is kept elsewhere, a log that was cut off at its end passes."""
    chain = verify([path], fingerprint_beside(path)).head.chain
    attacked(path, cut_off)
    monkeypatch.setattr(audit_verify, "read_head", lambda log: None)
    assert verify([path], fingerprint_beside(path)).head.number == 4
    with pytest.raises(AuditError, match="no line has the chain"):
        verify([path], fingerprint_beside(path), [chain])


def appended(path: Path, number: int, end: str = "") -> None:
    """Somebody who may write the log, but has not the party's key, goes on with its chain, and may end it with a signature of the party's, of another line or none. So does a write that was cut off in the middle."""
    before = path.read_bytes()
    signature = read_line(before.splitlines(keepends=True)[-1]).signature  # type: ignore[union-attr]
    data, _, _ = chained([{"party": 0, "forged": n} for n in range(number)], verify([path]).head, None, False)
    if end in ("random", "another"):
        data = data[:-3] + f'", "signature": "{signature if end == "another" else "ab" * 64}"}}\n'.encode()
    path.write_bytes(before + data + (before.splitlines(keepends=True)[-1] if end == "copied" else b""))


@pytest.mark.parametrize("end", ["", "random", "another", "copied"])
@pytest.mark.parametrize("goes_on", [False, True])
def test_audit_chain_blocked_unsigned_lines(path: Path, made: Any, goes_on: bool, end: str) -> None:
    """Lines behind the last one that the party signed are no lines: a party that starts takes them off, does not read them, and never signs them."""
    appended(path, 2, end)
    if not end:
        found = verify([path], fingerprint_beside(path))
        assert (found.head.number, found.unsigned) == (LINES + 2, 2)
    log = AuditLog(path, {"party": 0}, signer=Signer(made.identity_path(0)), goes_on=goes_on)
    assert not any("forged" in entry for entry in log.entries_from(0))
    log.write({"result": "answered"})
    log.close()
    found = verify([path], fingerprint_beside(path))
    assert (found.head.number, found.unsigned) == (LINES + 1, 0) and b"forged" not in path.read_bytes()


def test_audit_chain_ablated_unsigned_lines(path: Path, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above, by a party that goes on from the last line whether it is signed or not: it signs what was appended."""
    appended(path, 2)
    monkeypatch.setattr(audit_log, "last_line", lambda read, size, signed: audit_chain.last_line(read, size))
    write(made, path, 1)
    found = verify([path], fingerprint_beside(path))
    assert (found.head.number, found.unsigned) == (LINES + 3, 0) and b"forged" in path.read_bytes()


def test_audit_chain_ablated_bogus_signatures(path: Path, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above, by a party that does not verify signatures when it starts: it goes on from a line that somebody else made."""
    appended(path, 2, "random")
    monkeypatch.setattr(AuditLog, "_is_signed", lambda self, line: line.signature != "")
    write(made, path, 1)
    assert b"forged" in path.read_bytes()


def test_entries_are_of_the_chain(path: Path, made: Any) -> None:
    """Also where forged lines cannot be taken off, in a file that may only grow, they are not read."""
    head = verify([path]).head
    appended(path, 2)
    write_on = AuditLog(path, {"party": 0}, signer=Signer(made.identity_path(0)), goes_on=True)
    write_on._length, write_on._begins = path.stat().st_size, True
    write_on.write({"result": "answered"})
    found = list(write_on.entries_from(0))
    write_on.close()
    assert [entry["number"] for entry in found] == list(range(head.number, -1, -1)) and b"forged" in path.read_bytes()


def test_a_forged_head_is_not_believed(path: Path, made: Any) -> None:
    """It would have the party go on from a number far away, as if lines had been taken out."""
    head = path.with_name(path.name + HEAD)
    head.write_bytes(audit_chain.write_head(path, Head(1 << 62, "ab" * 32), "cd" * 64))
    write(made, path, 1)
    assert verify([path], fingerprint_beside(path)).head.number == LINES + 1


def test_the_chain_goes_on_in_a_new_file(made: Any, path: Path) -> None:
    """Moved away while the party serves, and while it does not."""
    log = opened(made, path)
    log.write({"result": "answered"})
    path.rename(path.with_name("audit.1"))
    log.write({"result": "answered"})
    log.close()
    path.rename(path.with_name("audit.2"))
    write(made, path, 2)
    files = [path.with_name("audit.1"), path.with_name("audit.2"), path]
    found = verify(files, fingerprint_beside(path))
    assert (found.first, found.head.number) == (0, LINES + 4)
    assert verify(files[1:], fingerprint_beside(path)).first == LINES + 1
    with pytest.raises(AuditError, match=f"lines {LINES + 1} to {LINES + 1} before it are missing"):
        verify([files[0], files[2]], fingerprint_beside(path))
    with pytest.raises(AuditError, match="the chain breaks here"):
        verify([files[1], files[0], files[2]], fingerprint_beside(path))
    files[1].write_bytes(b"")
    with pytest.raises(AuditError, match="are missing"):
        verify(files, fingerprint_beside(path))


def test_a_party_that_was_killed_before_its_head_was_written(made: Any, path: Path) -> None:
    """Its log was moved away before it started again: it goes on from the head that it knows, and that is no forgery."""
    head = path.with_name(path.name + HEAD)
    kept = head.read_bytes()
    write(made, path, 1)
    head.write_bytes(kept)
    path.rename(path.with_name("audit.1"))
    write(made, path, 1)
    assert verify([path.with_name("audit.1"), path], fingerprint_beside(path)).head.number == LINES + 1


@pytest.mark.parametrize("grows_only", [False, True])
def test_what_a_full_disk_cut_off_is_no_line(made: Any, path: Path, monkeypatch: pytest.MonkeyPatch, grows_only: bool) -> None:
    """Torn at a start, and torn in use: nothing was answered for it, so it is taken off; where the file may only grow it is left out of the chain."""
    path.write_bytes(path.read_bytes() + b'{"time": "2026-')
    if grows_only:

        def refused(file: int, length: int) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "ftruncate", refused)
    log, write_bytes = opened(made, path), os.write
    log.write({"result": "answered"})

    def full(file: int, data: Any) -> int:
        if bytes(data) == b"\n":  # the end of a torn line
            return write_bytes(file, data)
        write_bytes(file, data[:50])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for _ in range(2):
            with pytest.raises(AuditError, match="cannot write its audit log"):
                log.write({"result": "answered"})
            with pytest.raises(AuditError, match="cannot write its audit log"):
                log.require()
    log.require()
    log.write({"result": "answered"})
    log.close()
    found = verify([path], fingerprint_beside(path))
    assert found.head.number == LINES + 3 and found.unsigned == 0
    assert (found.torn > 0) == grows_only
    entries = [line.entry for line in map(read_line, path.read_bytes().splitlines(keepends=True)) if line is not None]
    assert entries[-2]["event"] == "the log could not be written: No space left on device"


def test_the_lines_of_a_batch_take_one_sync(made: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Receivers whose answers are there at the same time: while one write is under way the others wait, and are written together, under one signature."""
    log, gate, syncs, fsync = opened(made, path), threading.Event(), list[int](), os.fsync

    def slow(file: int) -> None:
        syncs.append(file)
        assert gate.wait(30)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow)
    threads = [threading.Thread(target=log.write, args=({"n": n},)) for n in range(20)]
    for thread in threads:
        thread.start()
    end = threading.Event()
    while len(log._waiting) < 19 and not end.wait(0.01):
        pass
    gate.set()
    for thread in threads:
        thread.join(30)
    log.close()
    found = verify([path], fingerprint_beside(path))
    assert found.head.number == LINES + 20 and len(syncs) == 2
    signed = [line.signature != "" for line in map(read_line, path.read_bytes().splitlines(keepends=True)[LINES:]) if line is not None]
    assert sum(signed) == 2 and signed[-1]


def test_the_lines_of_an_earlier_build_stand_before_the_chain(made: Any, path: Path) -> None:
    path.write_bytes(b'{"time": "2026-01-01T00:00:00.000Z", "party": 0}\n' * 2)
    path.with_name(path.name + HEAD).unlink()
    write(made, path, 2)
    found = verify([path], fingerprint_beside(path))
    assert (found.earlier, found.first, found.head.number) == (2, 0, 2)


def test_a_log_without_its_chain_is_refused(made: Any, path: Path, tmp_path: Path) -> None:
    """Who takes off numbers, chains and signatures, and the file beside the log, must not leave a log that verifies."""
    stripped = tmp_path / "audit.jsonl"
    entries = [line.entry for line in map(read_line, path.read_bytes().splitlines(keepends=True)) if line is not None]
    kept = [{k: v for k, v in entry.items() if k not in ("number", "previous", "certificate")} for entry in entries]
    stripped.write_text("".join(json.dumps(entry) + "\n" for entry in kept))
    for fingerprint in (None, made.parties[0].fingerprint):
        with pytest.raises(AuditError, match=r"audit\.jsonl: no line is of a chain"):
            verify([stripped], fingerprint)
    (tmp_path / "empty.jsonl").touch()
    assert verify([tmp_path / "empty.jsonl"]).head.number == 0


def test_the_command(made: Any, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def said(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["keyquorum", "audit", "verify", str(path), *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    code, out, _ = said()
    assert (
        code == 0
        and "6 lines, chained: 0 to 5" in out
        and f"signed under the certificate {made.parties[0].fingerprint}, as committee.toml has it" in out
    )
    chain = json.loads(said("--json")[1])["chain"]
    assert said("--known", chain, "--committee", made.folder, "--party", 0)[0] == 0
    for arguments, text in (
        (["--known", "x"], "--known x: give 64 hexadecimal digits"),
        (["--party", 0], "give both, or none"),
        (["--committee", made.folder, "--party", 1], "the log is another party's, or forged"),
        (["--committee", made.folder, "--party", 7], "there is no party 7"),
    ):
        code, _, error = said(*arguments)
        assert code == 1 and text in error
    attacked(path, removed)
    code, _, error = said()
    assert code == 1 and "line 3: the chain breaks here" in error
    path.unlink()
    assert "cannot be read" in said()[2]


def test_a_changed_line_before_a_start_is_no_line_of_an_earlier_build(made: Any, path: Path) -> None:
    """A line whose number is gone is no part of the chain, which begins again with the next start of the party."""
    write(made, path, 1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0].replace(b'"number"', b'"numbes"') + b"".join(lines[LINES:]))
    with pytest.raises(AuditError, match="the chain goes on here after lines that are no part of it"):
        verify([path], fingerprint_beside(path))
