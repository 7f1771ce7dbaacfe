"""Decryptions of LWE a second in batches, beside the throughput of paper 000 (4 parties, 1 ms ping, 1 Gbit/s): by rounding, ping and size of the batch.

Every party is a process of this host, over TLS. Links are simulated: the ping, and 1 Gbit/s that the links of a party share. Batches follow one another: a batch
begins when the one before is opened (``streams`` 1). Without MACs 4 parties, with MACs 2 and 4. The secret and the noise are those of `bench.decryption.decrypt`.

``per_s``: online. ``sustained_per_s``: with the preprocessing of as many, made before. ``cpu_party_us``: CPU of the busiest party for one decryption, online, and
``per_s_of_a_core`` its inverse: all parties share the cores of this host, and the paper's have machines of their own. ``bits``: that a party sends online;
``storage_bytes``: of a party; ``offline_us``, ``offline_bytes`` (of all parties): the preprocessing of one.

Writes results/throughput.csv; rows that were not measured stay.

    python -m bench.decryption.throughput [--parties 4] [--ping 0,1,10] [--batch 4096] [--only 'circuit semi2k'] [--items N]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE, WITH_MACS
from keyquorum.model.links import SHARED

from ..runner import CIRCUMSTANCES, Arguments, Bench, Options, Row
from .measure import Configuration, measure

SHAPES = {
    "mask-open": ("round_mask_open", 8, 2),
    "circuit": ("round_ltz_circuit", 8, 2),
    "4x3": ("round_ltz_table", 4, 3),
    "8x2": ("round_ltz_table", 8, 2),
}
"""Roundings with the width and levels of their tables; 8x2 is the paper's."""
PINGS = (0, 1, 5, 10, 25, 50, 100)
BATCHES, BATCHES_WITH_MACS = (1024, 4096, 16384), (256, 4096)
SHAPES_WITH_MACS = ("mask-open", "4x3")
MBIT = 1000
TABLES_AT_ONCE, AT_ONCE = 2, 8
"""Batches of a measurement: of tables, whose preprocessing takes long, and of the other roundings."""
PARAMETERS = "lwe64-p2"


@dataclass(frozen=True)
class Case:
    """A rounding, a committee, a ping in ms, and decryptions of a batch."""

    shape: str
    protocol: str
    parties: int
    ping: int
    batch: int

    @property
    def label(self) -> str:
        """Its name among others."""
        return f"{self.shape} {self.protocol} n={self.parties} ping={self.ping} batch={self.batch}"

    def configuration(self, items: int | None) -> Configuration:
        """What is measured; ``items``: decryptions, None: several batches."""
        rounding, width, levels = SHAPES[self.shape]
        count = items or self.batch * (TABLES_AT_ONCE if rounding == "round_ltz_table" or self.protocol == WITH_MACS else AT_ONCE)
        link = f"rtt={self.ping},mbit={MBIT},{SHARED}"
        return Configuration(rounding, width, levels, PARAMETERS, self.protocol, self.parties, count, batch=self.batch, link=link)


def cases(options: Options) -> Iterator[Case]:
    """All measurements."""
    for shape, ping, batch in product(SHAPES, PINGS, BATCHES):
        yield Case(shape, ADDITIVE, 4, ping, batch)
    for parties, shape, ping, batch in product((2, 4), SHAPES_WITH_MACS, PINGS[:2], BATCHES_WITH_MACS):
        yield Case(shape, WITH_MACS, parties, ping, batch)


def paper_rate(parties: int, ping: int) -> int | str:
    """The decryptions a second of paper 000; empty where it has none."""
    found = [
        row["decryptions_per_second"] for row in published.load("000_slide_throughput")
        if (row["protocol"], row["parties"], row["ping_ms"]) == ("Mod-L", parties, ping)
    ]  # fmt: skip
    return int(str(found[0])) if found else ""


def job(case: Case, options: Options) -> Iterator[Row]:
    """The row of a case."""
    values = measure(case.configuration(options.items))
    online, offline, cpu = (float(values[name]) for name in ("online_us", "offline_us", "cpu_party_us"))
    yield {
        "variant": case.shape, "parameters": PARAMETERS, "protocol": values["protocol"], "n": case.parties, "items": values["items"],
        "link": f"rtt={case.ping},mbit={MBIT}", "shared_link": "yes", "batch": case.batch, "streams": 1,
        **{name: values[name] for name in ("per_s", "online_us", "cpu_party_us", "rounds", "bits", "storage_bytes", "offline_us", "offline_bytes", "wrong")},
        "per_s_of_a_core": round(1e6 / cpu) if cpu else "", "sustained_per_s": round(1e6 / (online + offline)), "paper_per_s": paper_rate(case.parties, case.ping),
    }  # fmt: skip


COLUMNS = (
    "variant", "protocol", "n", "link", "shared_link", "batch", "streams", "parameters", "items", "per_s", "sustained_per_s", "online_us", "cpu_party_us",
    "per_s_of_a_core", "rounds", "bits", "storage_bytes", "offline_us", "offline_bytes", "wrong", "paper_per_s", *CIRCUMSTANCES,
)  # fmt: skip
OPTIONS: Arguments = {
    "items": {"type": int, "help": "decryptions of each row; no table is written then (default: 2 batches of tables or with MACs, else 8)"}
}
BENCH = Bench(
    "throughput", cases, job, COLUMNS, axes=("parties", "ping", "batch"), options=OPTIONS, restricting=("items",), label=lambda case: case.label,
    key=("variant", "protocol", "n", "link", "batch", "streams"), failed=lambda rows: any(row["wrong"] and row["variant"] != "mask-open" for row in rows),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
