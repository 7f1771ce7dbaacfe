"""Writes the measured figures of results/: all tables into results/README.md, a dozen figures into README.md, between its marks.

Figures that are not in results/ are left out. Every row of README.md names the committee, the conditions and, where there is one, the figure of
others."""

from __future__ import annotations

import csv
import statistics
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from keyquorum.cnn.run import WAYS
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE_RING, REPLICATED, RING_WITH_MACS
from keyquorum.model.idle import IDLE_CORES
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.report.data import NoResultsError, conditions, load, summary
from keyquorum.report.papers.recorded import History, HistoryError
from keyquorum.report.threat_models import threat_model_table

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
LINK = "paper000-1ms"
PLOTS = {
    "threat_models": "What an operation costs under each threat model: time, and bytes that a party sends",
    "scaling": "Keys and decryption against the number of parties",
    "round_trip": "Time against the round trip of the links",
}
"""Plots of the report that results/README.md shows; README.md shows the first."""
ORIGIN = """
Rows that started beside other work say so where their table notes it. Compare only what stands in one row, or in rows of one state of the code on one machine. The commits of each table, with the rows that
they measured, and the machine as far as the table says it:""".splitlines()
"""How to read what follows; results/README.md begins with it."""
NOT_MEASURED = ("papers.csv",)
"""Tables that are made from others."""


def origin() -> list[str]:
    """The commits that the rows of each table are of, as recorded."""
    lines = [*ORIGIN, ""]
    for name in _tables():
        counts = Counter((row.get("commit") or "not recorded", row.get("machine") or "machine not recorded") for row in _rows(name))
        listed = ", ".join(f"{commit} ({number:,} on {machine})" for (commit, machine), number in counts.most_common())
        lines += [f"* `{name}.csv`: {listed}."] if counts else []
    return lines


def _tables() -> list[str]:
    """The names of all tables of measurements."""
    folder = ROOT / "results"
    paths = sorted([*folder.glob("*.csv"), *folder.glob("bench/*.csv")])
    return [str(path.relative_to(folder).with_suffix("")) for path in paths if path.name not in NOT_MEASURED]


def _rows(name: str) -> list[dict[str, str]]:
    path = ROOT / "results" / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _loaded(row: dict[str, str]) -> str:
    """Notes beside a time: that it was measured beside other work, and that its state of the code is not known."""
    return (" (started under load)" if row["busy"] and float(row["busy"]) > IDLE_CORES else "") + _mark(row)


MARK = "†"


@cache
def _history(root: Path) -> History | None:
    """The history of this checkout; None where there is none, so that nothing is marked."""
    try:
        return History.of(root)
    except HistoryError:
        return None


def _refusal(row: dict[str, str]) -> str:
    """Why a row does not count on the page of published figures; empty if it does, or if there is no history."""
    history = _history(ROOT)
    return history.refusal(row.get("commit", "")) if history else ""


def _mark(row: dict[str, str]) -> str:
    """The mark of a figure that does not count on that page."""
    return f" {MARK}" if _refusal(row) else ""


def provenance() -> list[str]:
    """The tables of which rows do not count on the page of published figures, with their reasons."""
    lines = []
    for name in _tables():
        rows = _rows(name)
        counts = Counter(filter(None, map(_refusal, rows)))
        lines += [f"* `{name}.csv`: {number:,} of {len(rows):,} rows, {why}." for why, number in sorted(counts.items())]
    if not lines:
        return []
    return [
        "",
        f"The page of published figures does not count these rows, and figures of them have the mark {MARK} below or in README.md:",
        "",
        *lines,
    ]


