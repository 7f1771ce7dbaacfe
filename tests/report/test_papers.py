"""The table of published figures beside ours: complete, of recorded results alone, and true to its rules."""

from __future__ import annotations

import csv
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from keyquorum.cli import app
from keyquorum.cnn.packing import IMAGES
from keyquorum.model import published
from keyquorum.report.papers import claims, figures, overview, recorded, rules, table
from keyquorum.report.papers.files import RuleError, folder, read_toml
from keyquorum.report.papers.recorded import History, HistoryError, Record
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
GOOD, OTHER = "a" * 40, "b" * 40


def _recorded_commits() -> frozenset[str]:
    found = set()
    for path in [*RESULTS.glob("*.csv"), *RESULTS.glob("bench/*.csv")]:
        with path.open(newline="") as file:
            found |= {row.get("commit") or "" for row in csv.DictReader(file)}
    return frozenset(commit for commit in found if commit and not commit.endswith("+"))


@pytest.fixture(scope="module")
def papers() -> table.Papers:
    """The table of this project's results, as if all their commits were of the history."""
    return table.make(RESULTS, History(_recorded_commits()))


def test_every_figure_has_a_row_or_a_reason(papers: table.Papers) -> None:
    assert [figure.cell for figure in papers.missing()] == [], "add a rule to params/published/ours, or an entry to without_ours.toml"


def test_no_reason_is_left_of_a_figure_with_a_row(papers: table.Papers) -> None:
    assert papers.stale() == [], "narrow or remove these entries of params/published/without_ours.toml"


def test_every_number_of_a_published_table_is_a_key_a_figure_or_chosen(papers: table.Papers) -> None:
    """None is forgotten: figures() compares the columns; here the figures are counted against the files."""
    described = read_toml(folder() / "figures.toml")
    counted = 0
    for name in published.tables():
        entry = described[name]
        for row in published.load(name):
            if entry.get("chosen"):
                counted += row["value"] is not None and row["quantity"] in entry.get("figures_of", {})
            else:
                counted += sum(row[column] is not None for column in entry["figures"])
    assert len(papers.figures) == counted == len({figure.cell for figure in papers.figures}) > 250


def test_the_recorded_table_is_made_from_the_recorded_results() -> None:
    try:
        history = History.of(RESULTS)
    except HistoryError as error:
        pytest.skip(str(error))
    made = table.make(RESULTS, history)
    with (RESULTS / table.NAME).open(newline="") as file:
        assert list(csv.DictReader(file)) == [{name: row.get(name, "") for name in table.COLUMNS} for row in made.rows], (
            "run keyquorum report --papers"
        )
    for row in made.rows:
        assert row["comparable"] == "yes" or row["why"]
        assert bool(row["ratio"]) == bool(row["ours"] and row["unit"] != "%") and not (row["ours"] and row["commit"].endswith("+"))
    judged = claims.verdicts(made, RESULTS, history)
    assert len(judged) == len(claims.claims()) > 25 and {v.holds for v in judged} == {claims.HOLDS, claims.FAILS, claims.CITED}
    assert {v.claim["paper"] for v in judged} == set(overview.PAPERS) == {figure.paper for figure in made.figures}


def test_a_set_of_ciphertexts_has_the_digits_of_the_rules() -> None:
    """The rules of paper 004 count eight digits a set."""
    by_name = [(rule.match["name"], rule.value) for rule in rules.load_rules().rules if rule.source == "suite_cnn" and rule.value.column == "seconds"]
    assert IMAGES == 8 and {value.per for _, value in by_name} == {"batch"}
    assert {value.scale for name, value in by_name if "one a set" not in name} == {8, 8000}
    assert {value.scale for name, value in by_name if "one a set" in name} == {1000}


SOURCES = """[latency]
file = "latency.csv"
command = "python -m bench.decryption.latency"
columns = { parties = "n", low = "least_ms", cpu_party = { column = "cpu", scale = 1e-3, per = "n" } }
"""
RULE = """[[rule]]
table = "000_slide_online_latency"
column = "online_ms"
where = { ping_ms = 1 }
same = { parties = "n" }
source = "latency"
match = { link = "rtt=1" }
value = "ms"
system = "{variant}"
comparable = "partly"
why = "Other hardware."
"""
HEAD = "variant,protocol,n,link,ms,least_ms,cpu,commit\n"


