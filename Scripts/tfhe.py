"""The whole path of a key for TFHE-rs: three parties, each a process, make it; TFHE-rs encrypts and evaluates; the committee decrypts: ``make tfhe``.

Needs the bridge (``make tfhe-bridge``). Every result is compared with that in clear. The price of no dealer is the time of the committee's key generation
divided by that of TFHE-rs, which makes keys of the same parameters on this machine, where it knows the secrets; the fastest of three.

    python Scripts/tfhe.py [--protocol rep-field] [--parties 3] [--values 4]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from keyquorum import api
from keyquorum.deploy.tfhe_bridge import bridge, run_bridge
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.protocols import DEFAULT_COMMITTEE

BITS = {"uint8": 8, "uint16": 16}
"""Types of the inputs, and their bits."""
BLOCK_BITS = 2
"""Bits of a message in one LWE ciphertext; the lowest come first. A bool is one such ciphertext."""


@dataclass(frozen=True)
class Result:
    """A ciphertext that TFHE-rs evaluated: its file, its bits, and the right value."""

    file: str
    bits: int
    right: int

    @property
    def blocks(self) -> int:
        """LWE ciphertexts."""
        return -(-self.bits // BLOCK_BITS)


def evaluated(public: str, server: str, kind: str, at: str) -> list[Result]:
    """Encrypts two random integers under the compact public key, and adds, multiplies, compares them and selects the larger one."""
    bits = BITS[kind]
    x, y = random.randrange(1 << bits), random.randrange(1 << bits)
    run_bridge(["encrypt", public, kind, str(x), str(y), at])
    inputs = [f"{at}.0", f"{at}.1"]
    results = [
        Result(f"{at}.add", bits, (x + y) % (1 << bits)),
        Result(f"{at}.mul", bits, x * y % (1 << bits)),
        Result(f"{at}.gt", 1, int(x > y)),
        Result(f"{at}.select", bits, max(x, y)),
    ]
    for result in results:
        operation = result.file.rpartition(".")[2]
        bit = [results[2].file] if operation == "select" else []
        run_bridge(["eval", server, operation, *bit, *inputs, result.file])
    return results


def value_of(blocks: list[int], bits: int) -> int:
    """An integer from its decrypted blocks, whose upper bits may hold carries."""
    return sum(block << (BLOCK_BITS * i) for i, block in enumerate(blocks)) % (1 << bits)


def path(folder: Path, protocol: str, parties: int, count: int) -> str:
    """Runs the path in an empty folder; returns the last line of the output."""
    began = time.monotonic()
    committee = api.init(folder / "committee", parties, protocol)
    made = api.keygen(committee, "key", "tfhers-2-2")
    costs = [report.total for report in made.reports]
    seconds, sent = max(cost.seconds for cost in costs), max(cost.bytes_sent for cost in costs)
    print(f"key {made.info.key_id}: {seconds:.1f} s, {sent / 1e6:.0f} MB a party, {max(r.peak_memory for r in made.reports) / 1e6:.0f} MB of memory")

    [alone] = map(float, run_bridge(["time-keys"]))
    price = f"price_of_no_dealer={seconds / alone:.1f}"
    print(f"TFHE-rs alone makes such keys in {alone:.2f} s on this machine: {price}")

    keys, out = str(made.folder), folder / "out"
    run_bridge(["keys", keys, str(out)])
    public, server = str(out / "CompactPublicKey.bin"), str(out / "ServerKey.bin")
    results = [result for number in range(count) for kind in BITS for result in evaluated(public, server, kind, str(folder / f"{kind}-{number}"))]
    ciphertexts, plaintext = folder / "results.lwe", folder / "results.lwe.plain"
    run_bridge(["to-lwe", keys, *(result.file for result in results), str(ciphertexts)])
    print(f"TFHE-rs evaluated {len(results)} operations (add, mul, gt, select) on {' and '.join(BITS)}")

    needed = sum(result.blocks for result in results)
    api.pool_fill(committee, "tfhers-2-2", "round_ltz_circuit", needed)
    api.decrypt(committee, "key", [ciphertexts], 0, [plaintext])
    messages = [int(message) for message in api.decode(committee, "key", plaintext)]
    wrong, at = 0, 0
    for result in results:
        wrong += value_of(messages[at : at + result.blocks], result.bits) != result.right
        at += result.blocks
    end = f"keygen_seconds={seconds:.1f} mb_a_party={sent / 1e6:.0f} wrong={wrong} of={len(results)} seconds={time.monotonic() - began:.1f}"
    return f"tfhe: {'ok' if wrong == 0 else 'WRONG'} {end}"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="the whole path of a key for TFHE-rs")
    parser.add_argument("--protocol", default=DEFAULT_COMMITTEE)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--values", type=int, default=4, help="pairs of integers of each type")
    given = parser.parse_args()
    try:
        bridge()
        with tempfile.TemporaryDirectory(prefix="keyquorum-tfhe-") as folder:
            said = path(Path(folder), given.protocol, given.parties, given.values)
    except KeyQuorumError as error:
        sys.exit(f"error: {error}")
    print(said)
    sys.exit("WRONG" in said)


if __name__ == "__main__":
    main()
