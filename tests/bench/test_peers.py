"""``make peers``: its table, its figure, and what it does where a library is missing."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from bench.peers import __main__ as bench
from bench.peers import openfhe
from bench.peers.base import Pair, Peer, Setting, Spent
from keyquorum.model.errors import ParameterError
from keyquorum.report import data
from keyquorum.report.libraries import libraries
from keyquorum.sweep import peers
from keyquorum.sweep.peers import openfhe_threshold


class _Fake(Peer):
    """A library that is not there, or that took 2 s where we take 3."""

    name, sets, here = "fake", ("bfv-4096",), True

    def model(self, parameters: str) -> str:
        return "none"

    def version(self) -> str:
        return "fake 1"

    def pairs(self, setting: Setting) -> Iterator[Pair]:
        assert len(os.sched_getaffinity(0)) == setting.cores == 1
        if not self.here:
            raise peers.PeerMissingError("no wheel fits")
        yield Pair("keys", 4096, 65537, (72.0, 73.0), Spent([1.0, 2.0, 9.0], [1.0, 1.5, 2.0]), Spent([3.0], [5.0], 1000), "All of it.")


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_and_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, cores = _Fake(), os.sched_getaffinity(0)
    monkeypatch.setattr(bench, "PEERS", {"fake": fake})
    table = tmp_path / "peers.csv"
    assert bench.BENCH.main(["--parties", "2", "--output", str(table)]) == 0
    [row] = _rows(table)
    assert (row["seconds"], row["low"], row["high"], row["runs"], row["ours"], row["ratio"], row["cpu"]) == ("2", "1", "9", "3", "3", "1.5", "1.5")
    assert (row["our_bytes"], row["log2_q"], row["our_log2_q"], row["t"], row["pinned_cores"]) == ("1000", "72.0", "73.0", "65537", "1")
    assert row["status"] == "ok" and row["commit"] and row["machine"] and row["utc"] and row["differs"] == "All of it."
    found = pd.DataFrame()
    assert libraries(found) is None
    found.attrs["peers"] = data.own_table(tmp_path, "peers")
    made = libraries(found)
    assert made is not None and "fake, keys: All of it." in made[1]
    plt.close(made[0])
    monkeypatch.setattr(_Fake, "here", False)
    assert bench.BENCH.main(["--parties", "2", "--output", str(table)]) == 0
    [row] = _rows(table)
    assert row["status"] == "skipped: no wheel fits" and not row["seconds"]
    assert os.sched_getaffinity(0) == cores, "the cores are given back"


def test_cores_that_are_not_there_are_refused() -> None:
    with pytest.raises(ParameterError, match="--cores 4096: this machine has"), bench.pinned(4096):
        pass


class _Moduli:
    """As much of OpenFHE as contexts take: a modulus of 60 (depth + 1) bits, at most 200 for the ring."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self._parameters() if name.startswith("CCParams") else given

    def _parameters(self) -> Any:
        chosen: dict[str, int] = {}

        class Parameters:
            def __getattr__(self, name: str) -> Any:
                return lambda value: chosen.__setitem__(name, value)

        made = Parameters()
        self.chosen = chosen
        return made

    def GenCryptoContext(self, parameters: Any) -> Any:
        bits = 60 * (self.chosen["SetMultiplicativeDepth"] + 1)
        if bits > 200:
            raise RuntimeError("the ring is too small")

        class Context:
            def __getattr__(self, name: str) -> Any:
                return lambda *given: 2.0**bits

        return Context()


@pytest.mark.parametrize(("most", "bits"), [(174, 120), (180, 180), (400, 180)])
def test_openfhe_takes_the_longest_modulus_that_fits(most: int, bits: int) -> None:
    assert openfhe_threshold._log2_q(openfhe_threshold._context(_Moduli(), "bfv", 8192, most)) == bits


def test_a_ring_without_a_modulus_that_fits_is_refused() -> None:
    with pytest.raises(LookupError, match="no bfv with N = 8192 and a modulus of at most 50 bits"):
        openfhe_threshold._context(_Moduli(), "bfv", 8192, 50)


def test_openfhe_at_our_ring_and_cores() -> None:
    """Its part alone: ours is measured in other tests."""
    try:
        found = peers.openfhe(["bfv", "2", "16384", "389", "1"], 120.0, threads=1)
    except peers.PeerMissingError as error:
        pytest.skip(str(error))
    assert found["ring_degree"] == 16384 and 0 < found["log2_q"] <= 389 and found["threads"] == "1"
    assert openfhe.OpenFhe().model("ckks-16384") == "fixed-noise"
