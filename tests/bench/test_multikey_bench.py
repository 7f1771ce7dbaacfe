"""``python -m bench.multikey``: it runs, compares with paper 001's own figures, and its sizes are those of keys that are made."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from bench.multikey import comparison, decryption, workloads
from bench.multikey.__main__ import BENCH, MOST_DECRYPTING, PARTIES
from bench.multikey.gadgets import RnsGadget
from bench.multikey.relinearisation import evaluation_key
from bench.multikey.scheme import Party, Reference
from bench.multikey.sets import BGV, CKKS_SET2, QUICK, SMALL_BGV, Shape, check
from keyquorum.fhe.parameters import load
from keyquorum.model.errors import ParameterError
from keyquorum.report import data, multikey


def test_the_set_is_what_paper_001_has() -> None:
    assert BGV.security == "tc128" and BGV.levels == 5 and BGV.plain_modulus == 65537
    assert all(q % (2 * 16384 * 65537) == 1 for q in BGV.coeff_modulus)
    assert math.log2(math.prod(BGV.moduli(5))) == pytest.approx(242, abs=0.1)
    for wrong, text in (("bfv-8192", "is BGV, not BFV"), ("ckks-8192", "is BGV, not CKKS")):
        with pytest.raises(ParameterError, match=text):
            check(load(wrong))
    assert check(SMALL_BGV) is SMALL_BGV


def test_sizes_are_those_of_keys() -> None:
    reference = Reference(RnsGadget(QUICK), bytes(16))
    party, shape = Party(0, reference), Shape.of(QUICK)
    assert (party.public.b.nbytes, evaluation_key(party).nbytes) == (shape.public_key, shape.evaluation_key)
    mib = {(row["workload"], row["reading"], row["parties"]): row["ours"] for k in PARTIES for row in comparison.sizes(BGV, k)}
    assert [mib["ciphertext", "multi-key, k + 1 polynomials", k] for k in PARTIES] == [1.875, 2.5, 3.125, 3.75, 5.625, 6.875, 10.62]
    assert [mib["ciphertext", "multi-key, 2 k polynomials", k] for k in (2, 16)] == [2.5, 20.0]
    assert [mib["evaluation key", "multi-key", k] for k in PARTIES] == [22.5, 33.75, 45.0, 56.25, 90.0, 112.5, 180.0]
    assert {mib["evaluation key", "joint", k] for k in PARTIES} == {7.5} and {mib["ciphertext", "joint", k] for k in PARTIES} == {1.25}
    of_004 = list(comparison.ckks_sizes())
    assert len(of_004) == 8 and all(row["ours"] == row["paper"] and row["ratio"] == 1 for row in of_004), "table 6 of paper 004, to the digit"
    assert CKKS_SET2.evaluation_key == 21 << 20


def test_figures_of_the_paper() -> None:
    assert workloads.paper("001_table1_addition", "parties", 10) == 579 and workloads.paper("001_table2_multiplication", "parties", 16) is None
    assert workloads.paper("001_table3_rgsw_openfhe_1_1_1", "threads", 2) == 223_000


def test_a_wrong_result_is_an_error() -> None:
    made = workloads.Keys(QUICK, "rns")
    x = made.values(2)
    with pytest.raises(workloads.WrongResultError, match="of 2 parties decrypts to something else"):
        made.check(made.sum(made.fresh(x)), x.sum(axis=0) + 1)


def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All workloads but those of the quorum's keys, which tests of key generation make. A joint product takes less time than any other, as a break-even needs: one run on a busy machine may not."""
    honest = comparison.joint_product
    monkeypatch.setattr(comparison, "quorum", lambda parameters, parties: (12.0, 3.0))
    monkeypatch.setattr(comparison, "joint_product", lambda parameters, runs: replace(honest(parameters, runs), ms=0.001, low=0.001, high=0.001))
    output = tmp_path / "multikey.csv"
    assert BENCH.main(["--quick", "--runs", "1", "--parties", "2,1,0", "--output", str(output)]) == 0
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = {(row["workload"], row["reading"]) for row in rows}
    assert {workload for workload, _ in kinds} == {
        "W1", "W2", "W2r", "W3", "ciphertext", "evaluation key", "public key", "keys", "break-even", "decryption",
    }  # fmt: skip
    assert len([kind for kind in kinds if kind[0] == "W1"]) == 3 and len([kind for kind in kinds if kind[0] == "W2"]) == 4
    assert all(float(row["ours"]) > 0 and row["machine"] and row["commit"] and row["command"] for row in rows)
    assert not any(row["paper"] for row in rows if row["parameters"] == QUICK.name), "figures of another set are not compared"
    cell = {(row["workload"], row["reading"], row["quantity"]): row for row in rows if row["gadget"] != "bits"}
    saved = float(cell["W2r", "multi-key", "ms"]["ours"]) - float(cell["W2r", "joint", "ms"]["ours"])
    alone = float(cell["keys", "multi-key: each party alone", "ms"]["ours"])
    assert float(cell["break-even", "relinearised products", "products"]["ours"]) == pytest.approx((12_000 - alone) / saved, rel=0.01)
    assert cell["decryption", "flooded", "ms"]["wrong"] == "0"
    assert float(cell["decryption", "flooded", "kB"]["ours"]) == pytest.approx(2 * QUICK.ring_degree * 8 / 1e3, rel=0.02)
    lines = [text for text in capsys.readouterr().out.splitlines() if text.startswith("multikey: workload=")]
    assert len(lines) == len(rows)
    _plots(tmp_path)


def _plots(folder: Path) -> None:
    """Every plot shows the rows that were just measured; without them there is none."""
    table = pd.DataFrame()
    assert all(make(table) is None for _, make in multikey.PLOTS.values())
    table.attrs["multikey"] = data.own_table(folder, "multikey")
    for name, (_, make) in multikey.PLOTS.items():
        made = make(table)
        assert made is not None, name
        figure, caption = made
        assert len(caption) > 40 and all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
        labels = {str(container.get_label()) for axis in figure.axes for container in axis.containers}
        assert labels == {"multi-key", "joint"} if name == "multikey" else all(label.startswith("ours, ") for label in labels)
        if name == "multikey":
            assert "products:" in caption and len(figure.axes) == 3
        plt.close(figure)


def test_wrong_decryptions_fail_the_run() -> None:
    assert BENCH.failed([{"wrong": 1}]) and not BENCH.failed([{"wrong": 0}, {}])
    assert MOST_DECRYPTING in PARTIES and decryption.STEPS[-1] == "flooded"
