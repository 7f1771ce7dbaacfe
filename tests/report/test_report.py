"""``keyquorum report``: from tables to a page that holds all of its plots, with the right figures in them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from keyquorum.bench import published as tables
from keyquorum.bench.sweep import SUITES, Axes, Case, cases_of, rows
from keyquorum.bench.sweep.cases import SkippedError
from keyquorum.bench.sweep.measure import Run
from keyquorum.cli import app
from keyquorum.parties import PhaseReport, RunReport
from keyquorum.report import data, page, plots, published, published_bars
from keyquorum.report.threat_models import threat_model_table
from matplotlib.container import BarContainer
from typer.testing import CliRunner

WHEN = rows.Circumstances(asked=3, load=0.1)
PNG = b"\x89PNG\r\n\x1a\n"


def seconds(case: Case, repeat: int, party: int) -> float:
    """Of the fake measurement: party 1 is the slowest, run 1 in the middle."""
    return case.parties * (1 + 0.1 * repeat) + (0.5 if party == 1 else 0.0)


def fake(case: Case) -> list[Run]:
    """Three runs."""
    runs = []
    for repeat in range(3):
        reports = []
        for party in range(case.parties):
            phases = [
                PhaseReport("offline", 0.25, 1000, 1000, 2, 0.0, 0.25, 1000, 1000, 2),
                PhaseReport("online", seconds(case, repeat, party) - 0.25, 500 * (party + 1), 500, 3, 0.5),
            ]
            if case.suite in ("cnn", "peers"):
                phases = [PhaseReport("keys", seconds(case, repeat, party)), PhaseReport("decryption", 0.5)]
                phases += [PhaseReport(name, 0.25 if party == 0 else 0.0) for name in ("encryption", "evaluation")]
            reports.append(RunReport(party, phases, 10**8, 0.5))
        runs.append(Run(reports))
    return runs


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """pyplot keeps figures until they are closed."""
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of every suite, and one failed measurement."""
    folder = tmp_path_factory.mktemp("results")
    for suite in SUITES:
        cases = cases_of(suite, Axes())
        made = [row for case in cases for row in rows.rows_of(case, fake(case), WHEN)]
        made.append(rows.failed(cases[0], RuntimeError("fell over"), WHEN))
        made.append(rows.failed(cases[0], SkippedError("no wheel fits"), WHEN))
        rows.write(folder / "bench" / f"{suite}.csv", made)
    return folder


@pytest.fixture(scope="module")
def table(results: Path) -> pd.DataFrame:
    return data.summary(data.load(results))


def test_measurements_are_condensed_as_said(table: pd.DataFrame) -> None:
    found = data.select(table, suite="keygen", protocol="semi", parties=4, link="", parameters="bfv-8192")
    assert len(found) == 1
    row = found.iloc[0]
    assert row["runs"] == 3 and row["rounds"] == 5
    assert row["seconds"] == pytest.approx(4 * 1.1 + 0.5)
    assert (row["seconds_low"], row["seconds_high"]) == (pytest.approx(4.5), pytest.approx(4 * 1.2 + 0.5))
    assert row["offline_seconds"] == pytest.approx(0.25)
    assert row["online_seconds"] == pytest.approx(4 * 1.1 + 0.25)
    assert row["sent_per_party"] == pytest.approx(1000 + 500 * (1 + 2 + 3 + 4) / 4)
    assert row["cpu_seconds"] == pytest.approx(4 * 0.5)


def test_every_plot_is_drawn_from_a_full_sweep(table: pd.DataFrame) -> None:
    for name, (_, make) in plots.PLOTS.items():
        made = make(table)
        assert made is not None, name
        figure, caption = made
        assert len(caption) > 40
        for axis in figure.axes:
            assert axis.get_xlabel() or axis.get_ylabel(), f"{name}: an axis without a unit"


def test_plots_show_the_figures(table: pd.DataFrame) -> None:
    made = plots.scaling(table)
    assert made is not None
    keygen = made[0].axes[0]
    lines = {str(c.get_label()): c.lines[0] for c in keygen.containers}
    assert list(lines["semi"].get_xdata()) == [2, 3, 4, 8]
    assert list(lines["semi"].get_ydata()) == pytest.approx([n * 1.1 + 0.5 for n in (2, 3, 4, 8)])


def test_every_measured_table_of_three_papers_has_its_plot() -> None:
    drawn = {plot.table for plot in (*published.PLOTS, *published_bars.BARS)}
    of_papers = {name for name in tables.tables() if name[:3] in published.PAPERS}
    assert drawn | set(page.PARAMETER_TABLES) == of_papers and not drawn & set(page.PARAMETER_TABLES)


