"""The table of threat models: the measured cost of the main jobs for each committee."""

from __future__ import annotations

import pandas as pd

from keyquorum.model.protocols import COMMITTEES

from . import style
from .data import select

FAMILIES = {p.name: p.field_protocol for p in COMMITTEES.values() if p.field_protocol != p.name}
"""Committees with two names: protocols modulo 2^k, with their partner over prime fields."""
JOBS: tuple[tuple[str, str, str, str, str, float, str], ...] = (
    ("keys", "keygen", "", "seconds", "s", 1.0, ""),
    ("keys", "keygen", "", "sent_per_party", "MB a party", 1e-6, ""),
    ("exact decryption, BFV", "decrypt", "bfv round_ltz_circuit", "seconds", "s", 1.0, ""),
    ("decryption, CKKS", "decrypt", "ckks", "seconds", "s", 1.0, ""),
    ("decryption, LWE, online", "decrypt", "lwe round_ltz", "online_seconds", "ms", 1e3, "paper000-1ms"),
)
"""Column, suite, prefix of the name, figure, unit, scale, link."""

METHODS = {"lwe round_ltz_table": "tables", "lwe round_ltz_circuit": "circuit"}
"""Exact methods by which LWE ciphertexts are decrypted."""
MALICIOUS = "malicious"
"""What committees with MACs and those that verify products hold against. The note says in what."""


def threat_model_table(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """A row for each committee and parameter set of its keys, and a note on the columns. Figures of three parties are preferred."""
    rows: list[dict[str, object]] = []
    used: set[str] = set()
    commits: set[str] = set()
    embedded = select(table, backend="embedded", batch=1)
    embedded = embedded.assign(protocol=embedded["protocol"].replace(FAMILIES))
    plans = embedded[embedded["suite"].isin(["keygen", "decrypt"])]
    for protocol in style.protocols(plans["protocol"]):
        mine = plans[plans["protocol"] == protocol]
        keys = select(mine, suite="keygen", link="")
        for parameters in list(dict.fromkeys(keys["parameters"])) or [""]:
            of_set = keys[keys["parameters"] == parameters]
            parties = fewest_parties(of_set if len(of_set) else mine)
            first = parameters == next(iter(keys["parameters"]), "")
            row: dict[str, object] = {"committee": committee_name(protocol), "parties": parties, "tolerates": _tolerated(protocol, parties)}
            row["adversary"] = COMMITTEES[protocol].adversary
            row["keys of"] = parameters or "–"
            for column, suite, name, figure, unit, scale, link in JOBS:
                found = select(mine, suite=suite, link=link, parties=parties)
                found = found[found["name"].str.startswith(name)]
                found = select(found, parameters=parameters) if suite == "keygen" else found if first else found.head(0)
                label = f"{column}, {unit}"
                row[label] = "–"
                row |= {"LWE by": "–"} if link else {}
                if len(found):
                    best = found.loc[found[figure].idxmin()]
                    row[label] = _figure(float(best[figure]) * scale)
                    row |= {"LWE by": f"{METHODS[str(best['name'])]}, {best['parameters']}"} if link else {}
                    commits |= {str(best["commit"])} - {"nan"}
                    used |= {f"{column}: {best['name']}, {best['parameters']}"} if suite == "decrypt" else set()
            rows.append(row)
    made = pd.DataFrame(rows)
    empty = [column for column in made.columns if len(made) and (made[column] == "–").all()]
    note = (
        "Medians of the slowest party, all parties on one machine over TLS, no added delay but for LWE: there 1 ms round trip, fastest exact method."
    )
    note += f" {'; '.join(sorted(used))}." if used else ""
    if len(commits) > 1:
        note += f" Measured at {len(commits)} states of the code ({', '.join(sorted(commits))}), so ratios between rows are of several builds."
    if len(made) and (made["adversary"] == MALICIOUS).any():
        note += f" {MALICIOUS}: static, with abort, the jobs of these columns; exact decryption only under keys whose plain modulus fits one ring (docs/pages/security/decryption.md)."
    return made.drop(columns=empty), note


def fewest_parties(rows: pd.DataFrame) -> int:
    """Three where there are figures of three parties, else the smallest number."""
    counts = set(rows["parties"].astype(int))
    return 3 if 3 in counts else min(counts)


def committee_name(protocol: str) -> str:
    """Its protocols over prime fields and modulo 2^k."""
    other = {second: first for first, second in FAMILIES.items()}.get(protocol)
    return f"{protocol} + {other}" if other else protocol


def _tolerated(protocol: str, parties: int) -> str:
    return f"{COMMITTEES[protocol].most_corruptions(parties)} of {parties}"


def _figure(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
