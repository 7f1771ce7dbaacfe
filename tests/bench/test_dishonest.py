"""Primitives with a dishonest majority: the benchmark runs them, and its lines have the measured figures."""

from __future__ import annotations

import re

import pytest
from keyquorum.bench import dishonest


@pytest.mark.parametrize(("row", "least", "most"), [("triples_spdz2k", 10_000, 11_500), ("random_bits_z2_64", 1, 30)])
def test_a_row(row: str, least: float, most: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of both parties for one item are those of the protocol, independent of the machine."""
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    assert dishonest.main(["--repeats", "1", "--only", row]) == 0
    found = re.search(rf"^dishonest: row={row} ours_per_s=(\d+) ours_bytes=([\d.]+)$", capsys.readouterr().out, re.M)
    assert found and int(found[1]) > 0 and least < float(found[2]) < most
