"""AES-128 under a shared key, the pseudorandom function of a threshold OPRF, beside the figures of paper 003 (params/published/003_table1_oprf.csv).

Systems H and H-128 are the paper's evaluation on LWE ciphertexts without its dealer (:mod:`.toprf_lwe`): H with the paper's dimension, H-128 with about 128
bits of security; ``method`` is the rounding, ``wrong`` the blocks that differ from `aes_blocks`.

System F is TFHE-rs's evaluation under jointly made keys (:mod:`.toprf_tfhe`); its row is left out where the bridge is not built.

System legendre: the Legendre PRF of 128 symbols (`legendre_prf`), the other function of the service; a block is 16 bytes of output under both. ``method`` is
the degree of its polynomials: ``degree-2`` is what is served, ``degree-1`` the construction of eprint 2024/544. Its random squares are in the online figures.

System native: ``circuit`` evaluates S-boxes by ANDs (`aes_blocks`), ``table`` by one-hot vectors that were made before (`aes_hot`, `aes_blocks_table`). Every party is a
process of this host, over TLS. Blocks and results are shared, as those of a client: its messages to and from the parties are not in the figures.

``ms``: a batch online, the median of several, at the slowest party, without the correlated randomness that it used; ``mb``: what a party sends in it.
``offline_ms``, ``offline_mb``: correlated randomness of a batch (``circuit``: triples where products take them, ``table``: one-hot vectors). ``per_s`` and
``offline_per_s``: blocks a second. ``wrong``: blocks of the last batch that their inverse does not give back. ``busy``: cores that did other work at the
start. Writes results/toprf.csv, if the folder is there and no axis was restricted.

    python -m keyquorum.bench.toprf [--method table] [--protocol semi2k] [--parties 2,4] [--batch 1,64,4096] [--link none,rtt=1]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

import keyquorum
from keyquorum import api
from keyquorum.dsl import Persistence
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE_RING, REPLICATED, REPLICATED_RING, RING_WITH_MACS
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.idle import busy_cores
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.programs import Call, Layout, signatures
from keyquorum.schemes.prf.key import domain_of
from keyquorum.terminal.output import console

from .keygen import Row, write_table
from .toprf_legendre import LEGENDRE_BATCHES, LEGENDRE_METHODS
from .toprf_lwe import ROUNDINGS, SETS
from .toprf_runs import Once, measured
from .toprf_tfhe import METHOD, SYSTEM, bridge_is_built, measure_tfhe

LWE_COMMITTEES = ((REPLICATED_RING, 3), (ADDITIVE_RING, 2), (ADDITIVE_RING, 4))
METHODS = ("circuit", "table")
COMMITTEES = ((REPLICATED_RING, 3), (ADDITIVE_RING, 2), (ADDITIVE_RING, 4), (ADDITIVE_RING, 8), (RING_WITH_MACS, 2))
BATCHES, LINKS = (1, 64, 4096), ("none", "rtt=1")
MOST_BY_TABLE = 64
"""Blocks of the largest batch by tables: a block takes 42,240 shares, each a word of 8 bytes in memory."""
MOST_WITH_MACS = 1
COLUMNS = (
    "system", "method", "protocol", "n", "ms", "mb", "per_s", "batch", "link", "offline_ms", "offline_mb", "offline_per_s", "rounds", "runs", "wrong",
    "request_mb", "bootstraps", "busy", "cores", "machine", "version",
)  # fmt: skip
"""Of the table. ``request_mb``, ``bootstraps``: of system F alone."""
Direction = Literal["encrypt", "decrypt"]


@dataclass(frozen=True)
class Measurement:
    """One row."""

    method: str
    protocol: str
    parties: int
    batch: int
    link: str
    system: str = "native"


class Cipher:
    """A shared key, and batches of blocks, at one party."""

    def __init__(self, context: PartyContext, method: str, batch: int) -> None:
        self._context, self._method, self._batch = context, method, batch
        protocol = context.committee.ring_protocol
        if protocol is None:
            raise KeyQuorumError(f"{context.committee.protocol} has no shares modulo 2: take {REPLICATED_RING}, {ADDITIVE_RING} or {RING_WITH_MACS}")
        self._protocol, self._domain = protocol, domain_of(context.committee.protocol)
        self._keys = self._made(signatures.aes_keys())

    def _made(self, call: Call) -> Persistence:
        shares = Persistence()
        self._context.backend.run(self._protocol, self._domain, call, persistence=shares, keep=True)
        return shares

    def blocks(self) -> Persistence:
        """A batch of random blocks."""
        return self._made(signatures.sample_bits(size=128 * self._batch))

    def offline(self) -> Persistence | None:
        """One-hot vectors of a batch; None if the method takes none."""
        return self._made(signatures.aes_hot(size=self._batch)) if self._method == "table" else None

    def call(self, direction: Direction) -> Call:
        """The program of a batch."""
        size = self._batch
        layout = Layout(blocks=128 * size, keys=1408)
        blocks, keys = layout["blocks"], layout["keys"]
        if self._method == "circuit":
            return signatures.aes_blocks(size=size, direction=direction, destination="share", blocks=blocks, keys=keys)
        masks, hot = layout.add("masks", 1280 * size), layout.add("hot", 40960 * size)
        return signatures.aes_blocks_table(size=size, direction=direction, destination="share", blocks=blocks, keys=keys, masks=masks, hot=hot)

    def file(self, blocks: Persistence, vectors: Persistence | None) -> Persistence:
        """The share file of a batch."""
        parts = [part for part in (blocks, self._keys, vectors) if part is not None]
        made = Persistence.from_words(np.concatenate([part.words for part in parts], axis=1), blocks.element_words)
        made.bind(self._protocol, self._domain)
        made.take_mac(blocks)
        return made

    def run(self, direction: Direction, file: Persistence) -> Persistence:
        """The results of a batch."""
        start = file.length
        self._context.backend.run(self._protocol, self._domain, self.call(direction), persistence=file, keep=True)
        width = file.element_words
        made = Persistence.from_words(file.words[:, start * width :].copy(), width)
        made.bind(self._protocol, self._domain)
        made.take_mac(file)
        return made

    def opened(self, shares: Persistence) -> np.ndarray:
        """The bits of a share file, row after row."""
        session, threshold = self._context.session, self._context.committee.threshold
        engine = session.engine(self._protocol, self._domain, "open", threshold)
        shares.check(engine, 0, shares.length)
        bits = engine.read(engine.open(engine.import_(shares.read(engine, 0, shares.length), shares.length)))
        return np.asarray(bits).reshape(128, -1)


@party_job("bench:toprf", {"method": str, "batch": int})
def toprf_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:toprf``: a batch of ``batch`` blocks several times by one ``method``; medians of this party."""
    cipher = Cipher(context, job["method"], job["batch"])

    def once() -> Once[tuple[Persistence, Persistence]]:
        blocks = cipher.blocks()
        before, start = context.backend.stats(), time.perf_counter()
        vectors = cipher.offline()
        made, sent = time.perf_counter() - start, context.backend.stats()["bytes_sent"] - before["bytes_sent"]
        file = cipher.file(blocks, vectors)
        return Once(lambda: (blocks, cipher.run("encrypt", file)), made, sent)

    figures, (blocks, results) = measured(context, once)
    back = cipher.opened(cipher.run("decrypt", cipher.file(results, cipher.offline())))
    wrong = np.count_nonzero((back != cipher.opened(blocks)).any(axis=0))
    return {**figures, "wrong": int(wrong)}


