"""The whole path of a key for TFHE-rs: three parties, each a process, make it; TFHE-rs encrypts and evaluates; the committee decrypts: ``make tfhe``.

Needs the bridge (``make tfhe-bridge``). Every result is compared with that in clear. The price of no dealer is the time of the committee's key generation
divided by that of TFHE-rs, which makes keys of the same parameters on this machine, where it knows the secrets; the fastest of three.

    python Scripts/tfhe.py [--protocol rep-field] [--parties 3] [--values 8]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from keyquorum import api
from keyquorum.cli.tfhe import bridge, run_bridge
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.protocols import DEFAULT_COMMITTEE

OPERATIONS = {"add": lambda x, y: (x + y) % 256, "mul": lambda x, y: x * y % 256}
BLOCKS = 4
"""LWE ciphertexts of an FheUint8, of 2 bits each, the lowest first."""


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
    inputs = [(random.randrange(256), random.randrange(256)) for _ in range(count)]
    results, expected = [], []
    for number, (x, y) in enumerate(inputs):
        at = str(folder / f"x{number}")
        run_bridge(["encrypt", public, "uint8", str(x), str(y), at])
        for name, clear in OPERATIONS.items():
            results.append(f"{at}.{name}")
            run_bridge(["eval", server, name, f"{at}.0", f"{at}.1", results[-1]])
            expected.append(clear(x, y))
    ciphertexts, plaintext = folder / "results.lwe", folder / "results.lwe.plain"
    run_bridge(["to-lwe", keys, *results, str(ciphertexts)])
    print(f"TFHE-rs evaluated {len(results)} operations on FheUint8")

    api.pool_fill(committee, "tfhers-2-2", "round_ltz_circuit", BLOCKS * len(results))
    api.decrypt(committee, "key", [ciphertexts], 0, [plaintext])
    blocks = [int(block) for block in api.decode(committee, "key", plaintext)]
    values = [sum(block << (2 * i) for i, block in enumerate(blocks[at : at + BLOCKS])) % 256 for at in range(0, len(blocks), BLOCKS)]
    wrong = sum(value != right for value, right in zip(values, expected, strict=True))
    end = f"keygen_seconds={seconds:.1f} {price} mb_a_party={sent / 1e6:.0f} wrong={wrong} of={len(values)} seconds={time.monotonic() - began:.1f}"
    return f"tfhe: {'ok' if wrong == 0 else 'WRONG'} {end}"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="the whole path of a key for TFHE-rs")
    parser.add_argument("--protocol", default=DEFAULT_COMMITTEE)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--values", type=int, default=8, help="pairs of FheUint8")
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
