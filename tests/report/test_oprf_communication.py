"""Figure 4 of paper 003, and figure 6 of paper 004."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from keyquorum.report import cnn_evaluation
from keyquorum.report.oprf_communication import Point, communication, formulas, ours


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


def _labels(made: tuple[plt.Figure, str] | None) -> list[str]:
    assert made is not None
    found = [text.get_text() for text in made[0].legends[0].get_texts()]
    plt.close(made[0])
    return found


def test_figure_4_is_drawn_with_and_without_ours() -> None:
    row = {"system": "native", "method": "table", "protocol": "semi2k", "n": "2", "batch": "1", "link": "none", "all_mb": "0.001"}
    table = pd.DataFrame()
    assert communication(table) is None
    table.attrs["toprf"] = [row | {"all_mb": ""}]
    assert _labels(communication(table))[0] == "ours: not measured yet"
    table.attrs["toprf"] = [row]
    labels = _labels(communication(table))
    assert labels == [
        "ours, AES on shares, table, semi2k, batch of 1, no added delay",
        "paper 003, initial, by its formula",
        "paper 003, seeds, by its formula",
    ]


def test_figure_6_has_what_was_measured_and_always_what_was_published() -> None:
    table = pd.DataFrame({"suite": ["cnn: evaluation"], "name": ["encrypted digits and model"], "seconds": [9.0], "batch": [96]})
    assert cnn_evaluation.evaluation(table) is None
    row = {"workload": "W2r", "reading": "multi-key", "gadget": "rns", "parties": "4", "ours": "100"}
    table.attrs["multikey"] = [row | {"parameters": "mk-bgv-16384"}]
    labels = _labels(cnn_evaluation.evaluation(table))
    assert sum("not measured yet" in label for label in labels) == 2 and sum(label.startswith("paper 004") for label in labels) == 2
    table.attrs["multikey"].append(row | {"parameters": cnn_evaluation.SET})
    assert cnn_evaluation.relinearised() == 23 and cnn_evaluation.multi_key(table) == [(4, 2300.0)]
    assert cnn_evaluation.joint(table, "encrypted weights") == 750.0 and cnn_evaluation.joint(table, "clear weights") is None
    assert sum("not measured yet" in label for label in _labels(cnn_evaluation.evaluation(table))) == 1
