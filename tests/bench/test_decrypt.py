"""The bench of threshold decryption: its rows, and a small run with the closing line."""

from __future__ import annotations

import re

from keyquorum.bench.decrypt import Configuration, configurations, measure
from keyquorum.plans.variants import VARIANTS


def test_rows() -> None:
    rows = configurations(None, True)
    assert {r.rounding for r in rows} == set(VARIANTS)
    assert {r.parties for r in rows if r.protocol == "semi"} == {2, 3, 4, 8, 16}
    assert all(r.items == 50 for r in configurations(50, False))


def test_closing_line() -> None:
    line, values = measure(Configuration("round_ltz_table", 4, 3, "lwe64-p2", "semi", 2, 40))
    pattern = r"decrypt: variant=round_ltz_table-4x3 protocol=semi2k n=2 online_us=[\d.]+ offline_us=[\d.]+ rounds=4 bits=([\d.]+) per_s=\d+ "
    found = re.match(pattern, line)
    assert found and abs(float(found.group(1)) - (63 + 4 * 5 + 5 + 64)) < 3
    assert values["wrong"] == 0 and float(values["offline_bytes"]) > 0 and float(values["storage_bytes"]) > 400
    single, values = measure(Configuration("round_mask_open", 8, 2, "lwe64-p2", "semi", 2, 0), single=True)
    assert "rounds=2" in single and 2 < float(values["latency_ms"]) < 2000
