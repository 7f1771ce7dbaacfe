"""Other libraries beside KeyQuorum in one run: ``make peers``.

Each library at the ring degree, plaintext modulus and number of parties of one of our sets, and on the same ``cores``: both sides run there only, OpenMP has as many
threads (OMP_NUM_THREADS), and all parties share them. ``seconds`` are medians of the runs of the library, ``ours`` of ours: of the slowest party, from its first step, with
preprocessing. ``ratio``: ours over theirs. ``cpu`` and ``our_cpu``: CPU seconds of all parties. ``log2_q`` and ``our_log2_q``: bits of the moduli of fresh ciphertexts, without
primes that only keys have. ``our_bytes``: sent by all our parties; the other libraries send nothing. ``differs``: what is not the same.

A library that is not installed, or that refuses a set, has a row whose ``status`` says why.

    python -m bench.peers [--peer OpenFHE] [--parties 2,3] [--cores 1] [--runs 5] [--quick]
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from keyquorum.model.errors import ParameterError
from keyquorum.sweep.peers import PeerMissingError

from ..runner import CIRCUMSTANCES, Arguments, Bench, Options, Row
from .base import Pair, Peer, Setting
from .openfhe import OpenFhe
from .single_seal import SingleSeal
from .single_tfhe import SingleTfhe

PEERS: dict[str, Peer] = {peer.name: peer for peer in (OpenFhe(), SingleSeal(), SingleTfhe())}


@dataclass(frozen=True)
class Case:
    """A library beside one of our sets."""

    peer: str
    parameters: str
    parties: int


def cases(options: Options) -> list[Case]:
    """All that is measured."""
    parties = [int(count) for count in ("2" if options.quick else options.parties).split(",")]
    return [
        Case(peer.name, name, n)
        for peer in PEERS.values()
        for name in (peer.quick_sets if options.quick else peer.sets)
        for n in peer.counts(parties)
    ]


@contextmanager
def pinned(cores: int) -> Iterator[None]:
    """Runs on so many cores, which processes started here inherit. Raises ParameterError if there are fewer."""
    here = sorted(os.sched_getaffinity(0))
    if not 1 <= cores <= len(here):
        raise ParameterError(f"--cores {cores}: this machine has {len(here)}: choose from 1 to {len(here)}")
    os.sched_setaffinity(0, here[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, here)


def rounded(x: float) -> str:
    """Four digits; empty for what is not known."""
    return "" if x != x else f"{x:.4g}"


def row_of(pair: Pair) -> Row:
    """The columns of an operation that was measured."""
    theirs, ours = pair.theirs, pair.ours
    return {
        "operation": pair.operation, "ring_degree": pair.ring_degree, "log2_q": f"{pair.log2_q[0]:.1f}", "our_log2_q": f"{pair.log2_q[1]:.1f}",
        "t": pair.plain_modulus or "", "seconds": rounded(theirs.median), "low": rounded(min(theirs.seconds)), "high": rounded(max(theirs.seconds)),
        "runs": len(theirs.seconds), "ours": rounded(ours.median), "our_low": rounded(min(ours.seconds)), "our_high": rounded(max(ours.seconds)),
        "ratio": rounded(ours.median / theirs.median), "cpu": rounded(theirs.median_cpu), "our_cpu": rounded(ours.median_cpu),
        "our_bytes": "" if ours.sent is None else ours.sent, "differs": pair.differs, "status": "ok",
    }  # fmt: skip


def job(case: Case, options: Options) -> Iterator[Row]:
    """The rows of a case."""
    peer, utc = PEERS[case.peer], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    who: Row = {
        "peer": peer.name, "peer_version": peer.version(), "parameters": case.parameters, "parties": case.parties, "model": peer.model(case.parameters),
        "pinned_cores": options.cores, "utc": utc,
    }  # fmt: skip
    setting = Setting(case.parameters, case.parties, options.cores, options.runs)
    try:
        with pinned(options.cores):
            yield from [{**who, **row_of(pair)} for pair in peer.pairs(setting)]
    except PeerMissingError as error:
        yield {**who, "operation": "all", "status": f"skipped: {error}"}


OPTIONS: Arguments = {
    "parties": {"default": "2,3", "help": "comma-separated (default 2,3)"},
    "cores": {"type": int, "default": 1, "help": "cores of both sides (default 1)"},
    "runs": {"type": int, "default": 5, "help": "runs that count, after one that does not (default 5)"},
    "quick": {"action": "store_true", "help": "small sets and two parties: whether it runs, not how fast; no table is written"},
}
COLUMNS = (
    "peer", "peer_version", "operation", "parameters", "ring_degree", "log2_q", "our_log2_q", "t", "parties", "model", "pinned_cores", "seconds", "low", "high", "runs",
    "ours", "our_low", "our_high", "ratio", "cpu", "our_cpu", "our_bytes", "differs", "status", "utc", *CIRCUMSTANCES,
)  # fmt: skip
SHOWN = (
    "peer",
    "peer_version",
    "operation",
    "parameters",
    "parties",
    "log2_q",
    "our_log2_q",
    "pinned_cores",
    "seconds",
    "ours",
    "ratio",
    "our_bytes",
    "status",
)
BENCH = Bench(
    "peers", cases, job, COLUMNS, shown=SHOWN, axes=("peer", "parameters"), options=OPTIONS, restricting=("parties", "cores", "runs", "quick"),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
