"""The audit log of a served party: a line for every request before its answer leaves, nothing secret, and no answer without it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from keyquorum.model.errors import AuditError, CiphertextError, PartyError
from keyquorum.parties.audit.log import AuditLog
from keyquorum.serve.client import Receiver, Refused
from keyquorum.serve.wire import receive_message, send_message

from tests.commands import Forked, run
from tests.serve.test_listener import Party


def lines(path: Path) -> list[dict[str, Any]]:
    """All lines, each whole."""
    text = path.read_text()
    assert text.endswith("\n") or not text
    return [json.loads(line) for line in text.splitlines()]


def content(line: dict[str, Any]) -> dict[str, Any]:
    """A line without its place in the chain."""
    return {name: value for name, value in line.items() if name not in ("number", "previous", "certificate", "chain", "signature")}


def ask(channel: Any, body: bytes, name: str = "0123456789") -> tuple[dict[str, Any], bytes]:
    send_message(channel, {"id": name}, body)
    message = receive_message(channel, 1000)
    assert message is not None
    return message[0], bytes(message[1])


@pytest.fixture
def party(tmp_path: Path) -> Any:
    made = Party(tmp_path)
    yield made
    made.listener.close()
    made.audit.close()


def test_a_line_for_every_request(party: Any) -> None:
    """A line has the receiver, the id, the digest and the result of a request; it has neither the request nor the answer. A text
    that is no id is not written."""
    secret = b"a message that nobody else should read"
    with party.channel() as channel:
        assert ask(channel, secret) == ({"status": "ok"}, secret)
        assert ask(channel, secret, name="short")[0]["status"] == "refused"
    answered, refused = map(content, lines(party.audit.path))
    common = {"party": 0, "receiver": party._fingerprint("alice"), "sha256": hashlib.sha256(secret).hexdigest(), "bytes": len(secret)}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", answered.pop("time")) and refused.pop("time")
    assert answered == {**common, "request": "0123456789", "result": "answered"}
    assert refused == {
        **common, "request": None, "result": "refused", "type": "CiphertextError", "error": "a request needs an id of 8 to 64 letters and digits",
    }  # fmt: skip
    assert b"nobody else" not in party.audit.path.read_bytes()
    assert party.audit.path.stat().st_mode & 0o777 == 0o600


def test_the_line_is_on_the_disk_before_the_answer_leaves(party: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent before the file was synchronised after its last byte."""
    events: list[str] = []
    write, sync, send = os.write, os.fsync, send_message

    def ours(descriptor: int) -> bool:
        return bool(descriptor == party.audit._descriptor)

    monkeypatch.setattr(os, "write", lambda d, data: (events.append("write") if ours(d) else None, write(d, data))[1])
    monkeypatch.setattr(os, "fsync", lambda d: (events.append("sync") if ours(d) else None, sync(d))[1])
    monkeypatch.setattr("keyquorum.serve.listener.send_message", lambda *a: (events.append("send"), send(*a))[1])
    with party.channel() as channel:
        ask(channel, b"x")
    assert events == ["write", "sync", "send"]


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_without_the_log_nothing_is_answered(party: Any, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    """A full disk: the answer is withheld, later requests are not even computed; when there is room again, they are answered and every line is
    whole."""
    computed: list[bytes] = []
    answer, said = party._answer, []
    party.listener._requests.add = lambda key, body: (computed.append(bytes(body)), answer(key, body))[1]
    party.audit._warn = said.append
    working = getattr(os, fails)

    def full(descriptor: int, *data: Any) -> Any:
        if descriptor != party.audit._descriptor:
            return working(descriptor, *data)
        if fails == "write":
            working(descriptor, bytes(data[0])[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with party.channel() as channel:
        monkeypatch.setattr(os, fails, full)
        for _ in range(3):
            head, body = ask(channel, b"secret")
            assert head["type"] == "AuditError" and "cannot write its audit log" in head["error"] and body == b""
        assert computed == [b"secret"] if fails == "write" else computed
        assert [s for s in said if "No space left on device" in s] == said and len(said) == 1
        monkeypatch.setattr(os, fails, working)
        assert ask(channel, b"later") == ({"status": "ok"}, b"later")
    assert "can be written again" in said[-1]
    last = party.audit.path.read_text().splitlines()[-1]
    assert json.loads(last)["sha256"] == hashlib.sha256(b"later").hexdigest()


def test_a_log_that_was_moved_away_is_begun_anew(party: Any, tmp_path: Path) -> None:
    with party.channel() as channel:
        ask(channel, b"one")
        party.audit.path.rename(tmp_path / "audit.1")
        ask(channel, b"two")
    assert [entry["bytes"] for entry in lines(tmp_path / "audit.1") + lines(party.audit.path)] == [3, 3]
    assert len(lines(party.audit.path)) == 1


def test_lines_of_many_threads_are_whole(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", {})
    threads = [threading.Thread(target=lambda i=i: [log.write({"n": i, "pad": "x" * 500}) for _ in range(10)]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(log.path)) == 80
    log.close()
    log.write({"n": "last refusal"})
    assert log._descriptor == -1 and lines(log.path).pop()["n"] == "last refusal"
    AuditLog(tmp_path / "a.jsonl", {}).write({"n": "appended"})
    assert len(lines(log.path)) == 82


def test_files_that_are_no_log(tmp_path: Path) -> None:
    (tmp_path / "open").touch(mode=0o644)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, message in {
        "open": "open to others .mode 644.: chmod 600 it",
        "link": "cannot be opened",
        "pipe": "no regular file",
        "missing/a": "cannot be opened .No such file or directory.: name another file with --audit-log",
        "..": "cannot be opened",
    }.items():
        with pytest.raises(AuditError, match=message):
            AuditLog(tmp_path / name, {})
    assert not (tmp_path / "elsewhere").exists()


SERVE = [sys.executable, "-u", "-c", "from keyquorum.cli import main; main()", "serve", "committee"]


def test_served_committees_log(tmp_path: Path) -> None:
    """The command: two processes, an answered and a refused request, timestamps, JSON events, an end at SIGTERM."""
    import numpy as np
    from keyquorum import api
    from keyquorum.fhe.lwe import encrypt, lwe_parameters
    from keyquorum.schemes.key_folder import read_share
    from keyquorum.schemes.lwe.key import load_lwe_key
    from keyquorum.serve.client import make_receiver

    committee = api.init(tmp_path / "committee", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    info = load_lwe_key(committee.key_folder(0, "key"))
    shares = [read_share(committee.key_folder(i, "key"), info, i, 0) for i in range(2)]
    secret = np.asarray(sum(share.words[0, :1024] for share in shares)).astype(np.int64)
    ciphertexts = encrypt(lwe_parameters("lwe64-p2"), secret, np.array([1, 0, 1]), np.random.default_rng(1))
    data = ciphertexts.to_bytes(info.key_id)
    identity, _ = make_receiver(committee, "alice")
    options = (["0", "key", "--keep", "200"], ["1", "key", "--keep", "200", "--json", "--audit-log", str(tmp_path / "one.jsonl")])
    served = [Forked([*SERVE, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for words in options]
    try:
        first = [run.stdout.readline() for run in served if run.stdout is not None]
        receiver = Receiver(committee, identity)
        assert receiver.decrypt(data).messages.tolist() == [1, 0, 1]
        with pytest.raises((Refused, PartyError)):
            receiver.decrypt(ciphertexts.to_bytes("00" * 16))
        receiver.close()
    finally:
        for run in served:
            run.terminate()
    ends = [run.communicate(timeout=60) for run in served]
    assert [run.returncode for run in served] == [0, 0], ends
    assert re.match(
        r"\d{4}-\d\d-\d\dT[0-9:.]+Z party 0: serves key key to receivers at 127\.0\.0\.1:\d+, metrics at 127\.0\.0\.1:\d+, audit log \S+", first[0]
    )
    assert json.loads(first[1])["event"].startswith("serves key key") and json.loads(first[1])["party"] == 1
    assert all(set(json.loads(line)) == {"time", "party", "event"} for line in ends[1][0].splitlines())
    refusals = []  # the receiver shuts its channels at the first one, so the other party may have got no whole request
    for path in (committee.party_folder(0) / "audit.jsonl", tmp_path / "one.jsonl"):
        answered, *refused = lines(path)
        assert (answered["result"], answered["sha256"], answered["key_id"]) == ("answered", hashlib.sha256(data).hexdigest(), info.key_id)
        assert answered["rounding"] == "round_ltz_circuit" and all(line["receiver"] == answered["receiver"] for line in refused)
        refusals += [line for line in refused if line["sha256"] is not None]
    assert 1 <= len(refusals) <= 2
    assert all(line["result"] == "refused" and line["type"] == CiphertextError.__name__ for line in refusals)


def test_a_party_without_a_log_does_not_start(tmp_path: Path) -> None:
    from keyquorum import api
    from keyquorum.serve.client import make_receiver

    committee = api.init(tmp_path / "committee", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    make_receiver(committee, "alice")
    done = run([*SERVE, "0", "key", "--audit-log", "missing/log"], tmp_path)
    assert done.returncode == 1 and "missing/log: the audit log cannot be opened" in done.stderr and len(done.stderr.strip().splitlines()) == 1
