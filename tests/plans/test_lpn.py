"""Committees that do not assume learning parity with noise: `keyquorum init --no-lpn`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError
from keyquorum.parties import PartyContext, run_in_process

PRIME = "F_1152921504606584833"


def test_the_choice_is_in_file_and_digest(tmp_path: Path) -> None:
    made = api.init(tmp_path / "c", 2, "mascot", lpn=False)
    assert "lpn = false" in (tmp_path / "c" / "committee.toml").read_text().splitlines()
    loaded = Committee.load(tmp_path / "c")
    assert not loaded.lpn and loaded.digest == made.digest
    assert ("committee.lpn", "false") in loaded.entries()
    assumed = replace(made, lpn=True)
    assert assumed.digest != made.digest
    assumed.save()
    assert "lpn" not in (tmp_path / "c" / "committee.toml").read_text()


def test_refusals(tmp_path: Path) -> None:
    text = "rep-field assumes no LPN anyway: --no-lpn is for mascot and spdz2k"
    with pytest.raises(CommitteeError, match=text):
        api.init(tmp_path / "c", 3, "rep-field", lpn=False)
    assert not (tmp_path / "c").exists()
    api.init(tmp_path / "c", 2, "mascot")
    file = tmp_path / "c" / "committee.toml"
    written = file.read_text()
    file.write_text("lpn = 0\n" + written)
    with pytest.raises(CommitteeError, match="lpn = 0: write true or false"):
        Committee.load(tmp_path / "c")


def test_parties_that_differ_are_told() -> None:
    def job(context: PartyContext) -> None:
        if context.party == 1:
            context.session.set_lpn(False)
        context.session.engine("mascot", PRIME, "test")

    with pytest.raises(_engine.EngineError, match=r'another choice on learning parity with noise: "(not )?used" there'):
        run_in_process(api.in_process_committee(2, "mascot"), job)


@pytest.mark.parametrize(("protocol", "domain", "count"), [("mascot", PRIME, 1 << 16), ("spdz2k", "Z2^64", 1 << 14)])
def test_many_elements_without_the_assumption(protocol: str, domain: str, count: int) -> None:
    """Inputs are right with and without, and only the bytes over fields change: modulo 2^k by the words of the hello alone."""

    def sent(lpn: bool) -> float:
        def job(context: PartyContext) -> int:
            engine = context.session.engine(protocol, domain, "test")
            values = np.arange(count, dtype=np.int64)
            x = engine.input(0, len(values), values if context.party == 0 else None)
            opened = np.asarray(engine.read(engine.open(x)))
            assert (opened.astype(np.int64) == values).all()
            return int(context.session.stats()["bytes_sent"])

        return float(sum(run_in_process(api.in_process_committee(2, protocol, lpn=lpn), job))) / count

    few, many = sent(True), sent(False)
    assert many > 2 * few if protocol == "mascot" else abs(many - few) < 0.01
