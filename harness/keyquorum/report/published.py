"""Plots of published figures against a number of parties (``published_bars``: of single figures), with our figures of the same kind where there are
any. They are no race: hardware, parameters and often the security differ, as every caption states."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import DIGITS
from keyquorum.cnn.run import PARAMETERS as CNN_SET
from keyquorum.fhe.keys import key_bytes
from keyquorum.fhe.parameters import load
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING, SHAMIR, lwe_set, with_capability
from keyquorum.model.idle import IDLE_CORES
from keyquorum.model.protocols import COMMITTEES, PROTOCOLS

from .data import own_machine, select
from .published_lines import NOT_THE_SAME, PAPERS, Ours, Published, draw, head


def _points(rows: pd.DataFrame, scale: float, label: Callable[[pd.Series], str], column: str = "seconds") -> pd.DataFrame:
    def values(suffix: str) -> pd.Series:
        return rows[column + suffix] / rows["batch"] * scale

    labels = [label(row) for _, row in rows.iterrows()]
    points = {"x": rows["parties"], "y": values(""), "low": values("_low"), "high": values("_high"), "label": labels}
    return pd.DataFrame({**points, "loaded": rows["loaded"], "commit": rows["commit"], "machine": rows["machine"]})


DISHONEST = with_capability(dishonest_majority=True, field=True)
PAPER_SET = "ckks-16384-seed004"


def _committee(row: pd.Series) -> str:
    return _named(row["protocol"])


def _named(name: str) -> str:
    """A committee's protocol, and what it is against."""
    protocol = PROTOCOLS[name]
    return f"{protocol.name} ({'MACs' if protocol.macs else 'products verified' if protocol.verifies_products else 'no MACs'})"


def _where(row: pd.Series) -> str:
    """Batch and link."""
    return (f", batch {int(row['batch']):,}" if row["batch"] > 1 else "") + _link(row)


def _link(row: pd.Series) -> str:
    return f", {row['rtt_ms']:g} ms" if row["rtt_ms"] > 0 else ", no link"


def _paper004(row: str, quantity: str) -> Ours:
    """The best method for rows of a table of the paper whose name begins so, at the paper's sizes: results/paper004.csv, with the prime of 60 bits. Over the
    paper's links where they were measured over them, otherwise without a link."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = [r for r in table.attrs.get("paper004", []) if r["row"].startswith(row) and (r["quantity"], r["best"]) == (quantity, "yes")]
        rows = [r for r in rows if r.get("q_bits", "") in ("", PRIME_BITS)]
        linked = {(r["row"], r["parties"]) for r in rows if _link_004(r) != "none"}
        rows = [r for r in rows if _link_004(r) != "none" or (r["row"], r["parties"]) not in linked]
        return _own_rows(rows, "parties", "ours", _label_004)

    return make


PAPER_004_BATCH = 1 << 15
"""Results of a run in tables of paper004.csv that do not say it."""
PRIME_BITS = "60"
"""Bits of the prime of conversions in plots."""
NETWORKS_004 = {"none": "no link", "paper004-lan": "LAN, simulated", "paper004-wan": "WAN, simulated"}


def _link_004(r: dict[str, str]) -> str:
    return r.get("link") or "none"


def _label_004(r: dict[str, str]) -> str:
    """Method, what else the row's name says, batch and link."""
    batch = int(r.get("batch") or (PAPER_004_BATCH if r["quantity"] in ("ms", "us") else 1))
    words = [r["method"]]
    if r["table"] == "3":
        words.append(f"length {r['row'].split()[-1]}")
    if r["table"] == "5":  # names of decryptions have their method
        words = [r["row"].removeprefix(DECRYPTION_004)] if r["row"].startswith(DECRYPTION_004) else [*words, r["row"].removeprefix("key generation ")]
    return ", ".join(["ours", *words, *([f"batch {batch:,}"] if batch > 1 else []), NETWORKS_004[_link_004(r)]])


DECRYPTION_004 = "decryption of a ciphertext, "


