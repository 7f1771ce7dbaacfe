"""``keyquorum report``: a page from tables, with all plots and the right figures."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from html import unescape
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from keyquorum.cli import app
from keyquorum.cnn.run import DIGITS
from keyquorum.model import published as tables
from keyquorum.model.errors import ResourceError
from keyquorum.parties import PhaseReport, RunReport
from keyquorum.report import (
    cnn_evaluation,
    committees,
    data,
    multikey,
    online_bits,
    oprf_communication,
    page,
    plots,
    published,
    published_bars,
    style,
)
from keyquorum.report.threat_models import threat_model_table
from keyquorum.sweep import rows
from keyquorum.sweep.cases import Axes, Case, SkippedError
from keyquorum.sweep.measure import Run
from keyquorum.sweep.suites import OF_OTHERS, SUITES, cases_of
from matplotlib.colors import to_hex, to_rgb
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from typer.testing import CliRunner

WHEN = rows.Circumstances(asked=3, load=0.1, busy=0.0)
BESIDE = rows.Circumstances(asked=3, load=0.1, busy=1.5)
PNG = b"\x89PNG\r\n\x1a\n"


PAPER_004 = """table,row,method,best,parties,quantity,ours,paper,link,shared_link,q_bits,batch
3,Hamming weight 64 of 23040,bits,yes,2,seconds,0.9,42,,,,
3,Hamming weight 64 of 23040,shuffle,no,2,seconds,5.9,42,,,,
3,Hamming weight 64 of 23040,bits,yes,2,communication_mb,26,263,,,,
3,Hamming weight 64 of 46080,bits,yes,4,seconds,6.1,132,,,,
2,discrete Gaussian,F_q,yes,2,ms,0.02,1.62,none,,60,32768
2,discrete Gaussian,F_q,yes,2,ms,0.03,1.62,paper004-lan,yes,60,32768
2,discrete Gaussian,F_q,yes,2,ms,0.09,1.62,paper004-lan,yes,62,32768
2,discrete Gaussian,F_q,yes,4,ms,0.15,2.45,none,,60,32768
4,Z2 to Zq,bits and lift,yes,2,us,0.15,222,paper004-wan,yes,60,32768
5,"key generation ckks-16384-seed004, no 128-bit security",gaussian,yes,2,seconds,5,525,paper004-lan,yes,,1
5,"decryption of a ciphertext, ckks-16384-seed004, primes 1, opened plainly, unsafe",opened plainly,yes,2,seconds,0.01,0.17,paper004-wan,yes,,1
A,ANDs of key generation ckks-16384-seed004,counted,yes,2,total_and_gates,60000000,5.04e11,none,,,1
"""


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
    (folder / "paper004.csv").write_text(PAPER_004)
    (folder / "toprf.csv").write_text(
        "system,method,protocol,n,ms,mb,batch,link,busy,offline_ms,all_mb,request_mb,answer_mb,bootstraps\nnative,table,semi2k,2,4.2,0.0002,1,none,0.1,1,0.0004,,,\n"
        "native,table,semi2k,2,9.9,0.1,1,rtt=1,0,1,0.2,,,\nH,table,ring,3,300,0.1,1,none,0,1,0.3,,,\nH,table,semi2k,2,200,0.1,1,none,0,1,,,,\nlegendre,degree-2,ring,3,1,0.1,1,none,0,1,0.3,,,\n"
        "native,circuit,semi2k,2,15,0.2,120,paper004-lan,0,36,0.4,,,\nnative,circuit,semi2k,2,410,0.3,180,paper004-wan,0,54,0.6,,,\n"
        "F,tfhe-rs,rep-field,3,165000,0.004,1,none,0,1,0.012,0.0187,0.02,15000\n"
    )
    (folder / "ghs.csv").write_text(
        "what,parameters,noise,link,step,seconds,busy\ntransform,ghs-28679,,none,,0.004,0.1\ntransform-inverse,ghs-28679,,none,,0.006,0\n"
        "keys,ghs-28679,cbd,paper004-lan,,100,0\nkeys,ghs-53261,cbd,none,,150,0\ndecryption-rounding,ghs-28679,,paper004-wan,online,1.5,0\n"
        "decryption-bits,ghs-28679,,none,offline and online,0.4,0\n"
    )
    (folder / "throughput.csv").write_text(
        'variant,protocol,n,link,batch,per_s,busy\nmask-open,semi2k,4,"rtt=1,mbit=1000",4096,90000,0\n8x2,semi2k,4,"rtt=1,mbit=1000",4096,40000,0\n4x3,spdz2k,4,"rtt=1,mbit=1000",256,5000,0\n'
        'circuit,semi2k,4,"rtt=10,mbit=1000",4096,30000,0\nmask-open,spdz2k,2,"rtt=1,mbit=1000",256,9000,0\n'
    )
    (folder / "ajax.csv").write_text("protocol,parties,noise,link,growth,seconds\nshamir,3,local,none,1.5,11.5\n")
    (folder / "ajax_decryption.csv").write_text(
        "t,link,variant,parameters,bits,online_ms,total_ms,busy,commit\n3,lan,round_mask_open,lwe53-p16,200.5,0.005,0.02,0.1,123456789abc+\n"
    )
    (folder / "lisss.csv").write_text("t,T,partial_us,exact_ms,exact_batch_us,busy\n2,2,1.5,3,17,0\n2,3,9,9,9,0\n")
    (folder / "latency_macs.csv").write_text(
        "variant,protocol,n,openings,link,ms,least_ms,most_ms\nround_ltz_table-8x2,spdz2k,4,direct,rtt=1,7.5,7.4,7.6\n"
    )
    return folder


@pytest.fixture(scope="module")
def table(results: Path) -> pd.DataFrame:
    return data.summary(data.load(results))


Drawn = tuple[Figure, str]


@pytest.fixture(scope="module")
def ours(table: pd.DataFrame) -> Callable[[str], Drawn]:
    """Each of our plots, drawn once."""

    @cache
    def draw(name: str) -> Drawn:
        made = plots.PLOTS[name][1](table)
        assert made is not None, name
        return made

    return draw


@pytest.fixture(scope="module")
def theirs(table: pd.DataFrame) -> Callable[[published.Published], Drawn]:
    """Each plot of published figures, drawn once."""
    found = dict[int, Drawn]()

    def draw(plot: published.Published) -> Drawn:
        if id(plot) not in found:
            found[id(plot)] = published.draw(plot, table)
        return found[id(plot)]

    return draw


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


def test_every_plot_is_drawn_from_a_full_sweep(ours: Callable[[str], Drawn]) -> None:
    for name in plots.PLOTS:
        figure, caption = ours(name)
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


def test_every_measured_table_of_four_papers_has_its_plot() -> None:
    drawn = {plot.table for plot in (*published.PLOTS, *published_bars.BARS)} | {online_bits.TABLE, oprf_communication.TABLE}
    of_papers = {name for name in tables.tables() if name[:3] in published.PAPERS}
    assert drawn | set(page.PARAMETER_TABLES) == of_papers and not drawn & set(page.PARAMETER_TABLES)


@pytest.mark.parametrize("plot", published_bars.BARS, ids=lambda p: f"{p.table}-{p.title}")
def test_published_bars_are_as_long_as_printed(plot: published_bars.Bars, table: pd.DataFrame) -> None:
    """And ours as measured; what is not the paper's operation is in a panel of its own."""
    figure, caption = published_bars.draw(plot, table)
    axis, other = figure.axes[0], figure.axes[-1]
    ours, apart = ([bar[1] for bar in make(table)] for make in (plot.ours, plot.apart))
    assert plot.measured(table) and (other is not axis) == bool(apart)
    theirs, mine = (_widths(one) for one in axis.containers if isinstance(one, BarContainer))
    printed = [float(str(row[plot.value])) for row, _ in plot.theirs() if row[plot.value] is not None]
    assert theirs == [value for _, value in plot.theirs()] and mine == pytest.approx(ours) and set(printed) <= set(theirs)
    if apart:
        [drawn] = (_widths(one) for one in other.containers if isinstance(one, BarContainer))
        assert drawn == pytest.approx(apart) and other.get_title() == published.NOT_THE_SAME and published.NOT_THE_SAME in caption
    assert len(theirs) + len(mine) + len(apart) == sum(len(one.get_yticklabels()) for one in {axis, other})
    assert "Published alone" not in caption and "not measured in these results" not in caption and "ours: " in axis.get_title("left")


