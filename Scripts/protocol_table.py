"""Writes docs/pages/protocols.md from the engine's table of protocols."""

from __future__ import annotations

import sys
from pathlib import Path

from keyquorum.model.protocols import PROTOCOLS, Protocol

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pages" / "protocols.md"
HEAD = """# Protocols

Made from the engine's table (`Source/mpc/src/table.rs`) by `Scripts/protocol_table.py`. A name is what follows `-E`. n is the number of
parties, t the number of corruptions. Elements: how many a party holds of one shared element. The adversary is that of a single program: a
[plan](decryption.md) is secure against semi-honest parties only, except [some plans](../../SECURITY.md#the-model) of protocols that verify products or have MACs. [Adding a protocol](adding-a-protocol.md) says how this table grows.
"""


def domains(protocol: Protocol) -> str:
    """The domains of an engine, and whether it has packed bits as well."""
    alone = [name for name, has in (("Z_2^k", protocol.ring), ("F_q", protocol.field), ("bits", protocol.bits)) if has]
    return ", ".join(alone) + (" (and bits)" if protocol.binary and not protocol.bits else "")


def bounds(protocol: Protocol) -> str:
    """Numbers of parties, and corruptions."""
    if protocol.parties is not None:
        return f"n = {protocol.parties}, t = {protocol.most_corruptions(protocol.parties)}"
    parties = f"n ≥ {protocol.least_parties}" if protocol.most_parties is None else f"{protocol.least_parties} ≤ n ≤ {protocol.most_parties}"
    sizes = range(protocol.least_parties, (protocol.most_parties or protocol.least_parties + 7) + 1)
    most = [protocol.most_corruptions(n) for n in sizes]
    rules = {"n − 1": [n - 1 for n in sizes], "⌈n/2⌉ − 1": [(n - 1) // 2 for n in sizes], "⌈n/3⌉ − 1": [(n - 1) // 3 for n in sizes]}
    largest = next((text for text, values in rules.items() if values == most), ", ".join(f"{t} of {n}" for t, n in zip(most, sizes, strict=True)))
    return f"{parties}, t {'≤' if protocol.chooses_threshold else '='} {largest}"


def committee(protocol: Protocol) -> str:
    """The protocols that a committee of this protocol runs."""
    if not protocol.committee:
        return "none: single programs"
    own = [name for name in dict.fromkeys((protocol.ring_protocol, protocol.field_protocol, protocol.plain_field_protocol)) if name is not None]
    quorum = f"; t + 1 parties round with {' and '.join(f'`{q}`' for q in protocol.quorum)}" if protocol.quorum else ""
    return ", ".join(f"`{name}`" for name in own) + quorum


def table() -> str:
    """The page."""
    heads = ("protocol", "sharing", "domains", "parties, corruptions", "adversary", "elements", "a committee runs", "MP-SPDZ")
    rows = [heads, ("---",) * len(heads)]
    for p in PROTOCOLS.values():
        n = p.least_parties
        elements = f"{p.parts(n, p.most_corruptions(n))}{' (one is a MAC)' if p.macs else ''}"
        there = f"`{p.mp_spdz.binary}`" if p.mp_spdz is not None else "–"
        rows.append((f"`{p.name}`", p.sharing, domains(p), bounds(p), p.adversary, elements, committee(p), there))
    return "\n".join([HEAD, *(f"| {' | '.join(row)} |" for row in rows), ""])


def main() -> int:
    """Writes the page; with --check reports whether it is up to date."""
    if "--check" not in sys.argv:
        TARGET.write_text(table())
    elif not TARGET.exists() or TARGET.read_text() != table():
        print("error: docs/pages/protocols.md is out of date: run Scripts/protocol_table.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