def _sweep(suite: str, name: str, scale: float, protocols: list[str], modulo_prime: bool = False) -> Ours:
    """Programs of a sweep whose names begin so. ``modulo_prime``: the paper's results are modulo a prime, so those modulo 2^k are another operation."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite=suite, backend="embedded", protocol=protocols)
        rows = rows[rows["name"].str.startswith(name)]
        made = _points(
            rows, scale, lambda r: f"ours, {r['name']}, {r['protocol']}{f', shares modulo {RING}' if modulo_prime and _is_ring(r) else ''}{_where(r)}"
        )
        return made.assign(other=[modulo_prime and _is_ring(r) for _, r in rows.iterrows()])

    return make


RING = "2^64"


def _is_ring(row: pd.Series) -> bool:
    return str(row["parameters"]).startswith("Z2^")


def _both(*makers: Ours) -> Ours:
    """The figures of several."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        found = [made for made in (maker(table) for maker in makers) if len(made)]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()

    return make


def _not_the_same(maker: Ours) -> Ours:
    """Figures of another operation than the paper's."""
    return lambda table: maker(table).assign(other=True)


def _single(*pings: int) -> Ours:
    """Single decryptions of LWE as in the paper: a dishonest majority, exact, over links of these pings. Of a protocol and ping whose latency was measured for itself
    (results/latency.csv, latency_macs.csv) the sweep's is left out."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        own = [r for name in LATENCIES for r in table.attrs.get(name, []) if _ping(r) in pings]
        measured = _own_rows(
            own,
            "n",
            "ms",
            lambda r: f"ours, {r['variant']}, {_named(r['protocol'])}, {r['openings']} openings, {_ping(r)} ms",
            ("least_ms", "most_ms"),
        )
        rows = select(table, suite="decrypt", backend="embedded", batch=1, rtt_ms=list(pings))
        rows = rows[rows["name"].str.startswith("lwe") & rows["protocol"].isin(DISHONEST) & rows["name"].str.contains("ltz")]
        known = {(COMMITTEES[r["protocol"]].field_protocol, _ping(r)) for r in own}
        again = [(r["protocol"], r["rtt_ms"]) in known and "table" in r["name"] for _, r in rows.iterrows()]
        sweep = _points(
            rows[~pd.Series(again, index=rows.index, dtype=bool)], 1e3, lambda r: f"ours, {r['name']}, {_committee(r)}{_where(r)}", "online_seconds"
        )
        found = [made for made in (measured, sweep) if len(made)]
        return pd.concat(found, ignore_index=True) if found else sweep

    return make


LATENCIES = ("latency", "latency_macs")
"""Tables of single decryptions."""


def _ping(row: dict[str, str]) -> int:
    """The ping of a link, ms: of ``rtt=1`` it is 1."""
    return int(row["link"].removeprefix("rtt=").partition(",")[0])


def _batches(table: pd.DataFrame) -> pd.DataFrame:
    """Decryptions of LWE in a batch, against the corruptions tolerated."""
    rows = select(table, suite="decrypt", backend="embedded")
    rows = rows[rows["name"].str.startswith("lwe") & (rows["batch"] > 1)]
    made = _points(rows, 1e3, lambda r: f"ours, {r['name']}, {_committee(r)}{_where(r)}", "online_seconds")
    made["x"] = [COMMITTEES[p].most_corruptions(n) for n, p in zip(rows["parties"], rows["protocol"], strict=True)]
    return made


def _own_rows(
    rows: list[dict[str, str]], x: str, y: str, label: Callable[[dict[str, str]], str], ends: tuple[str, str] | None = None
) -> pd.DataFrame:
    """Points of a table of our own: single runs, or with the columns ``ends`` of the smallest and the largest. ``shared``: whether the links of a party share its
    bandwidth."""
    values, low, high = ([float(r[name]) for r in rows] for name in (y, *(ends or (y, y))))
    loaded = [float(r.get("busy") or 0) > IDLE_CORES for r in rows]
    return pd.DataFrame(
        {
            "x": [int(r[x]) for r in rows],
            "y": values,
            "low": low,
            "high": high,
            "label": [label(r) for r in rows],
            "loaded": loaded,
            "commit": [r.get("commit", "") for r in rows],
            "machine": [own_machine(r) for r in rows],
            "shared": [r.get("shared_link") == "yes" for r in rows],
        }
    )


def _ajax_keys(table: pd.DataFrame) -> pd.DataFrame:
    """Keys of the paper's own set: results/ajax.csv."""
    return _own_rows(
        table.attrs.get("ajax", []),
        "parties",
        "seconds",
        lambda r: f"ours, {r['protocol']}, noise {r['noise']} ({float(r['growth']):.3g}), {_link_002(r)}",
    )


