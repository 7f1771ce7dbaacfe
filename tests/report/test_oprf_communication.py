"""The data of figure 4 of paper 003."""

from __future__ import annotations

from keyquorum.report.oprf_communication import Point, formulas, ours


def test_the_papers_lines() -> None:
    points = formulas()
    assert len(points) == 2 * 400
    assert Point("paper 003, initial", 1, 192.0) in points and Point("paper 003, initial", 400, 51264.0) in points
    assert {round(p.mb, 2) for p in points if p.series == "paper 003, seeds" and p.t in (2, 400)} == {5.13, 900.63}
    assert [p.t for p in formulas([7])] == [7, 7]


def test_our_points_are_of_one_block_and_of_all_parties() -> None:
    row = {"system": "H", "method": "table", "protocol": "semi2k", "n": "4", "batch": "1", "link": "none", "all_mb": "1.25"}
    others = [row | {"link": "rtt=1"}, row | {"batch": "64"}, row | {"system": "F"}, row | {"all_mb": ""}]
    assert ours([row, *others]) == [Point("ours, the paper's system without a dealer, table, semi2k", 4, 1.25)]
