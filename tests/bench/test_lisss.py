"""The benchmark of shares for subsets: its lines, right results, and what it counts."""

from __future__ import annotations

import re

from bench.toprf.lisss import BENCH, ROWS, measure, published_lines
from keyquorum.inspection.tables import RESULTS


def test_a_line_and_a_row() -> None:
    """Two of three: three subsets of 512 words of 4 bytes, of which a party opens two at most to others, and stores two."""
    row = measure(2, 3)
    assert re.match(r"lisss: t=2 T=3 n=512 share_ms=\d+\.\d\d share_mb=0\.\d{6} stored_kb=4\.096 ", BENCH.line(row))
    assert row["wrong"] == 0 and tuple(row)[:4] == RESULTS["shares for subsets (make bench-lisss)"]
    assert 2048 <= float(str(row["share_mb"])) * 1e6 < 3 * 2 * 2048 + 2000
    assert float(str(row["partial_us"])) > 0 and float(str(row["exact_ms"])) > 0


def test_the_pairs_of_the_figure() -> None:
    assert ROWS == ((2, 2), (2, 3), (3, 5), (4, 7), (5, 8), (5, 10))
    cited, *formulas = published_lines()
    assert "us=30 (cited" in cited
    assert [line.split(" (")[0].split("=", 3)[3] for line in formulas][::4] == ["initial t=2 mb=320.00", "seeds t=2 mb=5.13"] and len(formulas) == 8
