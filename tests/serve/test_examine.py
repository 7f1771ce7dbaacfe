"""What ``keyquorum doctor`` says of a party that serves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.serve import examine
from keyquorum.serve.client import make_receiver
from typer.testing import CliRunner


def test_what_a_served_party_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committee = api.init(tmp_path / "committee", 2, "semi")
    assert list(examine.examine_serving(committee, [0, 1])) == [], "it never served"
    make_receiver(committee, "alice")
    folder = committee.party_folder(0)

    def said() -> dict[str, bool]:
        return {finding.text: finding.ok for finding in examine.examine_serving(committee, [0])}

    def fix(text: str) -> bool:
        return [ok for line, ok in said().items() if text in line] == [False]

    assert all(said().values()) and any("1 receivers are admitted" in line for line in said()) and any("GB free" in line for line in said())
    (folder / "receivers" / "bad.crt").write_text("half")
    assert fix("bad.crt: not a certificate: copy the receiver's .crt again, or remove it")
    (folder / "limits.json").write_text('{"all": ["5 waiting"]}')
    assert any("limits of receivers: 5 waiting; 0 have their own" in line for line in said())
    (folder / "limits.json").write_text("[]")
    assert fix("limits.json: damaged")
    (folder / "audit.jsonl").write_text("")
    (folder / "audit.jsonl").chmod(0o644)
    assert fix("audit.jsonl is open to others: run chmod 600")
    (folder / "audit.jsonl").chmod(0o600)
    (folder / "limits.json").unlink()
    (folder / "sessions.json").write_text('{"broken": 3, "failed": "party 1 sent a wrong share"}')
    assert fix("a check failed in a served session (party 1 sent a wrong share)")
    for rest, what in (("", "served sessions broke off"), (', "cut_offs": 300, "last": "party 1"', "challenges of MAC checks were cut off")):
        (folder / "sessions.json").write_text(f'{{"broken": 255, "failed": ""{rest}}}')
        assert said()[f"party 0: 255 {what}"]
        (folder / "sessions.json").write_text(f'{{"broken": 256, "failed": ""{rest}}}')
        assert fix(f"256 {what}, the limit is 256: the party does not serve: {folder / 'sessions.json'}: find out who, and remove the file")
    monkeypatch.setattr(examine.shutil, "disk_usage", lambda path: SimpleNamespace(free=50_000_000))
    assert fix("0.1 GB free on the disk") or fix("0.0 GB free on the disk")


def test_doctor_says_it(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 2, "semi")
    make_receiver(committee, "alice")
    (committee.party_folder(1) / "receivers" / "bad.crt").write_text("")
    result = CliRunner().invoke(app, ["doctor", str(committee.folder), "--seconds", "5"])
    text = result.output.replace("\n", "")
    assert "party 0: 1 receivers are admitted" in text and "bad.crt: not a certificate" in text and result.exit_code != 0