def _ajax_decryption(column: str) -> Ours:
    """Batches of 20,000 over the paper's links: results/ajax_decryption.csv."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = table.attrs.get("ajax_decryption", [])
        return _own_rows(rows, "t", column, lambda r: f"ours, {r['variant']}, {r['parameters']}, {_link_002(r)}")

    return make


def _link_002(r: dict[str, str]) -> str:
    """The simulated link of a row, and whether the links of a party share it."""
    if r["link"] == "none":
        return "no link"
    return f"{r['link'].upper()}, simulated{', shared' if r.get('shared_link') == 'yes' else ''}"


def _whose_bandwidth(found: pd.DataFrame) -> str:
    """Whether the links of a party share its bandwidth, as in the paper, where ours were measured over links."""
    over = found[found["label"].str.contains("simulated")] if len(found) else found
    if over.empty:
        return ""
    if over["shared"].all():
        return " The links of a party of ours share its bandwidth, as those of the paper's machines."
    return " Where a label of ours does not say shared, each simulated link has the whole bandwidth, so among more than two parties ours have more than the paper's."


def _cnn(phase: str) -> Ours:
    """Time of key generation for a run; for other phases, which every set of ciphertexts repeats, the mean over the sets of up to eight digits."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite=f"cnn: {phase}", name=DIGITS)
        if phase == "keys":
            return _points(rows.assign(batch=1), 1.0, lambda r: f"ours, {r['parameters']} with seven Galois keys, {r['protocol']}{_link(r)}")
        sets = rows.assign(batch=rows["batch"] / IMAGES)
        return _points(sets, 1.0, lambda r: f"ours, one of {r['batch']:.0f} sets of up to {IMAGES} digits, {r['protocol']}{_link(r)}")

    return make


def _key_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Sizes of keys of the paper's 484-bit set, not seeded, which do not depend on the number of parties."""
    sizes = zip(("pk", "swk"), key_bytes(load(PAPER_SET, warn=False)), strict=True)
    points = [(n, f"ours, {key}, {PAPER_SET}", size / 2**20) for key, size in sizes for n in (2, 4, 8, 16)]
    return pd.DataFrame([{"x": n, "y": mib, "low": mib, "high": mib, "label": label, "loaded": False} for n, label, mib in points])


def _modulus_bits(name: str) -> int:
    return sum(q.bit_length() for q in load(name, warn=False).coeff_modulus)


