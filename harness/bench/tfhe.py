"""Keys for TFHE-rs: what they cost (``make bench-tfhe``), and whether TFHE-rs's results are right under them (``make check-tfhe``).

``keys`` makes a key for every committee, each party a process of this host over TLS, and lets TFHE-rs make one alone: the ratio of the times is the
price of having no dealer. Writes results/tfhe.csv.

``results`` has TFHE-rs evaluate many random integers and look-ups under one key, has the committee decrypt all of them, and counts those that are wrong.
It also measures the noise of the look-ups, and that of as many under a key of TFHE-rs. For this it puts the secret together from the shares of all
parties: a key of a benchmark needs no protection. Adds a line to results/tfhe_results.csv.

Both need the bridge, with its measuring program (``make bench-tfhe`` builds them).

    python -m bench.tfhe keys [--only TEXT]
    python -m bench.tfhe results [--protocol rep-field] [--parties 3] [--integers 10000] [--look-ups 100000]
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from keyquorum import api
from keyquorum.deploy.tfhe_bridge import bridge, run_bridge
from keyquorum.fhe.lwe import TFHE_SETS, read_lwe
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED
from keyquorum.model.errors import KeyQuorumError
from keyquorum.schemes.key_folder import load_shares
from keyquorum.schemes.tfhe.noise import BITS, CARRY
from keyquorum.terminal.output import console

from .runner import CIRCUMSTANCES, MACHINE, RESULTS, Arguments, Bench, Options, Row, add_line, circumstances, new_key, one_of

PARAMETERS = "tfhers-2-2"
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


@cache
def alone() -> float:
    """Seconds in which TFHE-rs makes such keys alone, measured once."""
    [seconds] = map(float, run_bridge(["time-keys"]))
    return seconds


@dataclass(frozen=True)
class Key:
    """A committee, and how the noise is made."""

    protocol: str
    parties: int
    noise_method: str


KEYS = (Key(REPLICATED, 3, BITS), Key(REPLICATED, 3, CARRY), Key(ADDITIVE, 2, BITS), Key(ADDITIVE, 3, BITS), Key(ADDITIVE, 4, BITS))
COLUMNS = (
    "protocol", "parties", "parameters", "seconds", "sent_mb", "cpu_seconds", "memory_mb", "rounds", "alone_seconds", "ratio", "noise_method", *CIRCUMSTANCES,
)  # fmt: skip


def key(case: Key, options: Options) -> Iterator[Row]:
    """Makes one key: the largest costs of a party."""
    single = alone()
    result, seconds, _ = new_key(case.protocol, case.parties, PARAMETERS, noise_method=case.noise_method)
    made = result.reports
    yield {
        **vars(case), "parameters": PARAMETERS, "seconds": round(seconds, 1), "sent_mb": round(max(r.total.bytes_sent for r in made) / 1e6),
        "cpu_seconds": round(max(r.cpu_seconds for r in made), 1), "memory_mb": round(max(r.peak_memory for r in made) / 1e6),
        "rounds": made[0].total.rounds, "alone_seconds": round(single, 2), "ratio": round(seconds / single, 1),
    }  # fmt: skip


BENCH = Bench("tfhe-keys", lambda options: KEYS, key, COLUMNS, table=lambda options: "tfhe")


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


@dataclass(frozen=True)
class Check:
    """A committee, and what TFHE-rs evaluates under its key."""

    protocol: str
    parties: int
    integers: int
    look_ups: int


def checked(case: Check, options: Options) -> Iterator[Row]:
    """Counts wrong results; adds a line to results/tfhe_results.csv. ``judged`` is ``ok`` if none is wrong, and the noise is that of TFHE-rs."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        counted = Counted(Path(folder), case.protocol, case.parties)
        wrong_integers = counted.integers(case.integers) if case.integers else 0
        wrong, variance = counted.look_ups(case.look_ups)
    own = float(measuring("own", str(case.look_ups))[-1])
    # A variance of M normal numbers has the relative deviation sqrt(2 / M), and there are two of them.
    allowed = max(0.02, SPREAD * math.sqrt(4 / case.look_ups))
    row: Row = {
        "protocol": case.protocol, "parties": case.parties, "parameters": PARAMETERS, "integers": case.integers, "wrong_integers": wrong_integers,
        "look_ups": case.look_ups, "wrong_look_ups": wrong, "noise_bits": round(math.log2(variance) / 2, 3), "own_noise_bits": round(math.log2(own) / 2, 3),
        "variance_ratio": round(variance / own, 4), **{name: circumstances()[name] for name in (*MACHINE, "commit")},
    }  # fmt: skip
    if RESULTS.is_dir():
        add_line(RESULTS / "tfhe_results.csv", row)
    good = not wrong_integers and not wrong and abs(variance / own - 1) <= allowed
    yield {"judged": "ok" if good else "WRONG", **row}


OPTIONS: Arguments = {
    "protocol": {"default": REPLICATED},
    "parties": {"type": int, "default": 3},
    "integers": {"type": int, "default": 10_000, "help": "FheUint8 that TFHE-rs evaluates (default: 10000, half an hour)"},
    "look-ups": {"type": int, "default": 100_000, "help": "bootstrapped blocks (default: 100000, half an hour); at least 1"},
}
RESULTS_BENCH = Bench(
    "tfhe-results", lambda given: [Check(given.protocol, given.parties, max(given.integers, 0), max(given.look_ups, 1))], checked, (),
    shown=("judged", "protocol", "parties", "parameters", "integers", "wrong_integers", "look_ups", "wrong_look_ups", "noise_bits", "own_noise_bits", "variance_ratio"),
    options=OPTIONS, failed=lambda rows: any(row["judged"] != "ok" for row in rows),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(one_of({"keys": BENCH, "results": RESULTS_BENCH}))