def _widths(bars: BarContainer) -> list[float]:
    return [bar.get_width() for bar in bars]


def _bars(table_name: str, title: str = "") -> published_bars.Bars:
    return next(plot for plot in published_bars.BARS if plot.table == table_name and title in plot.title)


def test_evaluations_beside_those_of_the_paper(table: pd.DataFrame) -> None:
    """Of single blocks without added delay; the Legendre PRF is another function. Bytes are those of all parties, as the paper's of both servers; of FHE alone request and answer."""
    assert [(label.split(",")[1].strip(), value) for label, value, *_ in _bars("003_table1_oprf", "One evaluation").ours(table)] == [
        ("AES on shares", pytest.approx(0.0042)), ("the paper's system without a dealer", pytest.approx(0.3)),
        ("the paper's system without a dealer", pytest.approx(0.2)), ("FHE alone (TFHE-rs)", pytest.approx(165)),
    ]  # fmt: skip
    mb = _bars("003_table1_oprf", "Communication").ours(table)
    assert [(label.rpartition(": ")[2], value) for label, value, *_ in mb] == [
        ("sent by all", 0.0004), ("sent by all", 0.3), ("request and answer", pytest.approx(0.0387)),
    ]  # fmt: skip


def test_operations_of_all_units_stand_in_one_plot(table: pd.DataFrame) -> None:
    plot = _bars("003_sections1_3_timings")
    assert sorted(value for _, value in plot.theirs()) == pytest.approx([0.00015, 0.03, 13, 270, 960, 470_000])
    ours = {label: value for label, value, *_ in plot.ours(table)}
    assert ours["ours, bootstrapping in TFHE-rs"] == pytest.approx(11) and ours["ours, AES-128 by TFHE-rs"] == 165_000
    assert ours["ours, AES-128 by masked gates, table, 2 parties"] == 200