def parity() -> list[str]:
    """The comparison with MP-SPDZ, one line for each protocol."""
    rows = _rows("parity")
    if not rows:
        return []
    lines = [
        "",
        f"The same programs on MP-SPDZ (commit {rows[0]['mpspdz_commit'][:8]}), same inputs, medians of 5 (`mal-` protocols: of 3, three rows of them of 3 to 15 by themselves), same machine: `make parity`. A row is a program, or a "
        "variant of it; all outputs agree with each other and with clear text. Ratio: time of the embedded engine / time of MP-SPDZ.",
        "",
        "| protocol | rows | differences | compared in time | median ratio | largest ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        mine = [row for row in rows if row["protocol"] == protocol]
        ratios = [float(row["ratio"]) for row in mine if row["ratio"]]
        times = f"{statistics.median(ratios):.2f}{_mark(mine[0])} | {max(ratios):.2f}" if ratios else "– | –"
        wrong = sum(bool(row["difference"]) for row in mine)
        lines.append(f"| `{protocol}` | {len(mine)} | {wrong} | {len(ratios)} | {times} |")
    return lines


def keygen() -> list[str]:
    """Key generation by each protocol, beside the semi-honest one of the same sharing."""
    rows = _rows("keygen")
    if not rows:
        return []
    lines = [
        "",
        f"Joint keys: of CKKS at N = 16384 with [60,52,52,52,52,52,52,60] bits, and with MACs of BFV. Every party is a process "
        f"of one machine ({rows[0]['machine']}, {rows[0]['cores']} cores), over TLS, no added delay: `make bench-keygen`. "
        "In brackets: times those of the row above, which is semi-honest, with the same sharing and parties.",
        "",
        "| protocol | parties | parameters | keys | seconds | memory a party | sent by all | rounds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    before: dict[str, str] = {}
    for row in rows:
        verified = row["protocol"] in PROTOCOLS and PROTOCOLS[row["protocol"]].verifies_products
        base = before if verified and before and all(before[name] == row[name] for name in ("parties", "parameters", "keys")) else None
        seconds, sent = (f" ({float(row[name]) / float(base[name]):.2f})" if base else "" for name in ("seconds", "sent_mb"))
        lines.append(
            f"| `{row['protocol']}` | {row['parties']} | {row['parameters']} | {row['keys']} | {row['seconds']}{seconds}{_mark(row)} | {row['rss_gb']} GB | {row['sent_mb']} MB{sent} | {row['rounds']} |"
        )
        before = row
    return lines


def lwe() -> list[str]:
    """Threshold decryption with a pool."""
    rows = [row for row in _rows("decrypt") if row["parameters"] in ("lwe64-p2", "bfv-4096")]
    if not rows:
        return []
    lines = [
        "",
        "Decryption of LWE ciphertexts (n = 1024, q = 2^64), and of BFV coefficients (N = 4096, t = 65537), with preprocessing of a pool: microseconds for one, in batches; "
        f"all parties on {rows[0]['cores']} cores, over TLS. "
        "Latency: one ciphertext over simulated links of 1 ms ping. `make bench-decrypt`; what the roundings trade: [results](decrypt-tradeoff.md).",
        "",
        f"A second, online:{_batches(rows)} without any delay of links; the throughput over links has a table of its own.",
        "",
        "| of | rounding | protocol | parties | online | CPU a party, online | offline | online rounds (with those of MACs) | a second, online | latency |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        latency = f"{row['latency_ms']} ms" if float(row["latency_ms"]) else "–"
        more = float(row["rounds_in_all"])
        rounds = row["rounds"] + (f" ({more:.0f})" if more != int(row["rounds"]) else "")
        lines.append(
            f"| {row['parameters'].split('-')[0].rstrip('64').upper()} | `{row['variant']}` | `{row['protocol']}` | {row['n']} | {row['online_us']} | {_cpu(row)} | {row['offline_us']} | {rounds} | "
            f"{int(row['per_s']):,}{_mark(row)} | {latency} |"
        )
    return [*lines, *linked(), *throughput(), *latencies()]


def _batches(rows: list[dict[str, str]]) -> str:
    sizes = sorted({int(row["items"]) for row in rows if row.get("items")})
    return f" in batches of {sizes[0]:,} to {sizes[-1]:,}," if sizes else ""


def _cpu(row: dict[str, str]) -> str:
    """CPU time of one party for one decryption, in microseconds."""
    return f"{float(row['online_cpu_us']) / int(row['n']):.1f}" if row.get("online_cpu_us") else "–"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def linked() -> list[str]:
    """Throughput of LWE decryption over the link of paper 000, with the paper's figure."""
    try:
        table = summary(load(ROOT / "results"))
    except NoResultsError:
        return []
    rows = table[(table["suite"] == "decrypt") & (table["link"] == LINK) & (table["parameters"] == "lwe64-p2") & (table["batch"] > 1)]
    if rows.empty:
        return []
    paper = [r for r in published.load("000_slide_throughput") if r["decryptions_per_second"] is not None]
    lines = [
        "",
        "Decryptions of LWE ciphertexts a second over simulated links of 1 ms and 1 Gbit/s, one batch at a time, beside figures that paper 000 publishes for this link "
        "(other hardware; whether they include MACs is not said):",
        "",
        "| rounding | protocol | parties | batch | a second, online |",
        "| --- | --- | --- | --- | --- |",
    ]
    for _, row in rows.sort_values("online_seconds").iterrows():
        note = " (started under load)" if row["loaded"] else ""
        rate = row["batch"] / row["online_seconds"]
        lines.append(f"| `{row['name'].removeprefix('lwe ')}` | `{row['protocol']}` | {row['parties']} | {row['batch']:,} | {_rate(rate)}{note} |")
    return [*lines, *(f"| paper 000, {r['protocol']} | – | {r['parties']} | – | {_rate(float(str(r['decryptions_per_second'])))} |" for r in paper)]


def throughput() -> list[str]:
    """Decryptions of LWE a second by rounding, link and batch, with the paper's figure for the same parties and link."""
    rows = _rows("throughput")
    if not rows:
        return []
    lines = [
        "",
        f"Decryptions of LWE ciphertexts (`{rows[0]['parameters']}`) a second, in batches that follow one another, over simulated links whose bandwidth the links of a party share; all parties on {rows[0]['cores']} cores: "
        "`python -m bench.decryption.throughput`. Online, and with the making of as many items of the pool, which neither the paper's figure nor ours online has. A core: by the processor time of the busiest party. "
        "The paper has other hardware, and does not say whether MACs are included.",
        "",
        "| rounding | protocol | parties | link | batch | a second, online | of a core of a party | with preprocessing | bits that a party sends | stored by a party, B | paper 000, a second |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        numbers = [f"{int(row[name]):,}" if row[name] else "–" for name in ("per_s", "per_s_of_a_core", "sustained_per_s")]
        paper = f"{int(row['paper_per_s']):,}" if row["paper_per_s"] else "–"
        lines.append(
            f"| {row['variant']} | `{row['protocol']}` | {row['n']} | {row['link']} | {int(row['batch']):,} | {numbers[0]}{_loaded(row)} | {numbers[1]} | {numbers[2]} | {row['bits']} | {row['storage_bytes']} | {paper} |"
        )
    return lines


def latencies() -> list[str]:
    """Latency of a single decryption, without and with MACs, with the paper's figure for the same parties and ping."""
    rows = [*_rows("latency"), *_rows("latency_macs")]
    if not rows:
        return []
    lines = [
        "",
        "A single decryption of an LWE ciphertext with preprocessing of a pool over simulated links without a limit of bandwidth, by ping: medians of the decryptions of a run, then of the runs, until party 0 has the message; "
        f"all parties on {rows[0]['cores']} cores, whose processor time adds up: `python -m bench.decryption.latency`, with `--macs`. Beside it the figures of paper 000 "
        "(other hardware; whether they include MACs is not said).",
        "",
        "| rounding | protocol | parties | opening | link | ms (least, most) | CPU of all, ms | decryptions, runs | paper 000, ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| `{row['variant']}` | `{row['protocol']}` | {row['n']} | {row['openings']} | {row['link']} | {row['ms']} ({row['least_ms']}, {row['most_ms']}){_mark(row)} | {row['cpu_ms_of_all']} | "
            f"{row['runs']}, {row['repeats']} | {row['paper_ms'] or '–'} |"
        )
    return lines


def dishonest() -> list[str]:
    """Primitives with a dishonest majority."""
    rows = _rows("dishonest")
    if not rows:
        return []
    lines = [
        "",
        f"Primitives with a dishonest majority, 2 parties on this machine, correlated randomness included, medians of {rows[0]['repeats']}: `make bench-dishonest`.",
        "",
        "| primitive | protocol | a second | bytes, both parties | MP-SPDZ: a second | bytes |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        theirs = f"{int(row['mpspdz_per_s']):,} | {row['mpspdz_bytes']}" if row["mpspdz_per_s"] else "– | –"
        lines.append(f"| {row['row']} | `{row['protocol']}` | {int(row['embedded_per_s']):,}{_mark(row)} | {row['embedded_bytes']} | {theirs} |")
    return lines


def verified() -> list[str]:
    """Primitives with an honest majority and malicious parties."""
    rows = _rows("verified")
    if not rows:
        return []
    lines = [
        "",
        f"Products and random bits with an honest majority, 3 parties on this machine: whole programs of {int(rows[0]['items']):,} items, with preprocessing and checks, "
        f"medians of {rows[0]['repeats']}: `make bench-verified`.",
        "",
        "| primitive | engine | program of | seconds | MB, all parties | rounds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return [
        *lines,
        *(
            f"| {r['row'].replace('_', ' ')} | {r['engine']} | `{r['program_of']}` | {r['seconds']}{_mark(r)} | {r['mb']} | {int(r['rounds']):,} |"
            for r in rows
        ),
    ]


def gmpfhe() -> list[str]:
    """The best methods, and all keys, with the figures of GMPFHE where it has some."""
    rows = [
        row for row in _rows("paper004") if row["table"] in "2345" and (row["best"] == "yes" or row["table"] == "5") and row.get("q_bits") != "62"
    ]
    if not rows:
        return []
    lines = [
        "",
        "Beside the figures that GMPFHE publishes, on other hardware (so they stand side by side and do not race): semi-honest, dishonest majority, the best method for each. Links are those of the paper, "
        "simulated; the links of a party share the bandwidth. A time without a link stands beside the paper's for its LAN, and is not comparable with it. Bytes are those that a party sends and receives, of a decryption those that it sends. "
        "A batch of more than one: figures are for one result of it. All parties share the cores of one machine, so the processor time of the busiest party stands beside. `make bench-paper004`.",
        "",
        "| what | method here | parties | link | batch | time here | CPU of a party | GMPFHE | bytes here | GMPFHE |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key in dict.fromkeys(map(_measured_as, rows)):
        cells, size, cpu = ["– | –"] * 2, "", "–"
        for row in rows:
            if _measured_as(row) == key:
                unit, size = row["quantity"].removeprefix("communication_"), row.get("batch") or "–"
                shown = {"us": "µs", "seconds": "s", "kb": "KB", "mb": "MB", "gb": "GB"}.get(unit, unit)
                theirs = f"{row['paper']} {shown}" if row["paper"] else "–"
                bytes_of = unit != row["quantity"]
                cpu = f"{row['cpu_party']} {shown}" if not bytes_of and row.get("cpu_party") else cpu
                cells[bytes_of] = f"{row['ours']} {shown}{_mark(row)} | {theirs}"
        ours, _, theirs = cells[0].partition(" | ")
        lines.append(f"| {' | '.join(key)} | {size} | {ours} | {cpu} | {theirs} | {cells[1]} |")
    return lines


def _measured_as(row: dict[str, str]) -> tuple[str, str, str, str]:
    """What was measured, the method, parties and link."""
    return row["row"], row["method"], row["parties"], row.get("link") or "none"


def tfhe() -> list[str]:
    """Keys for TFHE-rs, and results under them."""
    rows, counted = _rows("tfhe"), _rows("tfhe_results")
    lines: list[str] = []
    if rows:
        lines += [
            "",
            f"Keys for TFHE-rs, set `{rows[0]['parameters']}`: server key and compact public key. All parties on one machine ({rows[0]['cores']} cores), over TLS, no added delay; "
            f"bytes, CPU time and memory of one party. TFHE-rs alone, with one party that has the secret, takes {rows[0]['alone_seconds']} s on the same machine: `make bench-tfhe`.",
            "",
            "| protocol | parties | seconds | times TFHE-rs alone | CPU, s | sent | memory | rounds |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
    for row in rows:
        lines.append(
            f"| `{row['protocol']}`{', noise_method=carry' if row.get('noise_method') == 'carry' else ''} | {row['parties']} | {row['seconds']}{_loaded(row)} | {row['ratio']} | {row['cpu_seconds']} | {int(row['sent_mb']):,} MB | {row['memory_mb']} MB | {row['rounds']} |"
        )
    if counted:
        lines += [
            "",
            "Results that TFHE-rs evaluated under such keys and the committee decrypted. Integers: FheUint8, by addition, product, and comparison with selection in turn. Noise: log2 of its deviation after one "
            "look-up, and that under keys which TFHE-rs makes alone: `make check-tfhe`.",
            "",
            "| protocol | parties | integers | wrong | look-ups | wrong | noise | TFHE-rs's own |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
    for row in counted:
        lines.append(
            f"| `{row['protocol']}` | {row['parties']} | {int(row['integers']):,} | {row['wrong_integers']} | {int(row['look_ups']):,} | {row['wrong_look_ups']} | {row['noise_bits']} | {row['own_noise_bits']} |"
        )
    return lines


def ajax() -> list[str]:
    """Keys and decryptions beside the figures of Ajax."""
    keys, decryptions = _rows("ajax"), _rows("ajax_decryption")
    lines: list[str] = []
    if keys:
        lines += [
            "",
            f"Keys of `ajax53`, all parties on one machine ({keys[0]['cores']} cores), over TLS: `make bench-ajax`. Links are simulated, and share the bandwidth of a party. The paper has a machine for each party; its LAN has 1 ms and 1 Gbit/s, its WAN 100 ms and 100 Mbit/s. Beside rows without a link stand its figures for the LAN.",
            "",
            "| protocol | parties | noise | link | variance, times the set's | seconds | paper, s | CPU of a party, s | sent in all | memory of a party | rounds |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
    for row in keys:
        lines.append(
            f"| `{row['protocol']}` | {row['parties']} | {row['noise']} | {row['link']} | {float(row['growth']):.3g} | {row['seconds']}{_mark(row)} | {row['paper_seconds'] or '–'} | {row['cpu_seconds_of_a_party']} | {row['sent_gb_in_all']} GB | {row['rss_gb_of_a_party']} GB | {row['rounds']} |"
        )
    if decryptions:
        shared = all(row["shared_link"] == "yes" for row in decryptions)
        whose = "of a party, shared by its links" if shared else "of each link, where the paper's is of a machine, so more than the paper's for t > 1"
        lines += [
            "",
            f"Table 1 of Ajax, for one ciphertext of a batch of {int(decryptions[0]['items']):,}: t + 1 additive parties on one machine ({decryptions[0]['cores']} cores), links simulated (bandwidth {whose}): "
            "`python -m bench.decryption.ajax decryptions`. Bits are those that a party sends; for Ajax for any t.",
            "",
            "| t | link | method | set | bits | Ajax: bits | online, ms | total, ms | Ajax, online | Ajax, total | Noah's Ark, online |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
    for row in decryptions:
        lines.append(
            f"| {row['t']} | {row['link']} | `{row['variant']}` | `{row['parameters']}` | {row['bits']} | {published.ajax_bits('theory')}, {published.ajax_bits('implementation')} implemented | {row['online_ms']}{_loaded(row)} | {row['total_ms']} | {row['ajax_online_ms']} | {row['ajax_total_ms']} | {row['noah_online_ms']} |"
        )
    return lines


def toprf() -> list[str]:
    """Evaluations of pseudorandom functions beside the figures of paper 003, and sharings for any t of T parties."""
    rows, shared = _rows("toprf"), _rows("lisss")
    lines: list[str] = []
    if rows:
        lines += [
            "",
            f"AES-128 and the Legendre PRF (128 symbols) under a shared key, all parties on one machine ({rows[0]['cores']} cores), over TLS: `make bench-toprf`. A block is 16 bytes of output. Online, and "
            f"ahead: for a batch; bytes that a party sends, and that all send. Batches of fewer than {LEAST_AHEAD} blocks take correlated randomness that earlier ones left over, so nothing stands there. H and H-128: the circuit on LWE ciphertexts, with the dimension of the paper and with 128 bits; F: by TFHE-rs. The paper has 0.96 s and "
            "5.12 MB for two servers, of which one knows the key, and 470 s by fully homomorphic encryption alone, on another machine.",
            "",
            "| system | method | protocol | parties | batch | link | online, ms | blocks a second | sent, MB | sent by all, MB | ahead, ms | ahead, MB | rounds |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
    for row in rows:
        lines.append(
            f"| {row['system']} | {row['method']} | `{row['protocol']}` | {row['n']} | {int(row['batch']):,} | {row['link']} | {row['ms']}{_loaded(row)} | {row['per_s']} | {float(row['mb']):.4g} | {_megabytes(row.get('all_mb'))} | {_ahead(row)} | {row['rounds']} |"
        )
    if shared:
        lines += [
            "",
            f"Shares for any t of T parties, for pairs (t, T) of our choice (figure 5 of paper 003 is drawn without numbers) and an LWE secret of {shared[0]['n']} coefficients: `make bench-lisss`. Sharing once; then a decryption of one ciphertext: the local step of a party, "
            "one by one and in a batch; combining; and the exact rounding among t parties, one and each of a batch.",
            "",
            "| t | T | sharing, ms | sent by a party, MB | stored by a party, kB | local step, µs | in a batch, µs | combining, µs | rounding, ms | in a batch, µs |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
    for row in shared:
        lines.append(
            f"| {row['t']} | {row['T']} | {row['share_ms']}{_loaded(row)} | {float(row['share_mb']):.3g} | {float(row['stored_kb']):.3g} | {row['partial_us']} | {row['partial_batch_us']} | {row['combine_us']} | {row['exact_ms']} | {row['exact_batch_us']} |"
        )
    return lines


LEAST_AHEAD = 64
"""Blocks of the smallest batch of which the correlated randomness is its own."""


def _ahead(row: dict[str, str]) -> str:
    """Milliseconds and megabytes that a batch takes ahead, two cells; none of small batches on shares, whose randomness is in part of others."""
    if row["system"] == "native" and int(row["batch"]) < LEAST_AHEAD:
        return "– | –"
    return f"{row['offline_ms']} | {_megabytes(row['offline_mb'])}"


def _megabytes(text: str | None) -> str:
    return f"{float(text):.4g}" if text else "–"


def _engine_rate(protocol: str, parties: str) -> str:
    """LWE decryptions a second of the engine alone, and the batch."""
    for row in _rows("decrypt"):
        if (row["parameters"], row["variant"], row["protocol"], row["n"]) == ("lwe64-p2", "round_ltz_circuit", protocol, parties):
            return f"{int(row['per_s']):,} (batch {int(row['items']):,})"
    return "–"


def without_pool() -> list[str]:
    """Exact decryptions of BFV without a pool, by committees that verify products and by those of the same sharing that do not."""
    rows = [row for row in _rows("exact_decryption") if row["status"] == "ok" and not row["link"]]
    if not rows:
        return []
    lines = [
        "",
        f"Exact decryption of BFV without a pool (`round_ltz_circuit`; with one: the rows of BFV above), all parties on one machine ({rows[0]['cores']} cores), over TLS, no added delay: medians of the slowest party. "
        "In brackets: times that of the semi-honest committee of the same sharing, for as many ciphertexts.",
        "",
        "| protocol | parties | parameters | ciphertexts at once | seconds | of it the rounding | rounds | CPU of a party, s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    before: dict[tuple[str, str], float] = {}
    for (protocol, parties, parameters, batch), mine in _together(rows, "protocol", "parties", "parameters", "batch").items():
        whole = _slowest(mine, "seconds")
        sharing, verifies = PROTOCOLS[protocol].sharing, PROTOCOLS[protocol].verifies_products
        base = before.get((sharing, batch)) if verifies else before.setdefault((sharing, batch), whole)
        times = f" ({whole / base:.2g})" if verifies and base else ""
        rounding = [row for row in mine if row["phase"] == "rounding"]
        rounds = max(int(row["rounds"]) for row in mine)
        lines.append(
            f"| `{protocol}` | {parties} | {parameters} | {batch} | {whole:.3g}{times}{_mark(mine[0])} | {_slowest(rounding, 'seconds'):.3g} | {rounds} | {_slowest(rounding, 'cpu_seconds'):.2g} |"
        )
    return lines


def _together(rows: list[dict[str, str]], *names: str) -> dict[tuple[str, ...], list[dict[str, str]]]:
    """The rows by their values of some columns, in order."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _slowest(rows: list[dict[str, str]], column: str) -> float:
    """Of a measurement: the median over its runs of the largest sum of a column of a party."""
    runs = _together(rows, "repeat").values()
    return statistics.median(max(sum(float(row[column]) for row in party) for party in _together(run, "party").values()) for run in runs)


def counted() -> list[str]:
    """Wrong decryptions among all that were counted, by rounding and committee."""
    found = _together(_rows("exactness"), "variant", "protocol", "n", "parameters", "fraction")
    if not found:
        return []
    lines = [
        "",
        "Decryptions that were counted, with pools, and the wrong ones among them (sums over states of the code): `make check-decrypt RECORD=1`. Exact roundings and `round_flood` of LWE have noise up to their bound, ciphertexts of BFV are fresh, and none may be wrong; "
        "the others have noise of the stated part of the distance D of two messages, and are wrong as often.",
        "",
        "| rounding | protocol | parties | parameters | noise, of D | decryptions | wrong |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (variant, protocol, parties, parameters, fraction), rows in found.items():
        decryptions, wrong = (sum(int(row[name]) for row in rows) for name in ("decryptions", "wrong"))
        noise = f"{float(fraction):.4g}" if float(fraction) else "–"
        lines.append(f"| `{variant}` | `{protocol}` | {parties} | {parameters} | {noise} | {decryptions:,} | {wrong:,} |")
    return lines


def served() -> list[str]:
    """What a receiver gets of a served committee, beside the engine alone."""
    rows = _rows("served")
    if not rows:
        return []
    lines = [
        "",
        f"A served committee (LWE, `{rows[0]['parameters']}`), pool filled before, parties and clients on one machine ({rows[0]['cores']} cores), over TLS, no added delay; each client sends its next request when it "
        "has the answer to the last one: `make bench-served`. Engine alone: LWE ciphertexts a second, in a batch in memory.",
        "",
        "| protocol | parties | clients | ciphertexts a request | requests a second | LWE a second | engine alone | p50, ms | p99, ms | CPU of a party a request, ms | commit |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| `{row['protocol']}` | {row['n']} | {row['clients']} | {row['ciphertexts']} | {row['per_s']}{_loaded(row)} | {int(row['lwe_per_s']):,} | {_engine_rate(row['protocol'], row['n'])} | "
            f"{row['p50_ms']} | {row['p99_ms']} | {row['cpu_ms']} | {row['commit']} |"
        )
    return lines


def _of_served() -> list[Row]:
    """One client and many, one ciphertext a request, as the last commit in the table has them."""
    every = _rows("served")
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in every:
        if row["commit"] == every[-1]["commit"] and row["ciphertexts"] == "1" and row["clients"] in ("1", "32"):
            clients = "1 client" if row["clients"] == "1" else f"{row['clients']} clients"
            said = f"{clients}: {row['per_s']} requests/s, p50 {row['p50_ms']} ms, p99 {row['p99_ms']} ms{_loaded(row)}"
            cells.setdefault((row["protocol"], row["n"]), {})[row["clients"]] = said
    return [
        ("LWE decryptions, served, one a request", f"`{protocol}`, {n}", "; ".join(said.values()), f"engine alone: {_engine_rate(protocol, n)}")
        for (protocol, n), said in cells.items()
    ]


def sweeps() -> list[str]:
    """The table of threat models and some plots, from the sweeps in results/bench."""
    try:
        rows = load(ROOT / "results")
    except NoResultsError:
        return []
    where = dict(conditions(rows))
    table, note = threat_model_table(summary(rows))
    lines = [
        "",
        f"Threat models, as measured by `keyquorum bench` on {where['processor']}, {where['cores']} cores, {where['memory, GB']} GB (commit {where['commit']}, "
        f"{where['dates'][:10]}). {note}",
    ]
    if len(table):
        table["committee"] = [" + ".join(f"`{name}`" for name in names.split(" + ")) for names in table["committee"]]
        cells = [[str(value) for value in row] for row in table.to_numpy()]
        lines += ["", f"| {' | '.join(table.columns)} |", "| " + " | ".join("---" for _ in table.columns) + " |"]
        lines += [f"| {' | '.join(row)} |" for row in cells]
    for name, title in PLOTS.items():
        path = ROOT / "results" / "report" / f"{name}.png"
        if path.exists():
            lines += ["", f"![{title}]({path.relative_to(ROOT / 'results')})"]
    return [*lines, "", "All plots, published figures beside ours: `results/report/index.html` (`keyquorum report`)."]


Row = tuple[str, str, str, str]
"""The measurement; the committee; the figure; the figure of others."""


def _of_sweeps() -> list[Row]:
    """Keys and decryptions of three parties on one machine."""
    try:
        table, _ = threat_model_table(summary(load(ROOT / "results")))
    except NoResultsError:
        return []
    rows: list[Row] = []
    wanted = (("keys, s", "s"), ("exact decryption, BFV, s", "s"), ("decryption, CKKS, s", "s"), ("decryption, LWE, online, ms", "ms"))
    seen: set[str] = set()
    for record in table.to_dict("records"):
        committee = " + ".join(f"`{name}`" for name in str(record["committee"]).split(" + "))
        for column, unit in wanted:
            figure = str(record.get(column, "–"))
            if figure == "–" or (column == "keys, s" and record["committee"] in seen):
                continue
            what = column.rpartition(",")[0]
            if column == "keys, s":
                seen.add(str(record["committee"]))
                what, figure = f"keys of {record['keys of']}", f"{figure} {unit}, {record['keys, MB a party']} MB a party"
            elif not str(record["committee"]).startswith(REPLICATED):
                continue
            else:
                figure = f"{figure} {unit}"
            rows.append((what, f"{committee}, {record['parties']}", figure, "1 ms round trip" if "LWE" in column else "–"))
    return rows


def _of_digits() -> list[Row]:
    """The network on encrypted digits: a row for each way, with its accuracy where the table has it; with the model encrypted also on 1,000 digits."""
    return [*_of_ways("bench/cnn"), *_of_ways("bench/cnn_thousand")]


def _of_ways(table: str) -> list[Row]:
    """The rows of one table."""
    measured = [row for row in _rows(table) if row["party"] == "0" and row["status"] == "ok" and not row["link"]]
    published_seconds = {str(row["operation"]): float(str(row["ms"])) / 1e3 for row in published.load("004_table5_cnn") if row["ms"] is not None}
    rows: list[Row] = []
    for name, (_, digits) in WAYS.items():
        found = [row for row in measured if row["name"] == name]
        if not found:
            continue
        protocol, parties, batch = (found[0][column] for column in ("protocol", "parties", "batch"))
        found = [row for row in found if (row["protocol"], row["parties"], row["batch"]) == (protocol, parties, batch)]
        sets = -(-int(batch) // digits)
        times = {
            phase: statistics.median(float(row["seconds"]) for row in found if row["phase"] == phase) / sets
            for phase in ("encryption", "evaluation", "decryption")
        }
        accuracy = found[0].get("accuracy")
        figure = ", ".join(f"{phase} {seconds:.3g} s" for phase, seconds in times.items())
        told = f"; {float(accuracy):.1%} of {int(batch):,} digits" if accuracy else ""
        others = f"GMPFHE, another network with encrypted weights, 484 bits, other hardware, one digit: encryption {published_seconds['Enc']:.3g} s, evaluation {published_seconds['Eval']:.3g} s"
        rows.append((f"{name}, a set of {digits}", f"`{protocol}`, {parties}", figure + told, others))
    return rows


def _of_throughput() -> list[Row]:
    """The fastest exact decryptions a second over the link of paper 000, without and with MACs, beside its figure."""
    rows = [row for row in _rows("throughput") if row["paper_per_s"] and row["variant"] != "mask-open"]
    found: list[Row] = []
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        best = max((row for row in rows if row["protocol"] == protocol), key=lambda row: int(row["per_s"]))
        figure = f"{int(best['per_s']):,} a second ({best['variant']}, batch {int(best['batch']):,}){_loaded(best)}"
        theirs = f"paper 000, other hardware, MACs or not: {int(best['paper_per_s']):,}"
        found.append(("LWE decryptions, exact, online, 1 ms and 1 Gbit/s", f"`{protocol}`, {best['n']}", figure, theirs))
    return found


def _of_benches() -> list[Row]:
    """A row or two of each table, those of the most common committees."""
    rows: list[Row] = []
    for row in _rows("keygen")[:1]:
        rows.append(
            (
                "keys for CKKS, N = 16384, 7 Galois keys",
                f"`{row['protocol']}`, {row['parties']}",
                f"{row['seconds']} s, {row['rss_gb']} GB of memory{_mark(row)}",
                "–",
            )
        )
    rows += _of_digits()
    for row in _rows("decrypt"):
        if (row["parameters"], row["variant"], row["n"]) == ("lwe64-p2", "round_ltz_circuit", "2") and row["protocol"] in (
            ADDITIVE_RING,
            RING_WITH_MACS,
        ):
            cpu = f", CPU of a party {_cpu(row)} µs each" if row.get("online_cpu_us") else ""
            figure = f"{int(row['per_s']):,} a second (batch {int(row['items']):,}{cpu}; no added delay){_mark(row)}"
            rows.append(("LWE decryptions, online", f"`{row['protocol']}`, 2", figure, "–"))
    rows += _of_throughput()
    rows += _of_served()
    for row in _rows("tfhe")[:1]:
        figure = f"{row['seconds']} s, {row['sent_mb']} MB sent and {row['memory_mb']} MB of memory a party{_mark(row)}"
        rows.append(
            (f"keys for TFHE-rs, `{row['parameters']}`", f"`{row['protocol']}`, {row['parties']}", figure, f"TFHE-rs alone: {row['alone_seconds']} s")
        )
    front = {"system": "native", "method": "table", "protocol": ADDITIVE_RING, "n": "2", "batch": "1", "link": "rtt=1"}
    # A block alone uses what an earlier one left over: what is made ahead is that of a batch.
    batches = [row for row in _rows("toprf") if {**front, "batch": str(LEAST_AHEAD)}.items() <= row.items()]
    for row in _rows("toprf"):
        if front.items() <= row.items():
            ahead = "".join(
                f"; {float(b['offline_ms']) / LEAST_AHEAD:.2g} ms, {float(b['offline_mb']) / LEAST_AHEAD:.2g} MB ahead (of {LEAST_AHEAD} blocks, each)"
                for b in batches
            )
            figure = f"{row['ms']} ms, {1e3 * float(row['mb']):.2g} kB a party{ahead}{_mark(row)}"
            paper = next(r for r in published.load("003_table1_oprf") if r["protocol"] == "TOPRF")
            peer = f"paper 003, other hardware, no network: {paper['seconds']} s, {paper['mb']} MB of both servers"
            rows.append(("AES-128 under a shared key, 1 ms round trip", f"`{row['protocol']}`, 2", figure, peer))
    for row in _rows("dishonest"):
        if row["row"] in ("triples_z2_64", "triples_spdz2k"):
            theirs = f"MP-SPDZ: {int(row['mpspdz_per_s']):,}" if row["mpspdz_per_s"] else "–"
            each = float(row["embedded_cpu_us"]) / int(row["parties"])
            figure = f"{int(row['embedded_per_s']):,} a second (batch {int(row['items']):,}, CPU of a party {each:.1f} µs each; no added delay){_mark(row)}"
            rows.append(("triples modulo 2^64", f"`{row['protocol']}`, {row['parties']}", figure, theirs))
    for row in _rows("paper004"):
        if (row["best"], row["quantity"], row.get("link", "none")) == ("yes", "seconds", "none") and row["row"].startswith("key generation"):
            theirs = f"GMPFHE, other hardware, over its LAN: {row['paper']} s" if row["paper"] else "–"
            rows.append((row["row"], f"semi-honest, dishonest majority, {row['parties']}", f"{row['ours']} s, no link{_mark(row)}", theirs))
    ratios = [float(row["ratio"]) for row in _rows("parity") if row["ratio"]]
    if ratios:
        wrong = sum(bool(row["difference"]) for row in _rows("parity"))
        figure = (
            f"median {statistics.median(ratios):.2f} of MP-SPDZ's time, largest {max(ratios):.2f}; {wrong} outputs differ{_mark(_rows('parity')[0])}"
        )
        programs = len({row["program"] for row in _rows("parity")})
        rows.append((f"{programs} programs, on both engines", f"all, {len(ratios)} rows", figure, "the same machine"))
    return rows


def chosen() -> list[str]:
    """The dozen figures of README.md."""
    rows = [*_of_sweeps(), *_of_benches()]
    if not rows:
        return []
    lines = [
        "",
        "Medians; in each row all parties are on one machine of 2 cores, over TLS. Rows are of several states of the code, and of more than one machine: [all tables, plots, conditions and commits](results/README.md).",
        "",
        "| what | committee, parties | KeyQuorum | for comparison, or conditions |",
        "| --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in rows),
        *(
            [
                "",
                f"{MARK} Recorded at a state of the code that is not in this history, or not known: the page of published figures does not count it.",
            ]
            if any(MARK in row[2] for row in rows)
            else []
        ),
    ]
    plot = ROOT / "results" / "report" / f"{next(iter(PLOTS))}.png"
    return [*lines, "", f"![{PLOTS[plot.stem]}]({plot.relative_to(ROOT)})"] if plot.exists() else lines


def main() -> int:
    """Rewrites results/README.md, and the part of README.md between the marks."""
    path = ROOT / "README.md"
    text = path.read_text()
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2] if END in rest else rest
    if not rest:
        print(f"error: README.md has no mark {BEGIN}", file=sys.stderr)
        return 1
    tables = [
        *sweeps(),
        *keygen(),
        *lwe(),
        *without_pool(),
        *counted(),
        *served(),
        *dishonest(),
        *verified(),
        *gmpfhe(),
        *tfhe(),
        *ajax(),
        *toprf(),
        *parity(),
    ]
    if tables:
        (ROOT / "results" / "README.md").write_text("\n".join(["# Measured", *origin(), *provenance(), *tables, ""]))
    path.write_text(f"{head}{BEGIN}\n" + "\n".join(["## Measured", *chosen()]) + f"\n{END}{tail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
