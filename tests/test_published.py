"""Published figures: every file is a table, is described in the README, and has the figures of the papers."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyquorum.model import published
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.published import MalformedTableError, UnknownTableError, load, read_table, tables

README = (Path(__file__).resolve().parents[1] / "params" / "published" / "README.md").read_text()


def rows_of_readme(heading: str, header: str) -> list[str]:
    """The first cells of the tables of the README whose header starts with ``header``, below ``heading``."""
    cells = []
    for part in README[README.index(heading) :].split(f"\n| {header} |")[1:]:
        lines = part.split("\n\n")[0].splitlines()
        cells += [line.split("|")[1] for line in lines[2:]]
    return cells


def find(name: str, **wanted: published.Cell) -> published.Row:
    """The one row that has these cells."""
    found = [row for row in load(name) if all(row[column] == value for column, value in wanted.items())]
    assert len(found) == 1
    return found[0]


def test_every_paper_has_tables() -> None:
    assert {name[:4] for name in tables()} == {"000_", "001_", "002_", "003_", "004_"}


def test_the_readme_names_every_file_and_no_other() -> None:
    named = [name for cell in rows_of_readme("## 000", "file") for name in re.findall("`([^`]+)`", cell)]
    assert sorted(named) == tables()


def test_the_readme_explains_every_column_and_no_other() -> None:
    named = [name for cell in rows_of_readme("## Columns", "column") for name in re.findall("`([^`]+)`", cell)]
    used = {column for name in tables() for column in load(name)[0]}
    assert sorted(named) == sorted(used)


def test_columns_of_text_are_used() -> None:
    assert {column for name in tables() for column in load(name)[0]} >= published.TEXT_COLUMNS


@pytest.mark.parametrize("name", tables())
def test_a_table_is_tidy(name: str) -> None:
    """Rows differ, columns have one type, no column is empty, and each row states a figure."""
    rows = load(name)
    assert len({tuple(row.items()) for row in rows}) == len(rows)
    for column in rows[0]:
        cells = [row[column] for row in rows if row[column] is not None]
        expected = str if column in published.TEXT_COLUMNS else int | float
        assert all(isinstance(cell, expected) for cell in cells)
        assert cells or column in ("symbol", "formula")
    for row in rows:
        if "formula" in row:
            assert (row["value"] is None) != (row["formula"] is None)


@pytest.mark.parametrize(
    ("name", "where", "figures"),
    [
        ("000_slide_online_latency", {"parties": 16, "ping_ms": 10}, {"online_ms": 56.979}),
        ("000_slide_throughput", {"protocol": "Mod-L"}, {"latency_ms": 8.48, "decryptions_per_second": 64319}),
        ("001_table2_multiplication", {"parties": 10}, {"ms": 1642}),
        ("001_table4_rgsw_openfhe_1_0_3", {"threads": 16}, {"minutes": 4, "seconds": 53}),
        (
            "002_table1_decryption",
            {"protocol": "Ajax", "corruption_threshold": 13, "network": "WAN"},
            {"total_ms": 54.499},
        ),
        ("002_table2_parameters", {"quantity": "modulus"}, {"value": 9007199254614017}),
        (
            "002_section1_end_to_end",
            {"parties": 21, "network": "WAN"},
            {"keygen_seconds": 908.0, "decryption_ms": 42.4},
        ),
        ("003_table1_oprf", {"parties": 2}, {"seconds": 0.96, "mb": 5.12}),
        ("004_table2_gaussian", {"parties": 16, "network": "WAN"}, {"ms": 11.27, "communication_kb": 164.60}),
        (
            "004_table4_conversion",
            {"operation": "Z3 to Zq", "parties": 8, "network": "LAN"},
            {"us": 863, "communication_kb": 35.0},
        ),
        (
            "004_table5_cnn",
            {"operation": "KeyGen", "parties": 4, "network": "WAN"},
            {"seconds": 1876, "communication_gb": 33},
        ),
        (
            "004_table8_aes_leveled",
            {"operation": "KeyGen", "network": "LAN"},
            {"seconds": 45573, "communication_gb": 909},
        ),
        ("004_appendix_a_binary_keygen", {"protocol": "CKKS"}, {"total_and_gates": 5.04e11}),
    ],
)
def test_figures(name: str, where: published.Row, figures: published.Row) -> None:
    row = find(name, **where)
    assert {column: row[column] for column in figures} == figures


def test_figures_that_are_our_reading_say_so() -> None:
    """Three cells are hardly legible (see the README): a note says that they are readings, and fits the other rows."""
    noted = [
        (name, row["parties"], row["network"], row["seconds" if "seconds" in row else "communication_kb"])
        for name in ("004_table3_fixed_weight", "004_table4_conversion")
        for row in load(name)
        if row["note"] is not None
    ]
    assert noted == [("004_table3_fixed_weight", 4, "LAN", 63), ("004_table4_conversion", 8, "LAN", 124), ("004_table4_conversion", 8, "WAN", 124)]
    kilobytes = {
        (row["operation"], row["parties"]): float(row["communication_kb"])  # type: ignore[arg-type]
        for row in load("004_table4_conversion")
    }
    for operation in ("Z2 to Zq", "Z3 to Zq", "Zq to bits"):
        assert [round(kilobytes[operation, n] / kilobytes[operation, 2], 1) for n in (4, 8, 16)] == pytest.approx([4, 11, 26], abs=0.3)
    assert all(row["seconds"] is not None and row["communication_mb"] is not None for row in load("004_table3_fixed_weight"))


def test_tables_agree_with_what_the_papers_say_about_them() -> None:
    """Sums and quotients that the papers print beside the tables: a wrong digit would break them."""
    gates = {row["gate"]: row["gates"] for row in load("003_section3_gates")}
    assert gates["XOR"] + gates["AND"] == gates["XOR and AND"]  # type: ignore[operator]
    total = find("003_sections3_4_parameters", quantity="gates of the AES-128 circuit")["value"]
    assert gates["XOR"] + gates["AND"] + gates["NOT"] == total  # type: ignore[operator]

    ark = find("002_table1_decryption", protocol="Noah's Ark", corruption_threshold=1, network="LAN")
    ajax = find("002_table1_decryption", protocol="Ajax", corruption_threshold=1, network="LAN")
    assert round(ark["total_ms"] / ajax["total_ms"], 1) == 283.6  # type: ignore[operator]
    ark = find("002_table1_decryption", protocol="Noah's Ark", corruption_threshold=13, network="WAN")
    ajax = find("002_table1_decryption", protocol="Ajax", corruption_threshold=13, network="WAN")
    assert round(ark["online_ms"] / ajax["total_ms"], 1) == 5.7  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "column", "tolerance"),
    [
        ("004_table2_gaussian", "communication_kb", 0.001),
        ("004_table3_fixed_weight", "communication_mb", 0.002),
    ],
)
def test_communication_grows_as_the_parties_less_one(name: str, column: str, tolerance: float) -> None:
    first: dict[published.Cell, float] = {}
    for row in load(name):
        share = row[column] / (row["parties"] - 1)  # type: ignore[operator]
        assert share == pytest.approx(first.setdefault(row.get("phi_m"), share), rel=tolerance)


@pytest.mark.parametrize("name", ["004_table2", "004_table2_gaussian.csv", "../ckks-4096", ""])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(UnknownTableError, match=r"no published table .*tables\(\) lists all"):
        load(name)


def test_an_unknown_name_brings_the_closest() -> None:
    with pytest.raises(UnknownTableError, match="for instance 004_table2_gaussian"):
        load("004_table2_gausian")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no header and rows"),
        (b"parties,ms\n", "no header and rows"),
        (b"parties,\n2,3\n", "line 1: a column without a name"),
        (b"parties,parties\n2,3\n", "line 1: .*named twice"),
        (b"parties,ms\n2,3\n4\n", "line 3: 1 cells, but the header has 2"),
        (b"parties,ms\n2,3,4\n", "line 2: 3 cells, but the header has 2"),
        (b"parties,ms\n2,3\n\n", "line 3: 0 cells"),
        (b"parties,ms\n2,fast\n", "line 2, column ms: 'fast' is no number"),
        (b"parties,ms\n2,3s\n", "line 2, column ms: '3s' is no number"),
        (b"parties,ms\n2,nan\n", "line 2, column ms: 'nan' is no number"),
        (b"parties,ms\n2, 3\n", "line 2, column ms: ' 3' is no number"),
        (b'parties,ms\n2,"3\n', "not readable as CSV"),
        (b"parties,ms\n2,\xff\n", "not readable as CSV"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(MalformedTableError, match=message) as caught:
        read_table(path)
    assert isinstance(caught.value, KeyQuorumError)
    assert "\n" not in str(caught.value)


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(),
            st.none() | st.floats(0.001, 1e6).map(lambda x: round(x, 3)),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1),
        ),
        min_size=1,
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[published.Cell, ...]]) -> None:
    path = tmp_path_factory.mktemp("written") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("parties", "ms", "operation"), *rows])
    assert read_table(path) == [dict(zip(("parties", "ms", "operation"), row, strict=True)) for row in rows]
