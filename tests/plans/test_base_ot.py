"""How oblivious transfer begins: what committees say of it, that all parties say the same, and programs under both kinds."""

from __future__ import annotations

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from keyquorum import _engine, api
from keyquorum.cli import app
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError
from keyquorum.parties.context import PartyContext
from keyquorum.parties.doctor import examine
from keyquorum.parties.local import run_in_process
from typer.testing import CliRunner

UNKNOWN = "unknown base_ot 'rsa': choose one of curve25519, ml-kem"


def test_unknown_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommitteeError, match=UNKNOWN):
        api.init(tmp_path / "c", 2, "semi", base_ot="rsa")
    assert not (tmp_path / "c").exists()
    result = CliRunner().invoke(app, ["init", str(tmp_path / "c"), "-N", "2", "-E", "semi", "--base-ot", "rsa"])
    assert result.exit_code and UNKNOWN in str(result.exception or result.output)
    session = _engine.local_sessions(1)[0]
    with pytest.raises(_engine.UsageError, match='base OT is curve25519 or ml-kem, not "rsa"'):
        session.set_base_ot("rsa")


def test_new_committees_have_ml_kem_and_old_files_what_they_had(tmp_path: Path) -> None:
    made = api.init(tmp_path / "c", 2, "semi")
    file = tmp_path / "c/committee.toml"
    assert made.base_ot == Committee.load(tmp_path / "c").base_ot == "ml-kem"
    assert 'base_ot = "ml-kem"\n' in file.read_text()
    file.write_text(file.read_text().replace('base_ot = "ml-kem"\n', ""))
    old = Committee.load(tmp_path / "c")
    assert old.base_ot == "curve25519" and "base_ot" not in file.read_text()
    listed = [old.name, "semi", 1, [[p.index, p.fingerprint] for p in old.parties]]
    assert old.digest == hashlib.sha256(b"keyquorum committee v1" + json.dumps(listed).encode()).digest() != made.digest


def test_files_that_differ_are_named_before_a_session(tmp_path: Path) -> None:
    one = api.init(tmp_path / "one", 2, "semi")
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    other = replace(one, folder=tmp_path / "other", base_ot="curve25519")
    other.save()
    with ThreadPoolExecutor(2) as pool:
        looks = [pool.submit(lambda c=c, i=i: list(examine(c, [i], 20.0))) for i, c in enumerate([one, other])]
        said = [[line.text for line in look.result(60) if not line.ok] for look in looks]
    assert "base_ot" in said[0][0] and "ml-kem" in said[0][0] and "curve25519" in said[0][0]
    assert "base_ot" in said[1][0]


def test_parties_that_differ_are_told() -> None:
    def job(context: PartyContext) -> None:
        if context.party == 1:
            context.session.set_base_ot("ml-kem")
        context.session.engine("semi2k", "Z2^64", "test")

    with pytest.raises(_engine.EngineError, match=r'another kind of openings, or of base OT: "direct(, ml-kem)?" there, "direct(, ml-kem)?" here'):
        run_in_process(api.in_process_committee(3, "semi"), job)


@pytest.mark.parametrize(("protocol", "ots"), [("semi", 128), ("mascot", 224)])
def test_costs_of_both(protocol: str, ots: int) -> None:
    """Bytes that a party sends for a link: with ML-KEM two vectors, a seed and two ciphertexts for each base OT in place of two points."""

    def job(context: PartyContext) -> int:
        before: int = context.session.stats()["bytes_sent"]
        context.session.engine({"semi": "semi2k", "mascot": "spdz2k"}[protocol], "Z2^64", "test")
        return int(context.session.stats()["bytes_sent"]) - before

    committee = api.in_process_committee(2, protocol)
    curve, kem = (run_in_process(replace(committee, base_ot=kind), job)[0] for kind in ("curve25519", "ml-kem"))
    names = len(", ml-kem")  # in what is compared first
    assert kem - curve - names == ots * (2 * 1152 + 32 + 2 * 1088) - (ots * 64 + 32)
