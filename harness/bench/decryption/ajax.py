"""The tables of Ajax with ours beside them: ``keys`` (params/published/002_section1_end_to_end.csv, ``make bench-ajax``) and ``decryptions``
(params/published/002_table1_decryption.csv). Every party is a process of this host, over TLS.

The paper's links are simulated: ``lan`` 1 ms and 1 Gbit/s, ``wan`` 100 ms and 100 Mbit/s, which the links of a party share (``shared_link``), as the paper
limits the interface of a machine.

``keys``: keys of ``ajax53``, without added delay (``none``) and over both links; semi-honest with an honest majority. Seconds are from the start of the processes
to the files on disk, one run. ``bootstrapping_percent``: of the bytes that party 0 sends. The paper has a machine of 8 vCPU for every party, and ours share
the cores of this host: ``cpu_seconds_of_a_party`` stands beside its seconds. Rows that are not measured anew stay in the table.

``decryptions``: t + 1 = 2, 4 and 14 additive parties of a dishonest majority. A batch of 20,000, as in the paper; times are for one ciphertext. ``total`` is online and offline time: the preprocessing of the same batch,
with its random bits, conversions and triples. The paper has a machine of 8 vCPU for every party, and ours share the cores of this host. Rows that are not measured anew stay in the table.

    python -m bench.decryption.ajax keys [--parties 3,21] [--link none,wan]
    python -m bench.decryption.ajax decryptions [--items N] [--parties 2,4] [--only 'wan n=14 mask']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED, SHAMIR
from keyquorum.model.links import SHARED
from keyquorum.schemes.fhew.key import FhewKeyInfo
from keyquorum.terminal.output import console, print_reports

from ..runner import CIRCUMSTANCES, MACHINE, Bench, Options, Row, new_key, one_of, phase_rows
from .measure import Configuration, measure

PARAMETERS = "ajax53"
LINKS = {"lan": "LAN", "wan": "WAN"}
"""Names of our links, and of the paper's networks."""
NO_LINK = "none"
"""In place of a name: no added delay."""


@dataclass(frozen=True)
class Key:
    """A committee, and how it makes the noise."""

    protocol: str
    parties: int
    noise: str = "local"
    link: str = NO_LINK


PARTIES = (3, 5, 7, 9, 15, 21)
KEYS = (Key(REPLICATED, 3), Key(REPLICATED, 3, "exact"), *(Key(SHAMIR, n, link=link) for link in (NO_LINK, *LINKS) for n in PARTIES))
WHO = ("protocol", "parties", "noise", "link")
KEY_COLUMNS = (
    *WHO, "shared_link", "growth", "seconds", "paper_seconds", "cpu_seconds_of_a_party", "sent_gb_in_all", "bootstrapping_percent", "rss_gb_of_a_party", "rounds",
    "public_mb", *MACHINE, "busy",
)  # fmt: skip
PHASES = (*WHO, "phase", "seconds", "cpu_seconds", "sent_mb", "rounds")
BATCH = 20_000
PIECES = {14: 5_000}
"""Ciphertexts at a time where the parties on this host are many: 20,000 take 330 MB of each."""
SHAPES = (
    ("round_mask_open_one", "lwe53-p16-eta52"),
    ("round_mask_open", "lwe53-p16-eta52"),
    ("round_mask_open", "lwe53-p16"),
    ("round_ltz_circuit", "lwe53-p16"),
)
"""Roundings and sets: the paper's, which opens the masked phase to one party, and ours, which opens it to all, with its ring of 2^52 and with ours of 2^62; and the exact one."""
PAPER = (("ajax", "Ajax"), ("noah", "Noah's Ark"))
"""Columns and the paper's names of its protocols."""
PRINTED = ("ajax_bits", *(f"{column}_{name}" for column, _ in PAPER for name in ("online_ms", "total_ms")))
TAKEN = ("n", "variant", "parameters", "items", "rounds", "bits", "online_cpu_us", "offline_cpu_us", "wrong")
"""Columns of a measurement."""


def paper_seconds(parties: int, link: str) -> str:
    """Seconds of the paper's key generation on its network of a link (that of a LAN beside no link); empty where it has none for this number of parties."""
    where = (LINKS.get(link, "LAN"), parties)
    found = [row["keygen_seconds"] for row in published.load("002_section1_end_to_end") if (row["network"], row["parties"]) == where]
    return str(found[0]) if found else ""