def test_transforms_stand_in_both_directions(table: pd.DataFrame) -> None:
    assert [(label, value) for label, value, *_ in _bars("004_section6_ntt").ours(table)] == [
        ("ours, transform, ghs-28679", 4.0), ("ours, transform, inverse, ghs-28679", 6.0),
    ]  # fmt: skip


def test_aes_on_shares_is_not_aes_under_ghs(table: pd.DataFrame) -> None:
    """Keys and decryptions of GHS stand beside the paper's, AES on shares apart."""
    plot = _bars("004_table7_aes_bootstrappable")
    assert [(label, value) for label, value, *_ in plot.ours(table)] == [
        ("ours, KeyGen, noise cbd, LAN, simulated", 100.0),
        ("ours, Dec (CircuitEval), exact rounding, WAN, simulated", 1.5),
        ("ours, Dec, both, by bits as in the paper, no link", 0.4),
    ]
    assert [value for _, value, *_ in plot.apart(table)] == pytest.approx([0.41, 0.054])


def test_rates_stand_beside_the_paper_and_say_what_they_are_of_it(table: pd.DataFrame) -> None:
    """Of four parties over the paper's link, with and without MACs; without the table of its own the batches of the sweep."""
    plot = _bars("000_slide_throughput")
    assert [(label, value) for label, value, *_ in plot.ours(table)] == [
        ("ours, 8x2, no MACs, batches of 4,096", 40_000.0), ("ours, 4x3, MACs, batches of 256", 5_000.0),
    ]  # fmt: skip
    assert [(label, value) for label, value, *_ in plot.apart(table)] == [("ours, mask-open, no MACs, batches of 4,096", 90_000.0)]
    figure, caption = published_bars.draw(plot, table)
    assert "The fastest of ours has 40,000 a second, 0.62 times the paper's 64,319." in caption, (
        "mask-open may fail: it is no figure of exact decryption"
    )
    assert {"64,319", "40,000"} <= {text.get_text() for text in figure.axes[0].texts}
    other = _with(table, throughput=[])
    bars = plot.ours(other)
    rate = 1024 / (4 * 1.1 + 0.25)
    assert len(bars) == 2 and len(plot.apart(other)) == 1 and all("a batch of 1,024" in label and "no MACs" in label for label, *_ in bars)
    assert all((value, low < value < high) == (pytest.approx(rate), True) for _, value, low, high, *_ in bars)


def _with(table: pd.DataFrame, **tables: list[dict[str, str]]) -> pd.DataFrame:
    """The same results, with other tables of our own."""
    made = table.copy()
    made.attrs = {**table.attrs, **tables}
    return made


def test_ours_beside_a_bar_is_what_was_measured(table: pd.DataFrame) -> None:
    """A digit alone under an encrypted model is the paper's operation; clear weights and sets of eight stand apart."""
    plot = _bars("004_section6_eval")
    [(alone, of_one, *_)] = plot.ours(table)
    assert "set of one digit, encrypted weights" in alone and alone.endswith(", 3 runs") and of_one == pytest.approx(250 / 8)
    (label, value, low, high, loaded, *_), (each, a_digit, *_), *more = plot.apart(table)
    batch = data.select(table, suite="cnn: evaluation", name=DIGITS).iloc[0]["batch"]
    assert label.startswith("ours") and value == low == high == pytest.approx(250 / (batch / 8)) and not loaded
    assert "1 to 8 digits" in label and "clear weights" in label and "a digit" in each and a_digit == pytest.approx(value / 8)
    assert [("encrypted weights" in bar[0], "of one digit" in bar[0]) for bar in more] == [(True, False), (True, False), (False, True)]
    assert more[2][1] == pytest.approx(250 / 8)
    encryption = _bars("004_table5_cnn")
    assert [label.split(",")[1] for label, *_ in encryption.ours(table)] == [" encryption of a set of one digit", " evaluation of a set of one digit"]


def _published(table_name: str, title: str = "") -> published.Published:
    return next(plot for plot in published.PLOTS if plot.table == table_name and title in plot.title)