def per_second(batch: int, seconds: float) -> int | str:
    """Blocks a second; nothing where there is no work."""
    return round(batch / seconds) if seconds * 1e9 > 1 else ""


def measure(asked: Measurement) -> tuple[str, Row]:
    """The printed line and the row of a measurement."""
    busy = busy_cores()
    conditions: Row = {
        "busy": "" if busy is None else f"{busy:.2f}",
        "cores": os.cpu_count() or 0,
        "machine": platform.machine(),
        "version": keyquorum.__version__,
    }
    if asked.system == SYSTEM:
        return _printed({**_named(asked), **measure_tfhe(asked.protocol, asked.parties), **conditions})
    job: Json = {"kind": "bench:toprf", "method": asked.method, "batch": asked.batch}
    if asked.system == "legendre":
        job = {"kind": "bench:toprf-legendre", "degree": LEGENDRE_METHODS[asked.method], "batch": asked.batch}
    if asked.system in SETS:
        job = {"kind": "bench:toprf-lwe", "parameters": SETS[asked.system], "rounding": ROUNDINGS[asked.method]}
    if asked.link != "none":
        job["link"] = asked.link
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        committee = api.init(Path(folder) / "committee", asked.parties, asked.protocol)
        results = run_processes(committee.folder, job, io_timeout=600)
    online, offline = (max(r[name] for r in results) for name in ("online", "offline"))
    row: Row = {
        **_named(asked), "ms": f"{1e3 * online:.2f}", "mb": f"{max(r['sent'] for r in results) / 1e6:.6f}", "per_s": per_second(asked.batch, online),
        "offline_ms": f"{1e3 * offline:.2f}", "offline_mb": f"{max(r['offline_sent'] for r in results) / 1e6:.6f}",
        "offline_per_s": per_second(asked.batch, offline), "rounds": results[0]["rounds"], "runs": min(r["runs"] for r in results),
        "wrong": max(r["wrong"] for r in results), **conditions,
    }  # fmt: skip
    return _printed(row)