def key(case: Key, options: Options) -> Iterator[Row]:
    """Makes one key: the row of the committee, and a row a phase (of party 0)."""
    real = case.link == NO_LINK
    result, seconds, public = new_key(case.protocol, case.parties, PARAMETERS, noise=case.noise, link=None if real else f"{case.link},{SHARED}")
    assert isinstance(result.info, FhewKeyInfo)
    console.print(f"\n{case.protocol}, {case.parties} parties, {PARAMETERS}, link {case.link}, {result.info.noise_plan.text()}")
    print_reports(result.reports)
    who: Row = {name: getattr(case, name) for name in WHO}
    first = result.reports[0]
    bootstrapping = sum(phase.bytes_sent for phase in first.phases if phase.name == "bootstrapping key")
    yield {
        **who,
        "shared_link": "no" if real else "yes",
        "growth": round(result.info.noise_plan.growth, 4),
        "seconds": round(seconds, 1),
        "paper_seconds": paper_seconds(case.parties, case.link),
        "cpu_seconds_of_a_party": round(max(r.cpu_seconds for r in result.reports), 1),
        "sent_gb_in_all": round(sum(r.total.bytes_sent for r in result.reports) / 1e9, 3),
        "bootstrapping_percent": round(100 * bootstrapping / first.total.bytes_sent, 2),
        "rss_gb_of_a_party": round(max(r.peak_memory for r in result.reports) / 1e9, 3),
        "rounds": first.total.rounds,
        "public_mb": round(public / 1e6, 1),
    }
    yield from phase_rows(who, first.phases, cpu=True)


def configurations(options: Options) -> list[Configuration]:
    """The decryptions. ``options.items``: all in one batch; None: as in the paper."""
    count = options.items or BATCH
    return [
        Configuration(rounding, 8, 2, parameters, ADDITIVE, n, count, batch=count, piece=PIECES.get(n, 0), link=f"{link},{SHARED}")
        for n in (2, 4, 14)
        for link in LINKS
        for rounding, parameters in SHAPES
    ]


def printed(parties: int, link: str) -> Row:
    """The paper's bits that a party sends, in theory and for any t, and its online and total milliseconds for t + 1 = ``parties``, as printed; empty where it has none."""
    found: Row = {"ajax_bits": published.ajax_bits("theory")}
    for column, protocol in PAPER:
        row = next(
            r for r in published.load("002_table1_decryption")
            if (r["protocol"], r["corruption_threshold"], r["network"]) == (protocol, parties - 1, LINKS[link])
        )  # fmt: skip
        for name in ("online_ms", "total_ms"):
            found[f"{column}_{name}"] = "" if row[name] is None else str(row[name])
    return found


def row_of(case: Configuration, values: Row) -> Row:
    """A row of the table, from the values of :func:`.measure.measure`."""
    online, offline, link = float(values["online_us"]) / 1e3, float(values["offline_us"]) / 1e3, case.link.removesuffix(f",{SHARED}")
    return {
        "t": case.parties - 1, "link": link, "shared_link": "no" if link == case.link else "yes", **{name: values[name] for name in TAKEN}, "online_ms": round(online, 5),
        "total_ms": round(online + offline, 5), **printed(case.parties, link),
    }  # fmt: skip


KEYS_BENCH = Bench("ajax", lambda options: KEYS, key, KEY_COLUMNS, axes=("parties", "link"), phases=PHASES, key=WHO)
DECRYPTIONS = Bench(
    "ajax1", configurations, lambda case, options: [row_of(case, measure(case))], ("t", "link", *TAKEN, "online_ms", "total_ms", *PRINTED, "shared_link", *CIRCUMSTANCES), table=lambda options: "ajax_decryption",
    label=lambda case: case.label, axes=("parties",), key=("t", "link", "variant", "parameters"), restricting=("items",),
    options={"items": {"type": int, "help": f"decryptions of each row, in one batch; the table is not written then (default: {BATCH})"}},
    shown=("t", "link", "shared_link", "variant", "parameters", "online_ms", "total_ms", "bits", "wrong", "busy", *PRINTED),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(one_of({"keys": KEYS_BENCH, "decryptions": DECRYPTIONS}))