def test_like_stands_beside_like(table: pd.DataFrame) -> None:
    """Vectors of the paper's lengths, a set of digits where the paper has one, keys of one kind, sizes of the same set, the paper's link."""
    weight = _published("004_table3_fixed_weight")
    assert weight.ours is not None
    ours = weight.ours(table)
    lengths = {row["phi_m"] for row in tables.load("004_table3_fixed_weight")}
    assert {int(label.split("length ")[1].split(",")[0]) for label in ours["label"]} == lengths == {23040, 46080}
    assert sorted(zip(ours["x"], ours["y"], strict=True)) == [(2, 0.9), (4, 6.1)]
    decryption = _published("004_table5_cnn", "Decryption")
    batch = data.select(table, suite="cnn: decryption", name=DIGITS).iloc[0]["batch"]
    assert decryption.ours is not None
    of_one, *of_sets = decryption.ours(table).to_dict("records")
    assert of_one["label"] == "ours, ckks-16384-seed004, primes 1, opened plainly, unsafe, WAN, simulated" and of_one["y"] == 0.01
    assert [row["y"] for row in of_sets] == pytest.approx([0.5 / (batch / 8)] * 4) and all(row["other"] for row in of_sets)
    keys = _published("002_section1_end_to_end")
    assert keys.ours is not None and list(keys.ours(table)["y"]) == [11.5] and "ajax53" in keys.note
    online, total = (_published("002_table1_decryption", title) for title in ("paper's batch", "its preprocessing"))
    assert online.ours is not None and total.ours is not None
    assert list(online.ours(table)["y"]) == [0.005] and list(total.ours(table)["y"]) == [0.02] and list(online.ours(table)["x"]) == [3]
    sizes = published._key_sizes(table).groupby("label")["y"].unique()
    assert [list(values) for values in sizes] == [[2.25], [18.0]], "MiB; the paper prints 2 and 18 MB"
    assert {r["mb"] for r in tables.load("004_table6_key_sizes") if r["protocol"] == "GMPFHE-CKKS"} == {2, 18}
    keys = _published("004_table5_cnn", "Key generation")
    assert "432 bits" in keys.note and keys.ours is not None
    apart = {label: other is True for label, other in zip(keys.ours(table)["label"], keys.ours(table)["other"], strict=True)}
    assert apart.pop("ours, gaussian, ckks-16384-seed004, no 128-bit security, LAN, simulated") is False
    assert all(apart.values()) and all("ckks-16384-bench with seven Galois keys" in label for label in apart)
    z2 = _published("004_table4_conversion", "Z2 to Zq")
    assert z2.ours is not None
    apart = {label: other is True for label, other in zip(z2.ours(table)["label"], z2.ours(table)["other"], strict=True)}
    assert apart["ours, bits and lift, batch 32,768, WAN, simulated"] is False
    assert all(other == ("shares modulo 2^64" in label) for label, other in apart.items()), "shares without the lift to a prime are another operation"
    assert {label.split(",")[1] for label, other in apart.items() if other} == {" Z2 to Zq (poly)", " Z2 to Zq (bits)"}
    others = _published("002_table1_decryption")
    assert others.ours is not None and others.title == "Decryption" and others.ours(table)["other"].all(), "other sets and links"


def test_times_over_the_paper_s_links_stand_for_those_without(table: pd.DataFrame) -> None:
    """With the prime of 60 bits; where nothing was measured over a link, without one, and the label says so."""
    gaussian = _published("004_table2_gaussian")
    assert gaussian.ours is not None
    rows = gaussian.ours(table)
    own = rows[rows["label"].str.startswith("ours, F_q")]
    assert list(zip(own["x"], own["y"], own["label"].str.rpartition(", ")[0].str.rpartition(", ")[2], strict=True)) == [
        (2, 0.03, "LAN"), (4, 0.15, "batch 32,768"),
    ]  # fmt: skip
    assert own["label"].iloc[1].endswith("no link")
    assert "share its bandwidth" in published.draw(gaussian, table)[1]


def test_whose_bandwidth_a_link_has_is_said_by_the_rows(table: pd.DataFrame) -> None:
    plot = _published("002_table1_decryption", "its preprocessing")
    shared = [{**row, "shared_link": "yes"} for row in table.attrs["ajax_decryption"]]
    ours_share, whole = "links of a party of ours share its bandwidth", "each simulated link has the whole bandwidth"
    for own, wanted, other in ((shared, ours_share, whole), (table.attrs["ajax_decryption"], whole, ours_share)):
        figure, caption = published.draw(plot, _with(table, ajax_decryption=own))
        assert wanted in caption and other not in caption
        labels = [text.get_text() for text in figure.legends[0].get_texts() if text.get_text().startswith("ours")]
        assert [label.endswith(", shared") for label in labels] == [own is shared]


def test_latencies_measured_alone_stand_for_those_of_a_sweep(table: pd.DataFrame) -> None:
    """At 1 ms, for the same protocol: with MACs four parties of the table of its own, at 10 ms those of the sweep."""
    plot = _published("000_slide_online_latency")
    assert plot.ours is not None
    rows = plot.ours(table)
    of_macs = rows[rows["label"].str.contains("MACs") & ~rows["label"].str.contains("no MACs") & rows["label"].str.endswith(", 1 ms")]
    assert list(zip(of_macs["x"], of_macs["y"], of_macs["low"], strict=True)) == [(4, 7.5, 7.4)]
    assert any(rows["label"].str.contains("mascot") & rows["label"].str.endswith("10 ms"))
    [one] = table.attrs["latency_macs"]
    rows = plot.ours(_with(table, latency_macs=[one, {**one, "link": "rtt=10", "ms": "39", "least_ms": "38", "most_ms": "40"}]))
    assert list(rows[rows["label"].str.contains("spdz2k")]["y"]) == [7.5, 39] and not any(rows["label"].str.contains("mascot")), "also at 10 ms"
    beside = _published("000_slide_throughput")
    assert beside.ours is not None and all(beside.ours(table)["label"].str.endswith(", 1 ms")), "the paper's figures are for 1 ms"
    assert "without a limit of bandwidth" in plot.note


