"""Latency of a single decryption: `round_ltz_table` with 8-bit blocks on two levels, over simulated links of 1 and 10 ms ping.

All parties are processes of this host. They begin at the same moment, and are idle before and afterwards; the pool is claimed ahead.
The time is the median of 101 decryptions (``--runs``) at party 0, until it has the message. There are several such measurements, each with a committee of its
own: the table has the median, the least and the largest. ``direct`` and ``star``: how the committee opens values (``star``: through a king). ``cpu_party_ms``: CPU
of the busiest party for one decryption; ``paper_ms``: the figure of paper 000 for this number of parties and ping.

Writes results/latency.csv, or with ``--macs`` results/latency_macs.csv; rows of committees that were not measured stay. With MACs the preprocessing takes long:
19 minutes for 11 decryptions among 16 parties on two cores. ``--runs`` takes fewer decryptions.

    python -m bench.decryption.latency [--macs] [--parties 2,4,8,16] [--openings direct,star] [--link rtt=1,rtt=10] [--repeats 3] [--runs 101]
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import product

from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE, WITH_MACS

from ..runner import MACHINE, Arguments, Bench, Options, Row
from .measure import LATENCY_LINK, LATENCY_RUNS, Configuration, measure

PARTIES = (2, 4, 8, 16)
PINGS = {LATENCY_LINK: 1, "rtt=10": 10}
"""Simulated links, and their ping in ms."""
COLUMNS = (
    "variant", "protocol", "n", "openings", "link", "rounds", "ms", "least_ms", "most_ms", "cpu_ms_of_all", "runs", "repeats", "wrong", "cpu_party_ms", "storage_bytes",
    "paper_ms", *MACHINE,
)  # fmt: skip


def committees(options: Options) -> Iterator[Configuration]:
    """Additive committees with both openings, or with MACs. A star among two is direct, and shares with MACs are opened directly."""
    for parties, link in product(PARTIES, PINGS):
        for openings in ("direct", "star"):
            if openings == "direct" or (parties > 2 and not options.macs):
                yield Configuration("round_ltz_table", 8, 2, "lwe64-p2", WITH_MACS if options.macs else ADDITIVE, parties, 0, openings, link=link)


def paper_ms(parties: int, ping: int) -> float | str:
    """The online time of the slides of paper 000; empty where they have none."""
    found = [row["online_ms"] for row in published.load("000_slide_online_latency") if (row["parties"], row["ping_ms"]) == (parties, ping)]
    return float(str(found[0])) if found else ""


def slopes() -> Iterator[str]:
    """Round trips that the paper's times at two pings are apart, for each number of parties: what a ping adds, without what does not depend on it."""
    for parties in PARTIES:
        times = [paper_ms(parties, ping) for ping in PINGS.values()]
        if "" not in times:
            low, high = map(float, times)
            yield f"latency: paper=000 n={parties} ms={low:g},{high:g} pings={','.join(map(str, PINGS.values()))} round_trips={(high - low) / 9:.2f} (ours: half the rounds)"


def latency(asked: Configuration, repeats: int, runs: int = LATENCY_RUNS) -> Row:
    """The row of one committee."""
    measured = [measure(asked, single=True, runs=runs) for _ in range(repeats)]
    values, times = measured[0], [float(one["latency_ms"]) for one in measured]
    return {
        "variant": values["variant"], "protocol": values["protocol"], "n": asked.parties, "openings": asked.openings, "link": asked.link,
        "rounds": values["rounds"], "ms": statistics.median(times), "least_ms": min(times), "most_ms": max(times),
        "cpu_ms_of_all": round(statistics.median(float(one["online_cpu_us"]) for one in measured) / 1e3, 2),
        "cpu_party_ms": round(statistics.median(float(one["cpu_party_us"]) for one in measured) / 1e3, 2), "storage_bytes": values["storage_bytes"],
        "paper_ms": paper_ms(asked.parties, PINGS[asked.link]),
        "runs": runs, "repeats": repeats, "wrong": sum(int(one["wrong"]) for one in measured),
    }  # fmt: skip


OPTIONS: Arguments = {
    "macs": {"action": "store_true", "help": "committees whose shares have MACs, which open values directly"},
    "repeats": {"type": int, "default": 3, "help": "measurements of each committee (default: 3)"},
    "runs": {"type": int, "default": LATENCY_RUNS, "help": f"decryptions of a measurement (default: {LATENCY_RUNS})"},
}
BENCH = Bench(
    "latency", committees, lambda case, given: [latency(case, max(1, given.repeats), max(1, given.runs))], COLUMNS, slopes,
    axes=("parties", "openings", "link"), options=OPTIONS, key=("protocol", "n", "openings", "link"), label=lambda case: case.label, table=lambda given: "latency_macs" if given.macs else "latency",
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