@pytest.mark.parametrize("plot", published_bars.BARS, ids=lambda p: f"{p.table}-{p.title}")
def test_published_bars_are_as_long_as_printed(plot: published_bars.Bars, table: pd.DataFrame) -> None:
    figure, caption = published_bars.draw(plot, table)
    (axis,) = figure.axes
    printed = [float(str(row[plot.value])) for row in tables.load(plot.table) if row[plot.value] is not None]
    theirs, ours = axis.containers[0], next(c for c in axis.containers[1:] if isinstance(c, BarContainer))
    drawn = [bar.get_width() for bar in theirs]
    assert set(drawn) <= set(printed) and (plot.where or drawn == printed)
    assert len(drawn) + len(ours) == len(axis.get_yticklabels())
    assert bool(len(ours)) == (plot.ours is not None)
    assert ("alone" in caption) == (plot.ours is None)
    assert ("ours: " in axis.get_title("left")) == (plot.ours is not None)


def test_ours_beside_a_bar_is_what_was_measured(table: pd.DataFrame) -> None:
    plot = next(plot for plot in published_bars.BARS if plot.table == "004_section6_eval")
    assert plot.ours is not None
    ((label, value, low, high),) = plot.ours(table)
    batch = data.select(table, suite="cnn: evaluation").iloc[0]["batch"]
    assert label.startswith("ours") and value == low == high == pytest.approx(250 / (batch / 8))


def test_the_table_of_threat_models(table: pd.DataFrame) -> None:
    models, told = threat_model_table(table)
    assert list(models["committee"].unique()) == ["rep-field + ring", "shamir", "semi + semi2k", "mascot + spdz2k"]
    semi = models[(models["committee"] == "semi + semi2k") & (models["keys of"] == "bfv-8192")].iloc[0]
    assert semi["parties"] == 3 and semi["tolerates"] == "2 of 3" and semi["keys, s"] == f"{3 * 1.1 + 0.5:.3g}"
    macs = models[models["committee"] == "mascot + spdz2k"].iloc[0]
    assert macs["keys of"] == "ckks-4096-mac" and macs["adversary"].startswith("malicious programs")
    assert "lwe" in told and "bfv round_ltz_circuit" in told


@pytest.mark.parametrize("plot", published.PLOTS, ids=lambda p: f"{p.table}-{p.title}")
def test_published_figures_are_drawn_as_printed_beside_ours(plot: published.Published, table: pd.DataFrame) -> None:
    figure, caption = published.draw(plot, table)
    (axis,) = figure.axes
    labels = [str(label) for label in axis.get_legend_handles_labels()[1]]
    assert any(label.startswith("paper, ") for label in labels)
    printed = [
        float(row[plot.value])  # type: ignore[arg-type]
        for row in tables.load(plot.table)
        if row[plot.value] is not None and all(row[c] == v for c, v in plot.where)
    ]
    drawn: list[float] = []
    for line in axis.lines:
        if str(line.get_label()).startswith("paper, "):
            values = [float(v) for v in line.get_ydata()]
            drawn += (
                values[:1] if len(set(values)) == 1 and len(values) == 2 and line.get_linestyle() == ":" else values
            )
    assert sorted(drawn) == sorted(printed)
    assert plot.ours is None or any(label.startswith("ours") for label in labels)
    assert ("Nothing of ours" in caption) == (plot.ours is None)


def test_the_page_holds_everything(results: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(results), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    pngs = sorted((tmp_path / "out").glob("*.png"))
    assert f"plots={len(pngs)}" in done.output and len(pngs) == len(plots.PLOTS) + len(published.PLOTS) + len(published_bars.BARS)
    text = (tmp_path / "out" / "index.html").read_text()
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert len(images) == len(pngs) and all(base64.b64decode(image).startswith(PNG) for image in images)
    assert not re.search(r'(src|href)="(?!data:)', text), "the page refers to other files"
    for shown in ("Links are simulated", "paper000-10ms", rows.machine(), rows.commit()):
        assert shown in unescape(text)
    assert text.count("fell over") == len(SUITES) == text.count("no wheel fits")
    assert all(f"<h3>{name}</h3>" in text for name in page.PARAMETER_TABLES)


def test_few_results_are_enough(tmp_path: Path) -> None:
    case = cases_of("keygen", Axes(protocols=("shamir",), parties=(3,), links=("none",)), quick=True)[0]
    rows.write(tmp_path / "bench" / "keygen.csv", list(rows.rows_of(case, fake(case), WHEN)))
    written = page.write_report(tmp_path, tmp_path / "report")
    text = written[0].read_text()
    assert "Not in these results." in text and "No links were simulated." in text


def test_no_results_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(data.NoResultsError, match="run keyquorum bench"):
        page.write_report(tmp_path, tmp_path / "report")