def test_single_decryptions_over_links_are_in_the_picture_of_scaling(table: pd.DataFrame) -> None:
    made = plots.scaling(table)
    assert made is not None and made[0].axes[-1].get_title() == "the same over links of 1 ms"
    assert "mascot" not in {str(one.get_label()) for one in made[0].axes[-2].containers}, "those of two parties alone, of another table"
    [line] = [one for one in made[0].axes[-1].containers if isinstance(one, ErrorbarContainer)]
    assert line.get_label() == "spdz2k" and list(line.lines[0].get_ydata()) == [7.5]


def test_captions_say_which_states_of_the_code_were_measured(table: pd.DataFrame) -> None:
    assert data.states([]) == data.states(["", "nan"]) == "" and data.states(["a", "a"]) == " Ours: commit a."
    assert "2 states of the code" in data.states(["a", "b+"]) and "no commit has" in data.states(["b+"])
    two = table.assign(commit=table["protocol"].eq("shamir").map({True: "a", False: "b"}))
    for name in ("threat_models", "scaling", "bytes", "peers", "offline_online", "round_trip", "throughput"):
        made = plots.PLOTS[name][1](two)
        assert made is not None and "Ours: 2 states of the code" in made[1], name
    bars = _bars("003_table1_oprf")
    changed = [{**row, "commit": "123456789abc+"} for row in table.attrs["toprf"]]
    assert "Ours: commit 123456789abc+ (+: recorded with" in published_bars.draw(bars, _with(table, toprf=changed))[1]


def test_plots_name_the_machine_of_what_they_draw(table: pd.DataFrame) -> None:
    """A table of its own may be of another machine than the sweep."""
    own = [{**row, "machine": "riscv64", "cores": "3"} for row in table.attrs["latency_macs"]]
    figure, _ = published.draw(_published("000_slide_online_latency"), _with(table, latency_macs=own))
    title = figure.axes[0].get_title("left")
    assert "riscv64, 3 cores" in title and rows.machine() in title
    figure, _ = published_bars.draw(
        _bars("004_section6_ntt"), _with(table, ghs=[{**row, "machine": "riscv64", "cores": "3"} for row in table.attrs["ghs"]])
    )
    title = figure.axes[0].get_title("left")
    assert "ours: riscv64, 3 cores" in title and rows.machine() not in title


def test_bits_of_a_decryption_stand_beside_the_paper_s_lines(table: pd.DataFrame) -> None:
    lines = {line.label: line.bits for line in online_bits.theirs()}
    assert lines["paper 002, Noah's Ark, section 2.2, against Noah's Ark: 384 t"] == (384, 1152, 4992)
    assert lines["paper 002, Ajax, section 4.3: 100 for any t"] == (100, 100, 100) and len(lines) == 6
    made = online_bits.online_bits(table)
    assert made is not None and "computed, not measured" in made[0].axes[0].get_title()
    [ours] = [line for line in made[0].axes[0].lines if str(line.get_label()).startswith("ours")]
    assert (list(ours.get_xdata()), list(ours.get_ydata())) == ([3], [200.5])
    assert online_bits.online_bits(_with(table, ajax_decryption=[])) is None


def test_pictures_of_papers_are_named_for_the_page_of_papers() -> None:
    """The page shows a picture under the table whose name it has."""
    known = tables.tables()
    for name in (*multikey.PLOTS, *online_bits.PLOTS, *oprf_communication.PLOTS, *cnn_evaluation.PLOTS):
        assert name == "multikey" or name.removeprefix("published_").removesuffix("_2") in known, name


def test_published_marks_have_their_numbers_above_ours_and_gaps_stay_open(table: pd.DataFrame) -> None:
    figure, caption = published.draw(_published("004_table3_fixed_weight"), table)
    assert "63?" in {text.get_text() for text in figure.axes[0].texts} and "changes that no commit has" not in caption
    figure, caption = published.draw(_published("002_table1_decryption", "its preprocessing"), table)
    lines = {str(line.get_label()): line for line in figure.axes[0].lines}
    assert [value == value for value in lines["paper, Noah's Ark, LAN"].get_ydata()] == [True, False, False]
    assert "changes that no commit has" in caption and "whole bandwidth" in caption
    assert min(line.get_zorder() for name, line in lines.items() if name.startswith("paper")) > max(
        line.get_zorder() for name, line in lines.items() if not name.startswith("paper")
    )


