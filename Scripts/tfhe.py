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

KINDS = {"uint8": (0, 1 << 8), "uint16": (0, 1 << 16), "int12": (-(1 << 11), 1 << 11)}
"""Types of the inputs, with the least value and the first value above all."""


@dataclass(frozen=True)
class Result:
    """A ciphertext that TFHE-rs evaluated: its file, its LWE ciphertexts of two bits, and the right value."""

    file: str
    blocks: int
    right: int


def evaluated(public: str, server: str, kind: str, at: str) -> list[Result]:
    """Encrypts two random integers under the compact public key, and adds, multiplies, compares them and selects the larger one."""
    least, above = KINDS[kind]
    x, y = random.randrange(least, above), random.randrange(least, above)
    run_bridge(["encrypt", public, kind, str(x), str(y), at])
    inputs, blocks = [f"{at}.0", f"{at}.1"], (above - least).bit_length() // 2
    wrapped = lambda value: (value - least) % (above - least) + least  # noqa: E731
    results = [
        Result(f"{at}.add", blocks, wrapped(x + y)),
        Result(f"{at}.mul", blocks, wrapped(x * y)),
        Result(f"{at}.gt", 1, int(x > y)),
        Result(f"{at}.select", blocks, max(x, y)),
    ]
    for result in results:
        operation = result.file.rpartition(".")[2]
        bit = [results[2].file] if operation == "select" else []
        run_bridge(["eval", server, operation, *bit, *inputs, result.file])
    return results


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
    results = [result for number in range(count) for kind in KINDS for result in evaluated(public, server, kind, str(folder / f"{kind}-{number}"))]
    ciphertexts, plaintext = folder / "results.lwe", folder / "results.lwe.plain"
    run_bridge(["to-lwe", keys, *(result.file for result in results), str(ciphertexts)])
    print(f"TFHE-rs evaluated {len(results)} operations (add, mul, gt, select) on {', '.join(KINDS)}")

    needed = sum(result.blocks for result in results)
    api.pool_fill(committee, "tfhers-2-2", "round_ltz_circuit", needed)
    api.decrypt(committee, "key", [ciphertexts], 0, [plaintext])
    values, _ = api.decode_values(committee, "key", plaintext)
    wrong = sum(value != result.right for value, result in zip(values, results, strict=True))
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
