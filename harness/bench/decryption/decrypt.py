"""Threshold decryption with a pool, offline and online phase, by rounding and by flooding: ``make bench-decrypt``. For BFV, a decryption is that of
one coefficient.

Every party is a process of this host, over TLS. Offline: a pool is filled, on disk. Online: phases, agreement on the pool and the
synced claim (if none was made ahead), the rounding, the opening to party 0. The noise of the ciphertexts is distributed over the whole range that
a rounding allows, and is fresh for `round_mask_open`. Every process knows the secret, to encrypt: a key of a benchmark needs no protection.
Times are wall-clock of party 0 for a decryption, from a moment at which all parties begin; they share the cores of this host.

``rounds`` and ``bits`` (that a party sends) are those of the program's own openings and ANDs. With MACs the online phase has more messages: the
checks, and the making of random elements, bits and triples that are not in the pool. ``rounds_in_all`` (average of a batch) and
``bits_in_all`` count these as well.

``cpu_us`` is processor time of all parties together, on which other work on the machine has less influence. Divided by the cores it is a lower bound
on the time of an idle machine.

``latency_ms``: one ciphertext alone over simulated links of 1 ms ping, of tables on two levels. Writes results/decrypt.csv, and the trade-off as a table and a
plot.

    python -m bench.decryption.decrypt [--items N] [--full] [--only 'bfv-4096 mascot']
"""

from __future__ import annotations

from collections.abc import Iterator

from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR, WITH_MACS
from keyquorum.sweep.decryption import BATCH

from ..runner import MACHINE, Arguments, Bench, Options, Row
from . import tradeoff
from .measure import Configuration, measure

COLUMNS = (
    "variant", "parameters", "protocol", "n", "items", "online_us", "offline_us", "rounds", "bits", "per_s", "rounds_in_all", "bits_in_all",
    "online_cpu_us", "offline_cpu_us", "storage_bytes", "offline_bytes", "wrong", "latency_ms", *MACHINE,
)  # fmt: skip


def configurations(items: int | None, full: bool) -> list[Configuration]:
    """The rows. ``items``: decryptions of each. Defaults for ``lwe64-p2``: 20,000, with tables 4,096, and with MACs, whose preprocessing takes long,
    4,096 and 256; for other sets 4,096, for BFV five ciphertexts."""
    rows = []
    committees = [(ADDITIVE, n) for n in ((2, 3, 4, 8, 16) if full else (2, 4))] + [(REPLICATED, 3)]
    shapes = [("round_mask_open", 8, 2), ("round_ltz_circuit", 8, 2), ("round_ltz_table", 8, 2), ("round_ltz_table", 4, 3)]
    for protocol, parties in committees:
        for rounding, width, levels in shapes:
            count = items or (4096 if rounding == "round_ltz_table" else 20000)
            rows.append(Configuration(rounding, width, levels, "lwe64-p2", protocol, parties, count))
    for parties in (3, 4, 8, 16) if full else (3,):
        for rounding, width, levels in (*shapes, ("round_flood", 8, 2)):
            rows.append(Configuration(rounding, width, levels, "lwe53-p16", SHAMIR, parties, items or 4096))
    for parties in (2, 4) if full else (2,):
        for rounding, width, levels in shapes:
            count = items or (256 if rounding == "round_ltz_table" else 4096)
            rows.append(Configuration(rounding, width, levels, "lwe64-p2", WITH_MACS, parties, count))
    for protocol, parties in ((ADDITIVE, 2), (REPLICATED, 3), (WITH_MACS, 2)):
        rows.append(Configuration("round_flood", 8, 2, "lwe64-p16", protocol, parties, items or 4096))
    rows.append(Configuration("round_mask_open", 8, 2, "lwe64-p32", ADDITIVE, 2, items or 4096))
    rows.append(Configuration("round_mask_open_one", 8, 2, "lwe64-p2", ADDITIVE, 4, items or 20000))
    for protocol, parties in [*committees, (SHAMIR, 3)]:
        for rounding in ("round_mask_open", "round_ltz_circuit"):
            rows.append(Configuration(rounding, 8, 2, "bfv-4096", protocol, parties, 5 * BATCH))
    rows.append(Configuration("round_mask_open_one", 8, 2, "bfv-4096", ADDITIVE, 4, 5 * BATCH))
    rows += [
        Configuration("round_ltz_circuit", 8, 2, "bfv-4096", protocol, parties, BATCH)
        for protocol, parties in ((VERIFIED_REPLICATED, 3), (VERIFIED_SHAMIR, 3), (WITH_MACS, 2))
    ]
    return rows


def job(case: Configuration, options: Options) -> Iterator[Row]:
    """A configuration, and single decryptions by tables on two levels."""
    row = measure(case)
    if case.rounding == "round_ltz_table" and case.levels == 2:
        row["latency_ms"] = measure(case, single=True)["latency_ms"]
    yield row


OPTIONS: Arguments = {
    "items": {"type": int, "help": "decryptions of each row; no table is written then (default: 256 to 20480, by what they take)"},
    "full": {"action": "store_true", "help": "2, 3, 4, 8 and 16 parties"},
}
BENCH = Bench(
    "decrypt", lambda given: configurations(given.items, given.full), job, COLUMNS, label=lambda case: case.label, options=OPTIONS,
    restricting=("items",), more=tradeoff.write,
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