def test_decryption_stands_with_and_without_macs_beside_a_paper_that_does_not_say(table: pd.DataFrame) -> None:
    for plot in published.PLOTS:
        if plot.table.startswith("000") and plot.ours is not None:
            labels = set(plot.ours(table)["label"])
            assert any("semi (no MACs)" in label for label in labels) and any("(MACs)" in label for label in labels)
            assert "do not say whether MACs are included" in plot.note
    rates = _bars("000_slide_throughput")
    assert {"no MACs", "MACs"} <= {label.split(", ")[2] for label, *_ in rates.ours(table)} and "do not say whether MACs are included" in rates.note


def _is_grey(colour: object) -> bool:
    red, green, blue = to_rgb(colour)  # type: ignore[arg-type]
    return max(red, green, blue) - min(red, green, blue) < 0.1


def test_of_a_measurement_in_two_tables_the_later_one_counts(tmp_path: Path) -> None:
    case = cases_of("keygen", Axes(protocols=("shamir",), parties=(3,), links=("none",)), quick=True)[0]
    for name, utc, commit in (("keygen", "2026-01-01T00:00:00Z", "old"), ("threat_models", "2026-01-02T00:00:00Z", "new")):
        made = [r | {"utc": utc, "commit": commit} for r in rows.rows_of(case, fake(case), WHEN)]
        rows.write(tmp_path / "bench" / f"{name}.csv", made)
    (only,) = data.summary(data.load(tmp_path)).to_dict("records")
    assert only["commit"] == "new" and only["seconds"] == pytest.approx(3 * 1.1 + 0.5)


@pytest.mark.parametrize("plot", published.PLOTS, ids=lambda p: f"{p.table}-{p.title}")
def test_colours_never_repeat_and_ours_are_never_grey(plot: published.Published, theirs: Callable[[published.Published], Drawn]) -> None:
    figure, _ = theirs(plot)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    colours = [to_hex((h.lines[0] if isinstance(h, ErrorbarContainer) else h).get_color()) for h in handles]
    assert len(set(colours)) == len(labels) == len(set(labels))
    assert all(_is_grey(colour) == label.startswith("paper") for colour, label in zip(colours, labels, strict=True))


@pytest.mark.parametrize("name", plots.PLOTS)
def test_colours_of_our_plots_stand_for_one_thing_each(name: str, ours: Callable[[str], Drawn]) -> None:
    """In the legend of a figure each colour has one meaning, and grey is for figures of others."""
    figure, _ = ours(name)
    if figure.legends:
        (legend,) = figure.legends
        colours = [h.get_facecolor() if isinstance(h, Rectangle) else h.get_color() for h in legend.legend_handles]  # type: ignore[union-attr]
        shown = [to_hex(c if isinstance(c, (str, tuple)) else c[0]) for c in colours]
        assert len(set(shown)) == len(shown) and not any(_is_grey(c) for c in shown)
    assert not {to_hex(colour) for colour, _ in plots.SHADES} & set(style.COLOURS.values())
    assert len(plots.SHADES) >= 5


def test_more_series_than_colours_are_an_error() -> None:
    assert len({colour for colour, _ in style.series(len(style.SERIES))}) == len(style.SERIES)
    assert not any(_is_grey(colour) for colour in style.SERIES) and len(set(style.greys(12))) == 12
    with pytest.raises(ValueError, match="draw fewer"):
        style.series(len(style.SERIES) + 1)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """A sweep that started on a busy machine."""
    folder = tmp_path_factory.mktemp("beside")
    for suite in SUITES:
        made = [row for case in cases_of(suite, Axes()) for row in rows.rows_of(case, fake(case), BESIDE)]
        rows.write(folder / "bench" / f"{suite}.csv", made)
    return data.summary(data.load(folder))


def _says_loaded(figure: Figure) -> bool:
    return any(style.LOADED in text.get_text() for legend in figure.legends for text in legend.get_texts())


@pytest.mark.parametrize("name", plots.PLOTS)
def test_measurements_beside_other_work_are_marked(name: str, ours: Callable[[str], Drawn], beside: pd.DataFrame) -> None:
    marked = plots.PLOTS[name][1](beside)
    assert marked is not None
    assert _says_loaded(marked[0]) and not _says_loaded(ours(name)[0])


def test_published_plots_mark_ours_beside_other_work(table: pd.DataFrame, beside: pd.DataFrame) -> None:
    plot = _published("004_table2_gaussian")
    for measured, wanted in ((table, False), (beside, True)):
        figure, _ = published.draw(plot, measured)
        hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
        assert bool(hollow) == _says_loaded(figure) == wanted
    bars = next(plot for plot in published_bars.BARS if plot.table == "004_section6_eval")
    for measured, wanted in ((table, False), (beside, True)):
        figure, _ = published_bars.draw(bars, measured)
        dotted = [patch for patch in figure.axes[1].patches if patch.get_hatch() == "...."]
        assert bool(dotted) == _says_loaded(figure) == wanted