def _rules(folder: Path, rule: str = RULE) -> rules.Rules:
    (folder / "sources.toml").write_text(SOURCES)
    (folder / "000.toml").write_text(rule)
    return rules.load_rules(folder)


def _rows(folder: Path, *lines: str) -> list[Record]:
    """The rows that results make, of commits of which GOOD alone is in the history."""
    (folder / "latency.csv").write_text(HEAD + "".join(line + "\n" for line in lines))
    return table.make(folder, History(frozenset({GOOD})), _rules(folder)).rows


def test_a_row_has_what_was_recorded(tmp_path: Path) -> None:
    (row,) = _rows(tmp_path, f"tables,semi2k,4,rtt=1,4.2415,4.1,8,{GOOD[:12]}", f"tables,semi2k,4,rtt=10,40,40,8,{GOOD[:12]}")
    assert row["cell"] == "000_slide_online_latency parties=4, ping_ms=1, online_ms" and row["published"] == "8.483"
    assert (row["ours"], row["low"], row["ratio"], row["cpu_party"]) == ("4.2415", "4.1", "2", "0.002")
    assert (row["adversary"], row["link"], row["shared_link"], row["kind"]) == ("semi-honest", "rtt=1", "no", "measured")
    assert row["command"] == "python -m bench.decryption.latency"


@pytest.mark.parametrize(
    ("commit", "why"), [(GOOD[:12] + "+", "with changes that no commit has"), (OTHER[:12], "not of this history"), ("", "no commit is recorded")]
)
def test_rows_of_other_commits_count_as_without_ours(tmp_path: Path, commit: str, why: str) -> None:
    (row,) = _rows(tmp_path, f"tables,semi2k,4,rtt=1,4,4,8,{commit}")
    assert row["ours"] == row["ratio"] == row["low"] == "" and row["comparable"] == "no" and why in row["why"]
    made = table.make(tmp_path, History(frozenset({GOOD})), _rules(tmp_path))
    assert made.with_ours() == [] and " ours=0 " in made.line() and "worst_ratio=none" in made.line()
    figure = next(figure for figure in made.figures if figure.cell == row["cell"])
    assert why in made.reason(figure)


def test_of_several_commits_the_one_of_the_history_counts(tmp_path: Path) -> None:
    (row,) = _rows(tmp_path, f"tables,semi2k,4,rtt=1,1,1,8,{OTHER[:12]}", f"tables,semi2k,4,rtt=1,4,4,8,{GOOD[:12]}")
    assert row["ours"] == "4"
    with pytest.raises(RuleError, match="2 recorded rows are 'tables': narrow match"):
        _rows(tmp_path, *[f"tables,semi2k,4,rtt=1,{ms},4,8,{GOOD[:12]}" for ms in (4, 5)])


def test_rows_from_before_a_number_stand_beside_nothing(tmp_path: Path) -> None:
    """An empty cell is no number and no mistake; a column that no row has is one."""
    rule = RULE.replace('value = "ms"', 'value = { column = "ms", plus = "least_ms", scale = 0.5 }')
    (tmp_path / "latency.csv").write_text(f"{HEAD}tables,semi2k,4,rtt=1,4,,8,{GOOD[:12]}\ncircuit,semi2k,4,rtt=1,4,2,8,{GOOD[:12]}\n")
    (row,) = table.make(tmp_path, History(frozenset({GOOD})), _rules(tmp_path, rule)).rows
    assert (row["system"], row["ours"]) == ("circuit", "3")
    with pytest.raises(RuleError, match="no number in ms"):
        table.make(tmp_path, History(frozenset({GOOD})), _rules(tmp_path, rule.replace("least_ms", "lest_ms")))


def test_conversions_by_two_primes_stand_beside_a_figure_once(tmp_path: Path) -> None:
    """Each is the best of its prime: the page has those of 60 bits."""
    head = "table,row,method,best,parties,quantity,ours,link,shared_link,q_bits,batch,cpu_party,commit\n"
    lines = [
        f"{number},{row},{method},yes,2,{quantity},{ours},{link},yes,{bits},32768,0.1,{GOOD[:12]}\n"
        for number, row, method, quantity in (
            ("2", "discrete Gaussian", "F_q", "ms"),
            ("2", "discrete Gaussian", "F_q", "communication_kb"),
            ("4", "Z2 to Zq", "poly", "us"),
        )
        for link in ("none", "paper004-lan", "paper004-wan")
        for bits, ours in ((60, 0.25), (62, 0.5))
    ]
    (tmp_path / "paper004.csv").write_text(head + "".join(lines))
    made = table.make(tmp_path, History(frozenset({GOOD}))).rows
    of_paper = [row for row in made if row["system"].startswith(("F_q", "poly"))]
    assert {row["ours"] for row in of_paper} == {"0.25"} and {row["link"] for row in of_paper} == {"none", "paper004-lan", "paper004-wan"}
    assert {row["comparable"] for row in of_paper if row["link"] == "none" and row["unit"] != "KB"} == {"no"}


