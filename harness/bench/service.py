"""What a receiver gets of a served committee: requests a second, and their latency, beside the rate of the engine alone (results/decrypt.csv).

Every party is a process of ``keyquorum serve``, and clients are threads of a few processes, all on this host, over TLS. The loop is closed: a client
sends its next request when it has the answer to the last one. The pool is filled before. Nobody else asks.

``per_s``: requests a second; ``lwe_per_s``: ciphertexts a second; ``p50_ms``, ``p99_ms``: of a request, at the client; ``cpu_ms``: processor time of a
party for a request, mean of the parties; ``client_cpu_ms``: of the client. ``wrong``: answers with another message; ``refused``: requests that the
committee refused, which are not in the other figures. ``busy``: cores that did other work at the start. Writes results/served.csv, if the folder is
there and no axis was restricted. ``--add`` keeps the rows of other commits, of which the last one is shown in README.md. Another checkout is measured
with its folder as the working directory, and its ``harness`` before others in PYTHONPATH.

    python -m bench.service [--committee semi2k,2] [--cells 1x1,8x1,32x1,8x100] [--seconds 6] [--parameters lwe64-p2] [--items 60000]
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import keyquorum
from keyquorum import api
from keyquorum.model.chosen_committees import ADDITIVE_RING, REPLICATED_RING, RING_WITH_MACS
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.idle import busy_cores
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.serve.client import Receiver, make_receiver
from keyquorum.sweep.rows import commit, machine
from keyquorum.terminal.output import console

from .runner import Row, write_table

COMMITTEES = ((ADDITIVE_RING, 2), (REPLICATED_RING, 3), (RING_WITH_MACS, 2))
CELLS = ((1, 1), (8, 1), (32, 1), (8, 100))
"""Clients, and ciphertexts of a request."""
ITEMS, ITEMS_WITH_MACS = 60_000, 8_000
"""Items of the pool. With MACs an item takes much longer to make, so the cell of large requests is left out."""
PROCESSES = 4
"""Most processes of clients: in one alone they would wait for each other's interpreter."""
WARM_UP = 2
"""Requests of each client that are not measured."""
START_SECONDS, LONGEST_FILL = 120.0, 3600.0
MESSAGE = 1


@dataclass
class Counts:
    """What the clients of one process saw."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    refused: int = 0
    cpu: float = 0.0
    elapsed: float = 0.0


def client(folder: Path, identity: Path, path: Path, threads: int, seconds: float) -> Counts:
    """The clients of one process. They begin when a line comes on standard input, after a line of ours says that they are connected."""
    data, counts, lock = path.read_bytes(), Counts(), threading.Lock()
    committee = api.as_committee(folder)
    ready, go = threading.Barrier(threads + 1), threading.Event()

    def ask() -> None:
        receiver = Receiver(committee, identity, wait=START_SECONDS)
        for _ in range(WARM_UP):
            receiver.decrypt(data)
        ready.wait(START_SECONDS)
        go.wait(START_SECONDS)
        until, mine = time.monotonic() + seconds, Counts()
        while (begin := time.monotonic()) < until:
            try:
                result = receiver.decrypt(data)
                assert isinstance(result, LweDecrypted)
                mine.wrong += bool((result.messages != MESSAGE).any())
                mine.seconds.append(time.monotonic() - begin)
            except KeyQuorumError:
                mine.refused += 1
        receiver.close()
        with lock:
            counts.seconds += mine.seconds
            counts.wrong, counts.refused = counts.wrong + mine.wrong, counts.refused + mine.refused

    workers = [threading.Thread(target=ask, daemon=True) for _ in range(threads)]
    for each in workers:
        each.start()
    ready.wait(START_SECONDS)
    print("ready", flush=True)
    sys.stdin.readline()
    start, used = time.monotonic(), _own_cpu()
    go.set()
    for each in workers:
        each.join()
    counts.elapsed, counts.cpu = time.monotonic() - start, _own_cpu() - used
    return counts


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _cpu_of(process: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _command(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "keyquorum", *map(str, words), "--quiet"], check=True, timeout=LONGEST_FILL, stdout=subprocess.DEVNULL)


@contextmanager
def served(committee: Committee, folder: Path) -> Iterator[list[int]]:
    """The parties as processes, connected; their process ids."""
    parties = []
    try:
        for party in range(committee.size):
            with (folder / f"{party}.log").open("wb") as log:
                command = [sys.executable, "-m", "keyquorum", "serve", str(committee.folder), str(party), "key", "--keep", "0"]
                parties.append(subprocess.Popen(command, stdout=log, stderr=log))
        until = time.monotonic() + START_SECONDS
        while not all("connected to all parties" in (folder / f"{party}.log").read_text() for party in range(committee.size)):
            if time.monotonic() > until or any(process.poll() is not None for process in parties):
                raise KeyQuorumError("a party does not serve: " + " ".join((folder / f"{i}.log").read_text() for i in range(committee.size)))
            time.sleep(0.1)
        yield [process.pid for process in parties]
    finally:
        for process in parties:
            process.terminate()
        for process in parties:
            process.wait(60)


def measure_cell(committee: Committee, identity: Path, path: Path, clients: int, seconds: float, parties: Sequence[int]) -> tuple[Counts, float]:
    """What all clients saw, and the processor seconds of a party."""
    shares = [len(part) for part in np.array_split(range(clients), min(clients, PROCESSES))]
    command = [sys.executable, "-m", "bench.service", "--client", str(committee.folder), str(identity), str(path)]
    workers = [
        subprocess.Popen([*command, str(threads), str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for threads in shares
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            if worker.stdout.readline() != "ready\n":
                raise KeyQuorumError("a client did not connect: see its line above")
        before = sum(map(_cpu_of, parties))
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        found = [Counts(**json.loads(worker.communicate(timeout=seconds + START_SECONDS)[0])) for worker in workers]
        used = (sum(map(_cpu_of, parties)) - before) / len(parties)
    finally:
        for worker in workers:
            worker.kill()
    every = Counts([s for each in found for s in each.seconds], cpu=sum(each.cpu for each in found), elapsed=max(each.elapsed for each in found))
    every.wrong, every.refused = sum(each.wrong for each in found), sum(each.refused for each in found)
    return every, used


def measure(
    protocol: str, parties: int, cells: Sequence[tuple[int, int]], seconds: float, parameters: str = "lwe64-p2", items: int = 0
) -> Iterator[Row]:
    """A row for each cell of one committee."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        committee = api.init(folder / "committee", parties, protocol)
        api.keygen(committee, "key", parameters)
        identity, _ = make_receiver(committee, "alice")
        paths = {count: api.encrypt(committee, "key", np.full(count, MESSAGE), folder / f"{count}.lwe").path for _, count in cells}
        _command("pool", "fill", committee.folder, "-p", parameters, "-n", items or (ITEMS_WITH_MACS if committee.authenticated else ITEMS))
        with served(committee, folder) as processes:
            for clients, count in cells:
                busy = busy_cores()
                found, used = measure_cell(committee, identity, paths[count], clients, seconds, processes)
                yield _row(protocol, parties, parameters, clients, count, found, used, busy)