def test_load_of_tables_without_busy_cores(tmp_path: Path) -> None:
    """If busy cores were not measured, the load of the minute before counts."""
    case = cases_of("keygen", Axes(protocols=("shamir",), parties=(3,), links=("none",)), quick=True)[0]
    for load, wanted in ((0.4, False), (2.5, True)):
        rows.write(tmp_path / "bench" / "keygen.csv", list(rows.rows_of(case, fake(case), rows.Circumstances(3, load=load))))
        loaded = data.load(tmp_path)
        assert bool(loaded["loaded"].all()) == bool(loaded["loaded"].any()) == wanted
        said = dict(data.conditions(loaded))["measurements that started under load"]
        assert said.startswith("1 of 1, some by the load of the minute before" if wanted else "0 of 1, some by the load")


def test_labels_of_commits(tmp_path: Path) -> None:
    """Commits are text whatever digits they have; a library's version is no commit of MP-SPDZ; of several commits the suites are named."""
    for suite, commit, backend, version in (("keygen", "120000000000", "embedded", ""), ("peers", "12e345678901", "seal", "seal-python 9")):
        case = cases_of(suite, Axes(links=("none",)), quick=True)[0]
        made = [r | {"commit": commit, "backend": backend, "backend_commit": version} for r in rows.rows_of(case, fake(case), WHEN)]
        rows.write(tmp_path / "bench" / f"{suite}.csv", made)
    shown = dict(data.conditions(data.load(tmp_path)))
    assert shown["commit"] == "120000000000 (keygen), 12e345678901 (peers)"
    assert shown["MP-SPDZ commit"] == "–" and shown["other libraries"] == "seal-python 9"


def test_the_table_of_threat_models(table: pd.DataFrame) -> None:
    models, note = threat_model_table(table)
    plain, verified = ["rep-field + ring", "shamir", "semi + semi2k", "mascot + spdz2k"], ["mal-rep-field + mal-rep-ring", "mal-shamir"]
    assert list(models["committee"].unique()) == [*plain, *verified]
    assert set(models[models["committee"].isin(verified)]["adversary"]) == {"malicious"}
    semi = models[(models["committee"] == "semi + semi2k") & (models["keys of"] == "bfv-8192")].iloc[0]
    assert semi["parties"] == 3 and semi["tolerates"] == "2 of 3" and semi["keys, s"] == f"{3 * 1.1 + 0.5:.3g}"
    macs = models[models["committee"] == "mascot + spdz2k"].iloc[0]
    assert macs["keys of"] == "ckks-4096-mac" and macs["adversary"] == "malicious"
    assert set(models["LWE by"]) == {"tables, lwe64-p2", "circuit, lwe64-p2", "circuit, lwe53-p16", "–"} and "states of the code" not in note
    two = table.assign(commit=table["protocol"].eq("shamir").map({True: "a", False: "b"}))
    assert "Measured at 2 states of the code (a, b)" in threat_model_table(two)[1]
    assert "lwe" in note and "bfv round_ltz_circuit" in note and "malicious: static, with abort" in note
    semi_honest, note = threat_model_table(table[~table["protocol"].isin(["mascot", "spdz2k", "mal-rep-field", "mal-rep-ring", "mal-shamir"])])
    assert set(semi_honest["adversary"]) == {"semi-honest"} and "malicious" not in note


@pytest.mark.parametrize("plot", published.PLOTS, ids=lambda p: f"{p.table}-{p.title}")
def test_published_figures_are_drawn_as_printed_beside_ours(plot: published.Published, theirs: Callable[[published.Published], Drawn]) -> None:
    figure, caption = theirs(plot)
    axis = figure.axes[0]
    labels = [str(label) for one in figure.axes for label in one.get_legend_handles_labels()[1]]
    assert any(label.startswith("paper, ") for label in labels)
    printed = [
        float(row[plot.value])  # type: ignore[arg-type]
        for row in tables.load(plot.table)
        if row[plot.value] is not None and all(row[c] == v for c, v in plot.where)
    ]
    drawn: list[float] = []
    for line in axis.lines:
        if str(line.get_label()).startswith("paper, "):
            values = [float(v) for v in line.get_ydata() if v == v]
            drawn += values[:1] if len(set(values)) == 1 and len(values) == 2 and line.get_linestyle() == ":" else values
    assert sorted(drawn) == sorted(printed)
    assert plot.ours is None or any(label.startswith("ours") for label in labels)
    assert ("Nothing of ours" in caption) == (plot.ours is None)