def test_of_rates_more_is_better_and_of_all_else_less() -> None:
    rate = next(f for f in figures.figures() if f.column == "decryptions_per_second" and f.kind == "measured")
    assert rate.ratio(rate.value / 2) == 0.5 and replace(rate, unit="ms").ratio(rate.value / 2) == 2


def test_a_figure_of_two_columns_is_their_sum() -> None:
    first = next(f for f in figures.figures() if f.table == "001_table3_rgsw_openfhe_1_1_1")
    assert (first.value, first.unit, first.cell) == (218, "s", "001_table3_rgsw_openfhe_1_1_1 threads=1, seconds")


def test_our_reading_of_an_illegible_figure_is_said_to_be_one(papers: table.Papers) -> None:
    noted = [f for f in papers.figures if f.table == "004_table3_fixed_weight" and f.row["note"]]
    assert [(f.column, f.value, "our reading of an illegible 634" in papers.by_figure[f][0]["why"]) for f in noted] == [
        ("seconds", 63, True), ("communication_mb", 788, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("same =", "sam =", "rule 1: unknown word 'sam'"),
        ('source = "latency"', 'source = "late"', "no source 'late'"),
        ('comparable = "partly"', 'comparable = "maybe"', "choose one of yes, partly, no"),
        ('why = "Other hardware."\n', "", "why is missing"),
        ("ping_ms = 1 }", "ping_ms = 2 }", "no figure is so"),
        ("{variant}", "{method}", "has no column 'method'"),
        ('value = "ms"', 'value = "msec"', "no number in msec"),
        ('value = "ms"\n', "", "'value'"),
        ("[[rule]]", "[[rule]", "not readable as TOML"),
    ],
)
def test_a_wrong_rule_is_an_error_that_names_it(tmp_path: Path, old: str, new: str, error: str) -> None:
    (tmp_path / "latency.csv").write_text(f"{HEAD}tables,semi2k,4,rtt=1,4,4,8,{GOOD[:12]}\n")
    with pytest.raises(RuleError, match=error) as raised:
        table.make(tmp_path, History(frozenset({GOOD})), _rules(tmp_path, RULE.replace(old, new)))
    assert "\n" not in str(raised.value)


def test_an_entry_of_a_figure_with_a_row_is_stale(papers: table.Papers) -> None:
    entry = table.Entry("000_slide_throughput", "Not measured.", ("latency_ms",), (("protocol", "Mod-L"),))
    (found,) = replace(papers, entries=[*papers.entries, entry]).stale()
    assert found.startswith("000_slide_throughput protocol=Mod-L") and found.endswith("has a row of ours, and an entry")
    assert replace(papers, entries=[table.Entry("000_slide_throughput", "", ("ms",))]).stale() == [
        "000_slide_throughput: an entry is about no figure"
    ]
    assert len(replace(papers, entries=papers.entries[:-1]).missing()) == 2


def test_of_two_states_of_the_history_the_newer_one_counts(tmp_path: Path) -> None:
    lines = [f"tables,semi2k,4,rtt=1,{ms},4,8,{commit[:12]}" for ms, commit in ((5, OTHER), (4, GOOD))]
    (tmp_path / "latency.csv").write_text(HEAD + "".join(line + "\n" for line in lines))
    for order, ours in (((GOOD, OTHER), "4"), ((OTHER, GOOD), "5")):
        (row,) = table.make(tmp_path, History(frozenset(order), order), _rules(tmp_path)).rows
        assert row["ours"] == ours


