"""Products and random bits with malicious parties: the benchmark runs them, and its lines have the measured figures."""

from __future__ import annotations

import re

import pytest
from keyquorum.bench import verified
from keyquorum.model.chosen_committees import REPLICATED, VERIFIED_REPLICATED


def test_rows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification adds rounds to a program, and few bytes: its cost hardly depends on the number of products."""
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    assert verified.main(["--repeats", "1", "--only", VERIFIED_REPLICATED, "--items", "50000"]) == 0
    printed = capsys.readouterr().out
    found = re.findall(
        rf"^verified: row=(\S+) protocol={VERIFIED_REPLICATED} engine=embedded program_of=(\S+) seconds=\S+ mb=(\S+) rounds=(\d+) cpu_seconds=\S+$",
        printed,
        re.M,
    )
    assert [(row, name) for row, name, _, _ in found] == [(row, name) for row in verified.PROGRAMS for name in (REPLICATED, VERIFIED_REPLICATED)]
    mb, rounds = [float(f[2]) for f in found], [int(f[3]) for f in found]
    assert mb[0] == pytest.approx(3 * 50_000 * 8 / 1e6, rel=0.05), "an element a party and product"
    for plain, checked in ((0, 1), (2, 3)):
        assert mb[plain] <= mb[checked] < 1.1 * mb[plain] + 0.1 and rounds[plain] < rounds[checked]