def test_the_page_holds_everything(results: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(results), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    pngs = sorted((tmp_path / "out").glob("*.png"))
    # Three pictures are of several tables, or of a figure without one.
    assert f"plots={len(pngs)}" in done.output and len(pngs) == 1 + len(plots.PLOTS) + len(published.PLOTS) + len(published_bars.BARS) + 3
    text = (tmp_path / "out" / "index.html").read_text()
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert len(images) == len(pngs) and all(base64.b64decode(image).startswith(PNG) for image in images)
    assert not re.search(r'(src|href)="(?!data:)', text), "the page refers to other files"
    for shown in ("Links are simulated", "paper000-10ms", rows.machine(), rows.commit()):
        assert shown in unescape(text)
    assert text.count("fell over") == len(SUITES) - len(OF_OTHERS) == text.count("no wheel fits")
    assert all(f"<h3>{name}</h3>" in text for name in page.PARAMETER_TABLES)
    assert text.index("Which committee") < text.index("<figure>") < text.index("<table")


def test_few_results_are_enough(tmp_path: Path) -> None:
    case = cases_of("keygen", Axes(protocols=("shamir",), parties=(3,), links=("none",)), quick=True)[0]
    rows.write(tmp_path / "bench" / "keygen.csv", list(rows.rows_of(case, fake(case), WHEN)))
    written = page.write_report(tmp_path, tmp_path / "report")
    text = written[0].read_text()
    assert "Not in these results." not in text and "No links were simulated." in text
    headings = re.findall(r"<h2>([^<]+)</h2>", text)
    assert headings == ["Which committee, and what it costs", "Conditions", "Scaling in the number of parties", "Communication", "All measurements"]
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["bytes.png", "committees.png", "index.html", "scaling.png"]
    assert ". ." not in threat_model_table(data.summary(data.load(tmp_path)))[1]


def test_figures_of_papers_are_drawn_beside_ours_alone(tmp_path: Path) -> None:
    """A sweep of the operations of one paper gets its plots; nobody gets those of papers of which nothing was measured."""
    case = next(
        c for c in cases_of("sampling", Axes(protocols=("semi2k",), parties=(2,), links=("none",)), quick=True) if c.name.startswith("discrete")
    )
    rows.write(tmp_path / "bench" / "sampling.csv", list(rows.rows_of(case, fake(case), WHEN)))
    (tmp_path / "report").mkdir()
    for name in ("published_003_figure4.png", "mine.png"):
        (tmp_path / "report" / name).write_bytes(PNG)
    names = {path.name for path in page.write_report(tmp_path, tmp_path / "report")}
    assert {name for name in names if name.startswith("published")} == {"published_004_table2_gaussian.png"}
    there = {path.name for path in (tmp_path / "report").iterdir()}
    assert there == {*names, "mine.png"}, "pictures of an earlier report go, other files stay"


def test_the_first_picture_has_every_committee(table: pd.DataFrame) -> None:
    """Those with MACs and those that verify products too; in it a bar or "not measured" for each job."""
    made = committees.committees(table)
    assert made is not None
    axes = made[0].axes
    labels = [label.get_text().splitlines() for label in axes[0].get_yticklabels()]
    assert [name for name, _ in labels] == [row.name for row in committees.rows_of(table)]
    assert {"mascot + spdz2k", "mal-rep-field + mal-rep-ring", "mal-shamir", "rep-field + ring"} <= {name for name, _ in labels}
    assert dict(labels)["mal-shamir"] == "1 of 3 corrupted, malicious" and dict(labels)["semi + semi2k"] == "2 of 3 corrupted, semi-honest"
    for axis in axes:
        said = sum(text.get_text() == "not measured" for text in axis.texts)
        assert len(axis.patches) + said == len(labels)
    shown = committees.committee_table(table)
    semi = shown[shown["committee"] == "semi + semi2k"].iloc[0]
    assert semi["keys, seconds (bfv-8192)"] == f"{3 * 1.1 + 0.5:.3g}"


def test_protocols_that_verify_products_stand_among_the_others(table: pd.DataFrame, results: Path) -> None:
    """From results/verified.csv: products and random bits of the protocol itself, not of its semi-honest part or of MP-SPDZ."""
    (results / "verified.csv").write_text(
        "row,protocol,engine,program_of,items,seconds,mb\nproducts,mal-shamir,embedded,shamir,1000000,0.1,24\n"
        "products,mal-shamir,embedded,mal-shamir,1000000,0.2,36\nproducts,mal-shamir,MP-SPDZ,sy-shamir,1000000,2,156\n"
    )
    try:
        made = plots.threat_models(data.summary(data.load(results)))
    finally:
        (results / "verified.csv").unlink()
    assert made is not None
    bars = [c for c in made[0].axes[0].containers if isinstance(c, BarContainer) and str(c.get_label()).startswith("mal-shamir (n = 3)")]
    heights = [patch.get_height() for bar in bars for patch in bar.patches]
    assert [h for h in heights if h == h] == [pytest.approx(0.2)]
    sent = [
        p.get_height()
        for c in made[0].axes[1].containers
        if isinstance(c, BarContainer) and str(c.get_label()).startswith("mal-shamir")
        for p in c.patches
    ]
    assert [h for h in sent if h == h] == [pytest.approx(12.0)]


def test_without_matplotlib_the_error_has_the_cure(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after make demo, which builds what the demonstration needs."""
    for name in [name for name in sys.modules if name.startswith("keyquorum.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ResourceError, match=r"^matplotlib is not installed: run make build in a checkout, or pip install keyquorum\[report\]$"):
        CliRunner().invoke(app, ["report", str(results)], catch_exceptions=False)


def test_no_results_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(data.NoResultsError, match="run keyquorum bench"):
        page.write_report(tmp_path, tmp_path / "report")