def _row(protocol: str, parties: int, parameters: str, clients: int, count: int, found: Counts, used: float, busy: float | None) -> Row:
    answered = len(found.seconds)
    if not answered:
        raise KeyQuorumError(f"{protocol}, {clients} clients: all {found.refused} requests were refused: take more --items")
    p50, p99 = np.percentile(found.seconds, [50, 99])
    rate = answered / found.elapsed
    return {
        "protocol": protocol, "n": parties, "parameters": parameters, "clients": clients, "ciphertexts": count, "requests": answered,
        "per_s": f"{rate:.1f}", "lwe_per_s": round(rate * count), "p50_ms": f"{1e3 * p50:.1f}", "p99_ms": f"{1e3 * p99:.1f}",
        "cpu_ms": f"{1e3 * used / answered:.2f}", "client_cpu_ms": f"{1e3 * found.cpu / answered:.2f}", "wrong": found.wrong, "refused": found.refused,
        "seconds": f"{found.elapsed:.1f}", "busy": "" if busy is None else f"{busy:.2f}", "cores": os.cpu_count() or 0, "machine": machine(),
        "version": keyquorum.__version__,
    }  # fmt: skip


def _pairs(text: str, between: str) -> list[tuple[str, str]]:
    return [(a, b) for a, _, b in (part.partition(between) for part in text.split())]


def main() -> int:
    """Measures the chosen committees; with ``--client`` one process of clients."""
    if sys.argv[1:2] == ["--client"]:
        folder, identity, path, threads, seconds = sys.argv[2:7]
        print(json.dumps(vars(client(Path(folder), Path(identity), Path(path), int(threads), float(seconds)))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--committee", default="", help="protocol,parties; several with blanks between them (default: all)")
    parser.add_argument("--cells", default="", help="clients x ciphertexts of a request, as 1x1,8x100 (default: all)")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each cell (default: 6)")
    parser.add_argument("--parameters", default="lwe64-p2", help="a set of LWE (default: lwe64-p2)")
    parser.add_argument("--items", type=int, default=0, help=f"of the pool (default: {ITEMS}, with MACs {ITEMS_WITH_MACS})")
    parser.add_argument("--table", type=Path, help="the table to write, also of a part (default: results/served.csv)")
    parser.add_argument("--add", action="store_true", help="keep the rows of other commits in the table")
    options = parser.parse_args()
    committees = [(name, int(n)) for name, n in _pairs(options.committee, ",")] or COMMITTEES
    cells = [(int(a), int(b)) for a, b in _pairs(options.cells.replace(",", " "), "x")]
    rows = []
    for protocol, parties in committees:
        for row in measure(protocol, parties, cells or _cells_of(protocol), options.seconds, options.parameters, options.items):
            console.print("service: " + " ".join(f"{name}={value}" for name, value in row.items()), markup=False, soft_wrap=True)
            rows.append(row)
    table = options.table or Path("results/served.csv")
    if options.table or (table.parent.is_dir() and not (options.committee or options.cells) and options.parameters == "lwe64-p2"):
        write_table(table, [*(_others(table) if options.add else []), *rows])
    return 1 if any(row["wrong"] for row in rows) else 0


def _others(table: Path) -> list[Row]:
    """Rows of a table that other commits have."""
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [{**row} for row in csv.DictReader(file) if row["commit"] != commit()]


def _cells_of(protocol: str) -> Sequence[tuple[int, int]]:
    return [(clients, count) for clients, count in CELLS if protocol != RING_WITH_MACS or count == 1]


if __name__ == "__main__":
    raise SystemExit(main())
