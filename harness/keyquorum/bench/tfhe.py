"""Keys for TFHE-rs: what they cost (``make bench-tfhe``), and whether TFHE-rs's results are right under them (``make check-tfhe``).

``keys`` makes a key for every committee, each party a process of this host over TLS, and lets TFHE-rs make one alone: the ratio of the times is the
price of having no dealer. Writes results/tfhe.csv.

``results`` has TFHE-rs evaluate many random integers and look-ups under one key, has the committee decrypt all of them, and counts those that are wrong.
It also measures the noise of the look-ups, and that of as many under a key of TFHE-rs. For this it puts the secret together from the shares of all
parties: a key of a benchmark needs no protection. Adds a line to results/tfhe_results.csv.

Both need the bridge, with its measuring program (``make bench-tfhe`` builds them).

    python -m keyquorum.bench.tfhe keys [--only TEXT]
    python -m keyquorum.bench.tfhe results [--protocol rep-field] [--parties 3] [--integers 10000] [--look-ups 100000]
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import keyquorum
from keyquorum import api
from keyquorum.deploy.tfhe_bridge import bridge, run_bridge
from keyquorum.fhe.lwe import TFHE_SETS, read_lwe
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.idle import busy_cores
from keyquorum.model.plain import Json
from keyquorum.schemes.key_folder import load_shares
from keyquorum.schemes.tfhe.noise import BITS, CARRY
from keyquorum.terminal.output import console
from keyquorum.terminal.progress import progress_bars

from .keygen import Row, write_table

PARAMETERS = "tfhers-2-2"
CONFIGURATIONS = ((REPLICATED, 3, BITS), (REPLICATED, 3, CARRY), (ADDITIVE, 2, BITS), (ADDITIVE, 3, BITS), (ADDITIVE, 4, BITS))
"""Protocol, parties, and how the noise is made."""
RESULTS = Path("results")
BLOCKS = 4
"""LWE ciphertexts of an FheUint8."""
IN_A_FILE = 4096
"""LWE ciphertexts in a file, which has 16 KB for each."""
SPREAD = 3.29
"""99.9 % of a normal distribution are within so many standard deviations."""


def measuring(*arguments: str) -> list[str]:
    """The lines that the bridge's measuring program prints. Raises KeyQuorumError where it is missing or fails."""
    program = bridge().parent / "examples" / "measure"
    if not os.access(program, os.X_OK):
        raise KeyQuorumError(f"{program} is not built: run make bench-tfhe, or cargo build --release --example measure in Source/tfhe")
    ended = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise KeyQuorumError(f"{program.name} {arguments[0]} failed: {(ended.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return ended.stdout.splitlines()


def alone() -> float:
    """Seconds in which TFHE-rs makes such keys alone."""
    [seconds] = map(float, run_bridge(["time-keys"]))
    return seconds


def conditions() -> Row:
    """The machine."""
    return {"cores": os.cpu_count() or 0, "machine": platform.machine(), "version": keyquorum.__version__}


def keys(protocol: str, parties: int, method: str, single: float) -> Row:
    """Makes one key; ``single``: seconds of TFHE-rs alone. Returns the largest costs of a party."""
    busy = busy_cores()
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder, progress_bars() as report:
        committee = api.init(Path(folder) / "committee", parties, protocol)
        began = time.monotonic()
        made = api.keygen(committee, "bench", PARAMETERS, progress=report, io_timeout=600, noise_method=method).reports
        seconds = time.monotonic() - began
    return {
        "protocol": protocol, "parties": parties, "parameters": PARAMETERS, "seconds": round(seconds, 1),
        "sent_mb": round(max(r.total.bytes_sent for r in made) / 1e6), "cpu_seconds": round(max(r.cpu_seconds for r in made), 1),
        "memory_mb": round(max(r.peak_memory for r in made) / 1e6), "rounds": made[0].total.rounds, "alone_seconds": round(single, 2),
        "ratio": round(seconds / single, 1), "noise_method": method, "busy": "" if busy is None else f"{busy:.2f}", **conditions(),
    }  # fmt: skip


def bench_keys(only: str) -> int:
    """Every committee whose name contains ``only``; writes results/tfhe.csv if these are all."""
    single = alone()
    rows = []
    for protocol, parties, method in CONFIGURATIONS:
        if only in f"{protocol} {parties} {method}":
            rows.append(keys(protocol, parties, method, single))
            console.print("tfhe-keys: " + " ".join(f"{name}={value}" for name, value in rows[-1].items()), markup=False, soft_wrap=True)
    if not only and RESULTS.is_dir():
        write_table(RESULTS / "tfhe.csv", rows)
    return 0


class Counted:
    """A committee and its key in a folder of their own, and what was decrypted with them."""

    def __init__(self, folder: Path, protocol: str, parties: int) -> None:
        self.folder, self.parties = folder, parties
        self.committee = api.init(folder / "committee", parties, protocol)
        made = api.keygen(self.committee, "key", PARAMETERS, io_timeout=600)
        self.keys, self.key_id = made.folder, made.info.key_id

    def evaluated(self, what: str, count: int, each: int) -> tuple[Iterator[Path], list[int]]:
        """The files of ``count`` results, ``each`` in a file, and the right values."""
        out = self.folder / what
        right = [int(line) for line in measuring(what, str(self.keys), str(count), str(each), str(out))]
        return (Path(f"{out}.{number}.lwe") for number in range(-(-count // each))), right

    def decrypted(self, ciphertexts: Path) -> list[int]:
        """The messages of a file, decrypted by the committee with items of a pool."""
        count = read_lwe(ciphertexts.read_bytes(), str(ciphertexts))[0].count
        plaintext = ciphertexts.with_suffix(".plain")
        api.pool_fill(self.committee, PARAMETERS, "round_ltz_circuit", count, io_timeout=600)
        api.decrypt(self.committee, "key", [ciphertexts], 0, [plaintext], io_timeout=600)
        return [int(message) for message in api.decode(self.committee, "key", plaintext)]

    def ring_secret(self) -> np.ndarray:
        """The secret of the ciphertexts, from the shares of all parties. Insecure, for measurements."""
        total = np.zeros(TFHE_SETS[PARAMETERS].dimension, dtype=np.uint64)
        for party in range(self.parties):
            folder = self.committee.party_folder(party) / "keys" / "key"
            share = load_shares(folder, api.load_key(folder), party, 1)[0]
            total += share.words[0].view(np.uint64)
        return total

    def integers(self, count: int) -> int:
        """Wrong ones of so many FheUint8 that TFHE-rs evaluates."""
        wrong, at = 0, 0
        files, right = self.evaluated("integers", count, IN_A_FILE // BLOCKS)
        for file in files:
            blocks = np.array(self.decrypted(file)).reshape(-1, BLOCKS)
            # A block may have a carry.
            values = (blocks << (2 * np.arange(BLOCKS))).sum(axis=1) % 256
            wrong += int((values != np.array(right[at : at + len(values)])).sum())
            at += len(values)
            file.unlink()
            console.print(f"integers: {at} of {count}, wrong={wrong}", markup=False)
        return wrong

    def look_ups(self, count: int) -> tuple[int, float]:
        """Wrong ones of so many look-ups, and the variance of their noise."""
        wrong, at, squares = 0, 0, 0.0
        secret, delta = self.ring_secret(), np.uint64(TFHE_SETS[PARAMETERS].delta)
        files, right = self.evaluated("look-ups", count, IN_A_FILE)
        for file in files:
            ciphertexts = read_lwe(file.read_bytes(), str(file))[0]
            expected = np.array(right[at : at + ciphertexts.count], dtype=np.uint64)
            wrong += int((np.array(self.decrypted(file), dtype=np.uint64) != expected).sum())
            noise = (ciphertexts.b - ciphertexts.a @ secret - expected * delta).view(np.int64)
            squares += float((noise.astype(np.float64) ** 2).sum())
            at += ciphertexts.count
            file.unlink()
            console.print(f"look-ups: {at} of {count}, wrong={wrong}", markup=False)
        return wrong, squares / max(at, 1)


def check_results(protocol: str, parties: int, integers: int, look_ups: int) -> int:
    """Counts wrong results; adds a line to results/tfhe_results.csv. Returns 1 if one is wrong, or if the noise is not TFHE-rs's."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        counted = Counted(Path(folder), protocol, parties)
        wrong_integers = counted.integers(integers) if integers else 0
        wrong, variance = counted.look_ups(look_ups)
    own = float(measuring("own", str(look_ups))[-1])
    # A variance of M normal numbers has the relative deviation sqrt(2 / M), and there are two of them.
    allowed = max(0.02, SPREAD * math.sqrt(4 / look_ups))
    row: Row = {
        "protocol": protocol, "parties": parties, "parameters": PARAMETERS, "integers": integers, "wrong_integers": wrong_integers,
        "look_ups": look_ups, "wrong_look_ups": wrong, "noise_bits": round(math.log2(variance) / 2, 3), "own_noise_bits": round(math.log2(own) / 2, 3),
        "variance_ratio": round(variance / own, 4), **conditions(),
    }  # fmt: skip
    good = not wrong_integers and not wrong and abs(variance / own - 1) <= allowed
    console.print(f"tfhe-results: {'ok' if good else 'WRONG'} " + " ".join(f"{n}={v}" for n, v in row.items()), markup=False, soft_wrap=True)
    if RESULTS.is_dir():
        append(RESULTS / "tfhe_results.csv", row)
    return 0 if good else 1


def append(path: Path, row: Json) -> None:
    """Adds a row to a CSV file."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    costs = commands.add_parser("keys", help="cost of key generation")
    costs.add_argument(
        "--only", default="", help="committees whose protocol, number of parties and noise_method contain this text; the table is not written then"
    )
    results = commands.add_parser("results", help="wrong results among many, and their noise")
    results.add_argument("--protocol", default=REPLICATED)
    results.add_argument("--parties", type=int, default=3)
    results.add_argument("--integers", type=int, default=10_000, help="FheUint8 that TFHE-rs evaluates (default: 10000, half an hour)")
    results.add_argument("--look-ups", type=int, default=100_000, help="bootstrapped blocks (default: 100000, half an hour); at least 1")
    given = parser.parse_args()
    try:
        run_bridge(["--help"])
        if given.command == "keys":
            return bench_keys(given.only)
        return check_results(given.protocol, given.parties, max(given.integers, 0), max(given.look_ups, 1))
    except KeyQuorumError as error:
        console.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
