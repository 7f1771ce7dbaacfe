"""The benchmark of AES under a shared key: its lines, what it counts, and the rows of a default run."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from bench.toprf import runs
from bench.toprf.__main__ import BENCH, Measurement, measure, measurements
from keyquorum.inspection.tables import RESULTS


@pytest.mark.parametrize("method", ["circuit", "table"])
def test_a_line_and_a_row(method: str) -> None:
    """A party of two sends 10 openings of a block by tables: 160 bytes. By the circuit it sends two bits for each of 5,760 ANDs."""
    row = measure(Measurement(method, "semi2k", 2, 1, "none"))
    assert re.match(
        rf"toprf: system=native method={method} protocol=semi2k n=2 ms=\d+\.\d\d mb=0\.\d{{6}} per_s=\d+ batch=1 link=none ", BENCH.line(row)
    )
    assert row["wrong"] == 0 and BENCH.columns[:7] == RESULTS["AES under a shared key (make bench-toprf)"]
    least = 160 if method == "table" else 1440
    assert float(str(row["all_mb"])) == pytest.approx(2 * float(str(row["mb"])), rel=0.01), "both parties send as much"
    assert least <= float(str(row["mb"])) * 1e6 < 3 * least + 2000


def test_what_is_made_ahead_is_spread_over_all_counted_runs() -> None:
    """Two batches of triples, each made in one run and used in several: the mean of the runs, and not the last or the middle one."""
    made = [40, 0, 0, 40, 0, 0, 0, 0, 0]  # bytes of each run; the first three are not counted
    state = {"sent": 0, "offline": 0, "run": 0}

    def stats() -> dict[str, int]:
        return {"bytes_sent": state["sent"], "offline_bytes_sent": state["offline"], "offline_microseconds": 1000 * state["offline"], "rounds": 0}

    def run() -> int:
        ahead = made[min(state["run"], len(made) - 1)]
        state.update(sent=state["sent"] + ahead + 7, offline=state["offline"] + ahead, run=state["run"] + 1)
        return state["run"]

    session: Any = SimpleNamespace(all_gather=lambda data: [data])
    context: Any = SimpleNamespace(backend=SimpleNamespace(stats=stats), session=session, parties=1)
    figures, last = runs.measured(context, lambda: runs.Once(run))
    counted = figures["runs"]
    assert last == counted + 3 and figures["sent"] == 7
    assert figures["offline_sent"] == pytest.approx(40 / counted) and figures["offline"] == pytest.approx(0.04 / counted)


def test_the_rows_of_a_default_run() -> None:
    rows = measurements()
    assert [(row.system, row.method, row.protocol, row.parties) for row in rows if row.system == "F"] == [("F", "tfhe-rs", "rep-field", 3)]
    assert {(row.method, row.protocol, row.parties) for row in rows if row.system not in ("F", "legendre")} == {
        (method, protocol, n)
        for method in ("circuit", "table")
        for protocol, n in (("ring", 3), ("semi2k", 2), ("semi2k", 4), ("semi2k", 8), ("spdz2k", 2))
    }
    assert max(row.batch for row in rows if row.method == "table") == 64


def test_a_line_of_lwe_ciphertexts() -> None:
    """A party of two sends the masked bit of 11,520 + 128 roundings, and 31-bit openings before them, in 40 layers."""
    row = measure(Measurement("circuit", "semi2k", 2, 1, "none", "H"))
    assert re.match(r"toprf: system=H method=circuit protocol=semi2k n=2 ms=\d+\.\d\d mb=0\.\d{6} per_s=\d+ batch=1 link=none ", BENCH.line(row))
    assert row["wrong"] == 0
    assert 31 * 11648 / 8 <= float(str(row["mb"])) * 1e6 < 1e6


@pytest.mark.parametrize("method", ["degree-1", "degree-2"])
def test_a_line_of_the_legendre_prf(method: str) -> None:
    """A party sends an element of 16 bytes for each product: the square, and one or two, for each of 128 symbols; in two rounds."""
    row = measure(Measurement(method, "ring", 3, 1, "none", "legendre"))
    assert re.match(
        rf"toprf: system=legendre method={method} protocol=ring n=3 ms=\d+\.\d\d mb=0\.\d{{6}} per_s=\d+ batch=1 link=none ", BENCH.line(row)
    )
    products = 1 + int(method[-1])
    assert row["wrong"] == 0 and row["rounds"] == 2
    assert 16 * 128 * products <= float(str(row["mb"])) * 1e6 < 16 * 128 * products + 500
    assert {(row.method, row.protocol, row.parties, row.batch) for row in measurements() if row.system == "legendre"} == {
        (name, "ring", 3, batch) for name in ("degree-1", "degree-2") for batch in (1, 64, 1024)
    }