def _named(asked: Measurement) -> Row:
    return {
        "system": asked.system, "method": asked.method, "protocol": asked.protocol, "n": asked.parties, "batch": asked.batch, "link": asked.link,
    }  # fmt: skip


def _printed(row: Row) -> tuple[str, Row]:
    shown = (f"{name}={row[name]}" for name in COLUMNS[:-3] if name in row)
    return f"toprf: {' '.join(shown)}", {name: row.get(name, "") for name in COLUMNS}


def published_lines() -> Iterator[str]:
    """The figures of the paper, for an evaluation of one block."""
    for row in published.load("003_table1_oprf"):
        parties = "" if row["parties"] is None else f" n={row['parties']}"
        yield f"toprf: paper=003 protocol={row['protocol']!r}{parties} batch=1 seconds={row['seconds']} mb={row['mb']} (cited, on another machine)"
    for n in (2, 4):
        yield f"toprf: paper=003 formula=2.25t+0.63 n={n} batch=1 mb={2.25 * n + 0.63:.2f}"


def measurements() -> list[Measurement]:
    """All rows, some minutes. Preprocessing with MACs and that of many blocks by tables are left out, since they take longer; so is the largest batch over a
    simulated link, whose latency does not count there."""
    rows = []
    for protocol, parties in COMMITTEES:
        for method in METHODS:
            for batch in BATCHES:
                if batch > (MOST_WITH_MACS if protocol == RING_WITH_MACS else MOST_BY_TABLE if method == "table" else max(BATCHES)):
                    continue
                links = LINKS if batch < max(BATCHES) else LINKS[:1]
                rows += [Measurement(method, protocol, parties, batch, link) for link in links]
    rows += [Measurement(METHOD, REPLICATED, 3, 1, "none", SYSTEM)]
    for method in LEGENDRE_METHODS:
        rows += [Measurement(method, REPLICATED_RING, 3, batch, link, "legendre") for batch in LEGENDRE_BATCHES for link in LINKS]
    systems = [(system, *committee) for system in SETS for committee in LWE_COMMITTEES]
    rows += [Measurement(method, protocol, n, 1, link, system) for system, protocol, n in systems for method in METHODS for link in LINKS]
    return rows


def main() -> int:
    """Measures every row that the options leave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    axes = ("system", "method", "protocol", "parties", "batch", "link")
    for name in axes:
        parser.add_argument(f"--{name}", default="", help="some of them, comma-separated (default: all)")
    options = parser.parse_args()
    wanted = {name: set(getattr(options, name).split(",")) for name in axes if getattr(options, name)}
    table, rows = [], [row for row in measurements() if all(str(getattr(row, name)) in values for name, values in wanted.items())]
    if any(row.system == SYSTEM for row in rows) and not bridge_is_built():
        console.print(f"system {SYSTEM} is left out: the bridge to TFHE-rs is not built (make tfhe-bridge)", markup=False)
        rows = [row for row in rows if row.system != SYSTEM]
    if not rows:
        console.print("error: no measurement has these values", markup=False)
        return 1
    try:
        for asked in rows:
            line, row = measure(asked)
            console.print(line, markup=False, soft_wrap=True)
            table.append(row)
    except KeyQuorumError as error:
        console.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1
    for line in published_lines():
        console.print(line, markup=False, soft_wrap=True)
    if Path("results").is_dir() and not wanted:
        write_table(Path("results") / "toprf.csv", table)
    return int(any(row["wrong"] for row in table))


if __name__ == "__main__":
    sys.exit(main())
