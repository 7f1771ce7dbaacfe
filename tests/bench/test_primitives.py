"""Primitives: the benchmark runs them, and its lines have the measured figures."""

from __future__ import annotations

import re

import pytest
from bench import primitives
from keyquorum.model.chosen_committees import REPLICATED, VERIFIED_REPLICATED
from keyquorum.model.protocols import PROTOCOLS


@pytest.mark.parametrize(("row", "least", "most"), [("triples_spdz2k", 10_000, 11_500), ("random_bits_z2_64", 1, 30)])
def test_a_row(row: str, least: float, most: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of both parties for one item are those of the protocol, independent of the machine."""
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    assert primitives.BENCHES["dishonest"].main(["--repeats", "1", "--row", row]) == 0
    found = re.search(rf"^dishonest: row={row} .* embedded_per_s=(\d+) embedded_bytes=([\d.]+) .* mpspdz_per_s=none ", capsys.readouterr().out, re.M)
    assert found and int(found[1]) > 0 and least < float(found[2]) < most


def test_rows_of_verified_products(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification adds rounds to a program, and few bytes: its cost hardly depends on the number of products."""
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    assert primitives.BENCHES["verified"].main(["--repeats", "1", "--protocol", VERIFIED_REPLICATED, "--items", "50000"]) == 0
    printed = capsys.readouterr().out
    found = re.findall(
        rf"^verified: row=(\S+) protocol={VERIFIED_REPLICATED} engine=embedded program_of=(\S+) items=50000 seconds=\S+ mb=(\S+) rounds=(\d+) cpu_seconds=\S+",
        printed,
        re.M,
    )
    assert [(row, name) for row, name, _, _ in found] == [(row, name) for row in primitives.PROGRAMS for name in (REPLICATED, VERIFIED_REPLICATED)]
    mb, rounds = [float(f[2]) for f in found], [int(f[3]) for f in found]
    assert mb[0] == pytest.approx(3 * 50_000 * 8 / 1e6, rel=0.05), "an element a party and product"
    for plain, checked in ((0, 1), (2, 3)):
        assert mb[plain] <= mb[checked] < 1.1 * mb[plain] + 0.1 and rounds[plain] < rounds[checked]


def test_peers_and_who_is_slower() -> None:
    """MP-SPDZ's executables for the same shares, and the exit code where one of them is faster."""
    names = [name for name, _ in primitives.peers(PROTOCOLS[VERIFIED_REPLICATED])]
    assert names == ["malicious-rep-field", "ps-rep-field", "sy-rep-field"]
    rows: list[dict[str, str | int | float]] = [
        {"row": "products", "protocol": "p", "engine": engine, "program_of": name, "seconds": seconds, "mb": 2.0}
        for engine, name, seconds in (("embedded", "below", 1.0), ("embedded", "p", 2.0), ("MP-SPDZ", "ps-p", 3.0))
    ]
    assert not primitives.slower(rows) and primitives.factors(rows).startswith("2.00 times the time of below")
    rows[2]["seconds"] = 1.9
    assert primitives.slower(rows)
