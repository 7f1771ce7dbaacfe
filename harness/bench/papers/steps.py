"""The steps of ``make papers``: each is a command, with the table that it writes. A new measurement is one entry more."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.toprf.tfhe import bridge_is_built
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR, WITH_MACS, over_ring

Rows = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Step:
    """A measurement. ``words``: its command, after ``python -m``; ``table``: the file in ``results``; ``minutes``: expected on two cores that are idle.

    ``rows``: columns of the table, and values of the rows that the step writes: a row of every combination must be there (none: any row). ``full``: of ``make papers-full`` alone.
    ``sweep``: a command of ``keyquorum bench``, which continues where it stopped, and needs ``--fresh`` at a new commit. ``needs``: a name in :data:`NEEDS`."""

    name: str
    words: tuple[str, ...]
    table: str
    minutes: float
    rows: Rows = field(default_factory=dict)
    full: bool = False
    sweep: bool = False
    needs: str = ""

    @property
    def limit(self) -> float:
        """Minutes after which the step is stopped."""
        return max(15.0, 4 * self.minutes)


MP_SPDZ, TFHE_RS = "a built checkout of MP-SPDZ (MP_SPDZ_HOME)", "the bridge to TFHE-rs (make tfhe-bridge)"
NEEDS: Mapping[str, Callable[[], bool]] = {MP_SPDZ: lambda: bool(os.environ.get("MP_SPDZ_HOME")), TFHE_RS: bridge_is_built}
"""What a step may need besides, and whether it is here."""


def _step(name: str, command: str, table: str, minutes: float, rows: Rows | None = None, **more: object) -> Step:
    return Step(name, tuple(command.split()), table, minutes, rows or {}, **more)  # type: ignore[arg-type]


def _paper004(link: str, parties: str, minutes: float, full: bool = False, more: str = "") -> Step:
    """Rows of paper 004 over a link. ``parties``: comma-separated."""
    rows = {"link": (link,), "parties": tuple(parties.split(","))}
    command = f"bench.paper004 --parties {parties} --link {link}{more}"
    return _step(f"paper004 {link.removeprefix('paper004-')} {parties}", command, "paper004.csv", minutes, rows, full=full)


def _ajax_keys(link: str, parties: str, minutes: float, full: bool = False) -> Step:
    """Keys of ``ajax53`` over a link. ``parties``: comma-separated."""
    rows = {"link": (link,), "parties": tuple(parties.split(","))}
    return _step(f"ajax keys {link} {parties}", f"bench.decryption.ajax keys --link {link} --parties {parties}", "ajax.csv", minutes, rows, full=full)


def _exactness(name: str, protocols: tuple[str, ...], minutes: float, full: bool = False) -> Step:
    """Counts of wrong decryptions, some hundred of each row. ``protocols``: of the committees; the table has those of their roundings."""
    command = f"bench.decryption.exactness --items 512 --protocol {','.join(protocols)} --record"
    return _step(name, command, "exactness.csv", minutes, {"decryptions": ("512",), "protocol": tuple(map(over_ring, protocols))}, full=full)


WITHOUT_MACS = (ADDITIVE, REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR)
PINGS = tuple(f"rtt={ping},mbit=1000" for ping in (0, 1, 5, 10, 25, 50, 100))
STEPS: tuple[Step, ...] = (
    # Paper 000
    _step("latency", "bench.decryption.latency --parties 2,4,8", "latency.csv", 4, {"n": ("2", "4", "8"), "link": ("rtt=1", "rtt=10")}),
    _step("latency 16", "bench.decryption.latency --parties 16", "latency.csv", 5, {"n": ("16",), "link": ("rtt=1", "rtt=10")}, full=True),
    _step("latency macs", "bench.decryption.latency --macs --parties 2,4 --runs 41", "latency_macs.csv", 3, {"n": ("2", "4"), "link": ("rtt=1", "rtt=10")}),
    _step("latency macs 8", "bench.decryption.latency --macs --parties 8 --runs 11 --repeats 1", "latency_macs.csv", 15, {"n": ("8",)}, full=True),
    _step("latency macs 16", "bench.decryption.latency --macs --parties 16 --runs 11 --repeats 1", "latency_macs.csv", 60, {"n": ("16",)}, full=True),
    _step("throughput", "bench.decryption.throughput --ping 1 --batch 1024,4096 --only semi", "throughput.csv", 3, {"batch": ("1024", "4096"), "link": PINGS[1:2]}),
    _step("throughput all", "bench.decryption.throughput", "throughput.csv", 120, {"link": PINGS}, full=True),
    _step("decrypt", "bench.decryption.decrypt", "decrypt.csv", 6),
    _step("exchanges", "bench.decryption.exchanges", "exchanges.csv", 0.5),
    _exactness("exactness", WITHOUT_MACS, 2),
    _exactness("exactness macs", (WITH_MACS,), 20, full=True),
    _step("exactness long", "bench.decryption.exactness --record", "exactness.csv", 900, {"decryptions": ("1000000",)}, full=True),
    # Paper 001
    _step("multikey", "bench.multikey", "multikey.csv", 6),
    _step("multikey full", "bench.multikey --full", "multikey.csv", 120, {"workload": ("W3all",)}, full=True),
    # Paper 002
    _ajax_keys("none", "3,5", 2),
    _ajax_keys("lan", "3", 1),
    _ajax_keys("none", "7,9,15,21", 20, full=True),
    _ajax_keys("lan", "5,7,9,15,21", 30, full=True),
    _ajax_keys("wan", "3,5,7,9,15,21", 60, full=True),
    _step("ajax decryptions", "bench.decryption.ajax decryptions --parties 2,4", "ajax_decryption.csv", 5, {"n": ("2", "4"), "link": ("lan", "wan")}),
    _step("ajax decryptions 14", "bench.decryption.ajax decryptions --parties 14", "ajax_decryption.csv", 15, {"n": ("14",), "link": ("lan", "wan")}, full=True),
    # Paper 003
    _step("toprf", "bench.toprf", "toprf.csv", 9),
    _step("lisss", "bench.toprf.lisss", "lisss.csv", 1.5),
    # Paper 004
    _paper004("none", "2,4", 4),
    _paper004("paper004-lan", "2,4", 4),
    _paper004("paper004-wan", "2,4", 7),
    _paper004("none", "8", 6, more=" --repeats 1"),
    _paper004("paper004-lan", "8", 6, more=" --repeats 1"),
    _paper004("paper004-wan", "8", 12, full=True, more=" --repeats 1"),
    _paper004("none", "16", 60, full=True),
    _paper004("paper004-lan", "16", 60, full=True),
    _paper004("paper004-wan", "16", 90, full=True),
    _step("cnn", "keyquorum bench cnn --patience 15 --timeout 400", "bench/cnn.csv", 3, sweep=True),
    _step("cnn thousand", "keyquorum bench cnn_thousand --repeats 1 --timeout 1800", "bench/cnn_thousand.csv", 5, sweep=True, full=True),
    _step("ghs transforms", "bench.ghs --what transform,transform-inverse", "ghs.csv", 0.5, {"what": ("transform", "transform-inverse")}),
    _step("ghs decryption", "bench.ghs --what decryption-rounding,decryption-bits", "ghs.csv", 3, {"what": ("decryption-rounding", "decryption-bits")}),
    _step("ghs keys", "bench.ghs --what keys --noise cbd --link none", "ghs.csv", 3, {"what": ("keys",), "noise": ("cbd",), "link": ("none",)}),
    _step("ghs keys gaussian", "bench.ghs --what keys --noise gaussian --link none", "ghs.csv", 9, {"what": ("keys",), "noise": ("gaussian",), "link": ("none",)}, full=True),
    _step("ghs keys links", "bench.ghs --what keys --link paper004-lan,paper004-wan", "ghs.csv", 60, {"what": ("keys",), "link": ("paper004-lan", "paper004-wan")}, full=True),
    _step("peers", "bench.peers", "peers.csv", 5, full=True),
    # The table of threat models, and other tables of results/README.md
    _step("threat models", "keyquorum bench threat_models --patience 15 --timeout 400", "bench/threat_models.csv", 8, sweep=True),
    _step("keygen", "bench.keygen", "keygen.csv", 2.5, full=True),
    _step("service", "bench.service", "served.csv", 5, full=True),
    _step("epochs", "bench.epochs", "epochs.csv", 3, full=True),
    _step("tfhe keys", "bench.tfhe keys", "tfhe.csv", 4, needs=TFHE_RS, full=True),
    _step("dishonest", "bench.primitives dishonest", "dishonest.csv", 3, needs=MP_SPDZ, full=True),
    _step("verified", "bench.primitives verified", "verified.csv", 5, needs=MP_SPDZ, full=True),
    _step("parity", "bench.parity", "parity.csv", 60, needs=MP_SPDZ, full=True),
)  # fmt: skip
"""All steps, in their order. The expected minutes come from the times in ``results``."""