LAN_WAN = "LAN: 0.5 ms, 2 Gbit/s; WAN: 20 ms, 500 Mbit/s; one instance of 2 vCPU a party."
OPEN_MACS = "which do not say whether MACs are included"
ONE_MACHINE = "All parties of ours are on one machine, which adds up their CPU time."
OURS_000 = f"Ours: LWE (lwe64-p2), stored preprocessing, simulated links: of round_ltz_table-8x2 of that ping alone, without a limit of bandwidth, of the others with 1 Gbit/s. {ONE_MACHINE}"
AJAX_BATCH = f"A batch of 20,000. Theirs: c6i.2xlarge a party, whose peers share its bandwidth. Ours: t + 1 additive parties, semi-honest, fresh noise. {ONE_MACHINE}"
PLOTS = [
    Published(
        "000_slide_online_latency", "Online latency of one decryption", "000 (ePrint 2025/1781)", "online_ms", "ms",
        series=("ping_ms",), ours=_single(1, 10), note=f"Theirs: hardware and bandwidth not stated, {OPEN_MACS}. {OURS_000}",
    ),
    Published(
        "000_slide_throughput", "Latency against Noah's Ark", "000 (ePrint 2025/1781)", "latency_ms", "ms", series=("protocol",),
        ours=_single(1), note=f"Theirs: 1 ms, 1 Gbit/s, {OPEN_MACS}; Noah's Ark as the slides have it, which is not run here. {OURS_000}",
    ),
    Published(
        "002_table1_decryption", "Decryption", "002 (Ajax), table 1", "online_ms", "ms, online", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_not_the_same(_batches),
        note=f"Theirs: averaged over a batch of 20,000 (Ajax), c6i.2xlarge a party. Ours, of other sets, batches or links: LWE ({lwe_set(ADDITIVE)}; {SHAMIR}: {lwe_set(SHAMIR)}), averaged over a batch. {ONE_MACHINE}",
    ),
    Published(
        "002_table1_decryption", "Decryption with the paper's batch and links", "002 (Ajax), table 1", "online_ms", "ms, online", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_ajax_decryption("online_ms"), note=AJAX_BATCH, remark=_whose_bandwidth,
    ),
    Published(
        "002_table1_decryption", "Decryption with its preprocessing", "002 (Ajax), table 1", "total_ms", "ms, online and offline", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_ajax_decryption("total_ms"), note=AJAX_BATCH, remark=_whose_bandwidth,
    ),
    Published(
        "002_section1_end_to_end", "Key generation", "002 (Ajax), section 1.1", "keygen_seconds", "seconds", ours=_ajax_keys, remark=_whose_bandwidth,
        note=f"Keys with a bootstrapping key, of the paper's parameters (ajax53): 33.8 million opened residues, theirs and ours. In brackets the variance of the noise, as a multiple of the set's. {ONE_MACHINE}",
    ),
    Published(
        "004_table2_gaussian", "Discrete Gaussian, deviation 3.2", "004 (GMPFHE), table 2", "ms", "ms a sample",
        ours=_both(_paper004("discrete Gaussian", "ms"), _sweep("sampling", "discrete Gaussian", 1e3, [ADDITIVE_RING])), remark=_whose_bandwidth,
        note=f"{LAN_WAN} {ONE_MACHINE} A sample of a batch.",
    ),
    Published(
        "004_table3_fixed_weight", "Vector of Hamming weight 64", "004 (GMPFHE), table 3", "seconds", "seconds",
        series=("phi_m", "network"), ours=_paper004("Hamming weight", "seconds"), remark=_whose_bandwidth,
        note=f"{LAN_WAN} {ONE_MACHINE} Ours have the paper's lengths (`make bench-paper004`); marks are hollow only where the busy cores were noted.",
    ),
    *(
        Published(
            "004_table4_conversion", f"Conversion: {theirs}", "004 (GMPFHE), table 4", "us", "µs a value",
            where=(("operation", theirs),), ours=_both(_paper004(theirs, "us"), _sweep("conversion", ours, 1e6, [ADDITIVE_RING, ADDITIVE], ours.endswith("to Zq"))), remark=_whose_bandwidth,
            note=f"{LAN_WAN} {ONE_MACHINE} A value of a batch. Ours modulo a prime of {PRIME_BITS} bits, where the paper has 64; shares modulo {RING}, without the lift to a prime, are another operation.",
        )
        for theirs, ours in (("Z2 to Zq", "Z2 to Zq"), ("Z3 to Zq", "Z3 to Zq"), ("Zq to bits", "Zq to Z2"))
    ),
    Published(
        "004_table5_cnn", "Key generation for a CNN", "004 (GMPFHE), table 5", "seconds", "seconds",
        where=(("operation", "KeyGen"),), ours=_both(_paper004("key generation", "seconds"), _not_the_same(_cnn("keys"))), remark=_whose_bandwidth,
        note=f"{LAN_WAN} CKKS, N = 16384, 484 bits, which have no 128-bit security; public and relinearisation key. Another operation: the keys of our CNN, {_modulus_bits(CNN_SET)} bits with seven Galois keys. {ONE_MACHINE}",
    ),
    Published(
        "004_table5_cnn", "Decryption of a CNN's result", "004 (GMPFHE), table 5", "seconds", "seconds",
        where=(("operation", "Dec"),), ours=_both(_paper004("decryption", "seconds"), _not_the_same(_cnn("decryption"))), remark=_whose_bandwidth,
        note=f"{LAN_WAN} One ciphertext, online, after loading; opened plainly as in the paper it gives the key away, which no command does. Another operation: a set of ciphertexts for up to {IMAGES} digits, mean of the sets of a run, which are decrypted together; flooded. {ONE_MACHINE}",
    ),
    Published(
        "004_table6_key_sizes", "Sizes of keys", "004 (GMPFHE), table 6", "mb", "MB (ours: MiB)", series=("protocol", "key"), ours=_key_sizes, computed=True,
        note="A key that does not depend on the number of parties is drawn as a level line. Ours: exact sizes of whole keys of the same 484 bits, from the parameters; "
        "with seeds in place of random polynomials they are half as large.",
    ),
]  # fmt: skip

__all__ = ["NETWORKS_004", "NOT_THE_SAME", "PAPERS", "PLOTS", "Published", "draw", "head"]
