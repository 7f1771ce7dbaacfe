"""Figures of ours that are computed: from parameter sets, from circuits, or from another table of results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from keyquorum.fhe.keys import key_bytes
from keyquorum.fhe.parameters import load
from keyquorum.schemes.circuit import aes_forms

from .recorded import Record, read

KEYS_SET = "ckks-16384-seed004"
"""The set with the primes of paper 004."""
NETWORK_SET, MULTI_KEY_SET, ENCRYPTED = "ckks-16384-bench", "mk-ckks-set2", "encrypted digits and model"
"""The set of our network, the form of multi-key CKKS, and the name of evaluations with encrypted weights."""


def key_sizes(_: Path) -> list[Record]:
    """Sizes in MiB of the public key and of a switching key of the set, not seeded."""
    sizes = zip(("pk", "swk"), key_bytes(load(KEYS_SET, warn=False)), strict=True)
    return [{"key": key, "parameters": KEYS_SET, "mib": str(size / 2**20)} for key, size in sizes]


def circuit_003(_: Path) -> list[Record]:
    """ANDs of our circuit of AES-128."""
    return [{"ands": str(aes_forms().ands)}]


def keygen_traffic(results: Path) -> list[Record]:
    """Percent of what is sent in a key generation of ``ajax53`` that belongs to the bootstrapping key, for each row of results/ajax_phases.csv."""
    rows = read(results / "ajax_phases.csv")
    who = ("protocol", "parties", "noise", "link", "commit")
    made = []
    for key in dict.fromkeys(tuple(row[name] for name in who) for row in rows):
        sent = {row["phase"]: float(row["sent_mb"]) for row in rows if tuple(row[name] for name in who) == key}
        made.append(dict(zip(who, key, strict=True)) | {"bootstrapping_percent": str(100 * sent["bootstrapping key"] / sum(sent.values()))})
    return made


def multi_key_cnn(results: Path) -> list[Record]:
    """By how much an evaluation of the network takes longer under multi-key CKKS than under a joint key, with encrypted weights: at least the time of its relinearised
    products (results/multikey.csv) divided by that of a set of digits (results/bench/cnn.csv). ``other_commit``: of the latter."""
    rows = [row for row in read(results / "multikey.csv") if (row["workload"], row["reading"], row["gadget"], row["parameters"]) == MULTI_KEY_PRODUCT]
    joint = [row for row in read(results / "bench" / "cnn.csv") if (row["name"], row["phase"]) == (ENCRYPTED, "evaluation")]
    if not rows or not joint:
        return []
    from keyquorum.cnn.counts import counts
    from keyquorum.cnn.packing import IMAGES

    products = counts(load(NETWORK_SET, warn=False), True).relinearisations
    return [
        {
            "parties": row["parties"], "protocol": other["protocol"], "commit": row["commit"], "other_commit": other["commit"],
            "times": repr(products * float(row["ours"]) / (1e3 * IMAGES * float(other["seconds"]) / float(other["batch"]))),
        }
        for row in rows
        for other in joint
    ]  # fmt: skip


MULTI_KEY_PRODUCT = ("W2r", "multi-key", "rns", MULTI_KEY_SET)


DERIVED: dict[str, Callable[[Path], list[Record]]] = {
    "key_sizes": key_sizes,
    "circuit_003": circuit_003,
    "keygen_traffic": keygen_traffic,
    "multi_key_cnn": multi_key_cnn,
}
"""By name; rows without a ``commit`` are computed by the code that makes the table, and count as such."""