def test_a_figure_with_a_rule_waits_for_its_command(tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text(HEAD)
    made = table.make(tmp_path, History(frozenset()), _rules(tmp_path))
    (figure,) = (f for f in made.figures if f.cell == "000_slide_online_latency parties=4, ping_ms=1, online_ms")
    assert made.reason(figure) == "Not measured yet at a commit of the history: python -m bench.decryption.latency." and figure not in made.missing()


def test_a_time_without_a_link_is_not_comparable_with_one_over_a_network(tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text(f"{HEAD}tables,semi2k,4,none,4,4,8,{GOOD[:12]}\n")
    (row,) = table.make(tmp_path, History(frozenset({GOOD})), _rules(tmp_path, RULE.replace("rtt=1", "none"))).rows
    assert row["comparable"] == "no" and row["why"] == f"{table.WITHOUT_LINK} Other hardware."
    bytes_of = next(f for f in figures.figures() if f.column == "communication_kb" and f.row["network"] == "LAN")
    assert not bytes_of.over_link


def _sweep(repeat: int, party: int, phase: str, seconds: float) -> Record:
    offline = seconds if phase == "offline" else 0.0
    row = dict.fromkeys((*recorded.CASE, *recorded.ORIGIN, "rtt_ms"), "x") | {
        "status": "ok",
        "repeat": str(repeat),
        "party": str(party),
        "phase": phase,
    }
    return row | {"seconds": str(seconds), "offline_seconds": str(offline), "cpu_seconds": str(seconds / 2), "bytes_sent": "10"}


def test_a_measurement_of_a_sweep_is_the_median_of_its_slowest_parties() -> None:
    rows = [_sweep(r, p, phase, s + r + p) for r in range(3) for p in range(2) for phase, s in (("offline", 1.0), ("online", 4.0))]
    whole, offline, online = recorded.measurements([*rows, _sweep(9, 0, "online", 99.0) | {"status": "failed"}])
    assert [one["phase"] for one in (whole, offline, online)] == ["", "offline", "online"]
    assert [float(whole[name]) for name in ("seconds", "seconds_low", "seconds_high")] == [9, 7, 11] and whole["runs"] == "3"
    assert float(whole["online_seconds"]) == 6 and float(whole["cpu_party"]) == 4.5 and float(whole["cpu_online_party"]) == 3
    assert float(whole["sent"]) == 20 and float(online["sent"]) == 10


def _git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_the_history_is_that_of_head(tmp_path: Path) -> None:
    where = tmp_path / "project"
    where.mkdir()
    with pytest.raises(HistoryError, match="run it in a checkout"):
        History.of(where)
    _git(where, "init", "-q", "-b", "one")
    for name in ("one", "two"):
        _git(where, "commit", "-q", "--allow-empty", "-m", name)
    first, aside = _git(where, "rev-parse", "HEAD~1"), _git(where, "rev-parse", "HEAD")
    _git(where, "checkout", "-q", "-b", "other", first)
    _git(where, "commit", "-q", "--allow-empty", "-m", "three")
    history = History.of(where)
    assert history.refusal(first[:12]) == history.refusal(first[:8]) == "" and "not of this history" in history.refusal(aside[:12])
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{where}", str(tmp_path / "shallow")], check=True, capture_output=True)
    with pytest.raises(HistoryError, match="git fetch --unshallow"):
        History.of(tmp_path / "shallow")


def test_claims_and_their_checks_belong_together(papers: table.Papers) -> None:
    fewer = replace(papers, rules=replace(papers.rules, checks=papers.rules.checks[1:]))
    with pytest.raises(RuleError, match="not in both"):
        claims.verdicts(fewer, RESULTS, History(frozenset()))


def test_a_claim_is_judged_by_rows_that_count(papers: table.Papers) -> None:
    """By another bound, and by results none of which counts, the verdict is another one."""
    claim = "about 37 times"
    check = next(check for check in papers.rules.checks if claim in check.claim)
    others = [one for one in papers.rules.checks if one is not check]

    def verdict(least: float, rows: table.Papers) -> str:
        changed = replace(rows, rules=replace(rows.rules, checks=[*others, replace(check, least=least)]))
        return next(v.holds for v in claims.verdicts(changed, RESULTS, History(frozenset())) if claim in v.claim["claim"])

    without = replace(papers, by_figure={f: [row | {"ours": ""} for row in of] for f, of in papers.by_figure.items()})
    assert [verdict(1, papers), verdict(1e6, papers), verdict(1, without)] == [claims.HOLDS, claims.FAILS, claims.CITED]


def _verdict(papers: table.Papers, check: rules.Check, results: Path = RESULTS) -> claims.Verdict:
    """The verdict of one claim, judged by another check."""
    others = [one for one in papers.rules.checks if one.claim != check.claim]
    changed = replace(papers, rules=replace(papers.rules, checks=[*others, check]))
    return next(v for v in claims.verdicts(changed, results, History(_recorded_commits())) if v.claim["claim"] == check.claim)


def test_a_spread_is_that_of_one_system(papers: table.Papers) -> None:
    """That with MACs is slower says nothing about the number of parties."""
    check = next(check for check in papers.rules.checks if check.of == "spread")
    figures_of = [f for f in papers.figures if f.table == check.figure["table"] and f.row["ping_ms"] == 10]
    row = {"comparable": "partly", "system": "tables"}
    rows = {f: [row | {"ours": ours}, row | {"ours": "90", "system": "MACs"}] for f, ours in zip(figures_of, ("50", "51", "52"), strict=True)}
    flat = replace(papers, by_figure={**papers.by_figure, **rows})
    assert _verdict(flat, check).holds == claims.HOLDS and "1 to 1.04" in _verdict(flat, check).why
    steep = replace(flat, by_figure={**flat.by_figure, figures_of[0]: [row | {"ours": "10"}]})
    assert _verdict(steep, check).holds == claims.FAILS
    alone = replace(papers, by_figure={**papers.by_figure, **{f: [] for f in figures_of}, figures_of[0]: [row | {"ours": "10"}]})
    assert _verdict(alone, check).holds == claims.CITED


def test_a_bound_can_confirm_and_not_refute(papers: table.Papers, tmp_path: Path) -> None:
    """The CNN under multi-key CKKS takes at least its relinearised products: if these alone take 1.8 times our evaluation, the claim holds; less shows nothing. Both tables must count."""
    check = next(check for check in papers.rules.checks if check.bound)
    (tmp_path / "bench").mkdir()
    known = min(_recorded_commits())
    head = [
        *recorded.CASE,
        *recorded.ORIGIN,
        "rtt_ms",
        "status",
        "repeat",
        "party",
        "phase",
        "seconds",
        "offline_seconds",
        "cpu_seconds",
        "bytes_sent",
    ]
    cells = dict.fromkeys(head, "x") | {
        "name": "encrypted digits and model",
        "phase": "evaluation",
        "batch": "8",
        "status": "ok",
        "repeat": "0",
        "party": "0",
    }
    cells |= {"seconds": "1", "offline_seconds": "0", "cpu_seconds": "1", "bytes_sent": "0"}
    products = 23
    for ms, commit, other, holds in ((100, known, known, claims.HOLDS), (50, known, known, claims.CITED), (100, known, "f" * 12, claims.CITED)):
        lines = [head, [(cells | {"commit": other})[name] for name in head]]
        (tmp_path / "bench" / "cnn.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        (tmp_path / "multikey.csv").write_text(
            f"workload,reading,gadget,parameters,parties,ours,commit\nW2r,multi-key,rns,mk-ckks-set2,2,{ms},{commit}\n"
        )
        verdict = _verdict(papers, check, tmp_path)
        assert verdict.holds == holds and (other != known or verdict.why.endswith(f"ours {table.text(products * ms / 1000, 3)}"))


def test_the_page_begins_with_a_headline_of_each_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "latency.csv").write_text(f"{HEAD}<tables>,semi2k,4,rtt=1,16,4,8,{GOOD[:12]}\n")
    (results / "report").mkdir()
    (results / "report" / "published_000_slide_throughput_2.png").write_bytes(b"")
    text = (ROOT / "params/published/ours/000.toml").read_text()
    headline = text[text.index("[[headline]]") : text.index("[[headline]]", text.index("[[headline]]") + 1)]
    made = _rules(tmp_path, RULE + headline)
    monkeypatch.setattr(
        table, "load_rules", lambda: replace(made, checks=rules.load_rules().checks, sources={**rules.load_rules().sources, **made.sources})
    )
    monkeypatch.setattr(History, "of", classmethod(lambda cls, folder: History(frozenset({GOOD}))))
    done = CliRunner().invoke(app, ["report", str(results), "--papers"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].startswith("papers: rows=1 ours=1 without=") and done.output.rstrip().endswith("partly=1 no=0")
    page = (results / "report" / "papers.html").read_text()
    assert "&lt;tables&gt;" in page and '<td class="number behind">0.53</td>' in page and "our reading of an illegible" not in page.split("<h2")[0]
    assert page.count("<h2") == 5 and '<img alt="published_000_slide_throughput_2.png"' in page and "cited only" in unescape(page)
