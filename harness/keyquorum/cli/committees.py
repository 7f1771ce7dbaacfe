"""init, trust, doctor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.model.committee import BASE_OT, NEW_BASE_OT, OPENINGS, Committee
from keyquorum.model.errors import CommitteeError, PartyError
from keyquorum.model.protocols import COMMITTEES, DEFAULT_COMMITTEE, names
from keyquorum.parties import mac_key
from keyquorum.parties.doctor import examine
from keyquorum.plans.epochs.orders import examine_epochs
from keyquorum.plans.examine import examine_keys
from keyquorum.serve.examine import examine_serving
from keyquorum.terminal.output import console, emit, printed

from . import completion
from .options import Folder

_BASE_OT = "; ".join(f"{name}: {what}" for name, what in BASE_OT.items())
_SAID = "; ".join(f"{name}: {what}" for name, what in OPENINGS.items())


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("init")(init)
    app.command("trust")(trust)
    app.command("doctor")(doctor)


def init(
    folder: Folder,
    parties: Annotated[
        int | None, typer.Option("--parties", "-N", help="Number of parties; default: 3, or that of --after.", show_default=False)
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            "-E",
            help=f"One of {names(COMMITTEES)}; default: {DEFAULT_COMMITTEE}, or that of --after.",
            autocompletion=completion.protocols,
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        int | None, typer.Option("--threshold", "-T", help=f"Corruptions tolerated ({names(COMMITTEES, chooses_threshold=True)}).")
    ] = None,
    host: Annotated[list[str] | None, typer.Option(help="HOST:PORT of each party in turn; default: all on this host.")] = None,
    me: Annotated[list[int] | None, typer.Option(help="Parties of this host, when the others run elsewhere.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the committee; the same at all parties.")] = None,
    openings: Annotated[
        str, typer.Option(help=f"How {names(COMMITTEES, king_openings=True, last=' and ')} open additive shares; {_SAID}; the same at all parties.")
    ] = "direct",
    base_ot: Annotated[
        str, typer.Option(help=f"How oblivious transfer begins, in protocols that have it; {_BASE_OT}; the same at all parties.")
    ] = NEW_BASE_OT,
    lpn: Annotated[
        bool,
        typer.Option(
            help=f"Of {names(COMMITTEES, macs=True, last=' and ')}: whether learning parity with noise is assumed; more bytes without it; the same at all parties."
        ),
    ] = True,
    after: Annotated[
        Path | None,
        typer.Option(
            help="A committee whose keys are to be passed on to this one with keyquorum reshare: its protocol, size and hosts are taken over.",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        list[str] | None,
        typer.Option(help="With --after: I=HOST:PORT, another address for party I, or that of a further party; repeat.", show_default=False),
    ] = None,
) -> None:
    """Make a committee: a folder with the parties file and an identity (key, certificate) for each party of this host.

    On several hosts: run init on each with the same --host list, --name and its own --me, exchange the fingerprints that it
    prints over a channel you trust, and enter them with keyquorum trust.
    A committee of semi, semi2k, mascot or spdz2k needs all parties for ever: give it a standby (keyquorum reshare --keep-old), or backups.
    """
    if after is None and replace:
        raise CommitteeError("--replace is for --after: name the addresses of all parties with --host")
    if after is not None and (host or openings != "direct" or base_ot != NEW_BASE_OT or not lpn):
        raise CommitteeError(
            "--after takes hosts over, and makes a committee with the usual openings and base OT: leave out --host, --openings, --base-ot and --no-lpn"
        )
    if after is not None:
        committee = api.init_after(
            folder, after, _replaced(replace or ()), parties=parties, protocol=protocol, threshold=threshold, me=me or None, name=name
        )
    else:
        size, chosen = 3 if parties is None else parties, protocol or DEFAULT_COMMITTEE
        committee = api.init(folder, size, chosen, threshold, host or (), me or None, name, openings=openings, base_ot=base_ot, lpn=lpn)
    console.print(f"committee {committee.name}: {committee.size} parties, {committee.protocol} ({committee.capabilities.summary})", markup=False)
    if mac_key.kept(committee, 0) is not None:
        console.print(mac_key.WARNING, markup=False)
    if committee.openings != "direct":
        console.print(f"  openings: {committee.openings} ({OPENINGS[committee.openings]})")
    if not committee.lpn:
        console.print("  without learning parity with noise")
    for party in committee.parties:
        console.print(f"  party {party.index}  {party.place}  {party.fingerprint or '(fingerprint missing)'}", markup=False)
    digest, before = (None, None) if after is None else (_say_digest(committee), _say_digest(api.as_committee(after)))
    emit({
        "folder": folder, "name": committee.name, "protocol": committee.protocol, "threshold": committee.threshold, "openings": committee.openings, "base_ot": committee.base_ot,
        "lpn": committee.lpn,
        "parties": [{"index": p.index, "host": p.host, "port": p.port, "fingerprint": p.fingerprint or None} for p in committee.parties],
        "here": committee.local_parties(), **({} if after is None else {"digest": digest, "digest_after": before}),
    })  # fmt: skip


def _say_digest(committee: Committee) -> str | None:
    """Prints the digest of a committee, which members of others compare before they pass their keys on to it; None while fingerprints are missing."""
    if not all(party.fingerprint for party in committee.parties):
        return None
    console.print(f"digest of committee {committee.name}: {committee.digest.hex()}", markup=False)
    return committee.digest.hex()


def _replaced(texts: Sequence[str]) -> dict[int, str]:
    found = dict[int, str]()
    for text in texts:
        number, separator, place = text.partition("=")
        if not separator or not number.isdecimal() or int(number) in found:
            raise CommitteeError(f"--replace {text}: write I=HOST:PORT, once for each party")
        found[int(number)] = place
    return found


def trust(
    folder: Folder,
    party: Annotated[int, typer.Argument(help="The party.", show_default=False)],
    fingerprint: Annotated[str, typer.Argument(help="Its fingerprint, 64 hexadecimal digits.", show_default=False)],
) -> None:
    """Enter the fingerprint of a party that runs on another host."""
    committee = api.trust(folder, party, fingerprint)
    console.print(f"party {party} is known by {fingerprint}")
    emit({"party": party, "fingerprint": fingerprint, "digest": _say_digest(committee)})


def doctor(
    folder: Folder,
    party: Annotated[list[int] | None, typer.Option(help="Look from these parties (default: all of this host).")] = None,
    seconds: Annotated[float, typer.Option(help="How long to listen and to try.")] = 10.0,
) -> None:
    """Look at a committee from each party: identities, keys, shares, pools, what serving needs, reachability, fingerprints, versions, clocks; say what to fix.

    Run it at the same time on all hosts: each party listens while it tries the others.
    """
    committee = Committee.load(folder)
    findings: list[dict[str, object]] = []
    parties = list(dict.fromkeys(party)) if party else committee.local_parties()
    for index in parties:
        if not 0 <= index < committee.size:
            raise CommitteeError(f"there is no party {index} in {folder}: choose 0 to {committee.size - 1}")
    if not parties:
        raise CommitteeError(f"{folder}: no party of the committee is on this host: run keyquorum init with --me")
    for line in (
        *examine_keys(committee, parties),
        *examine_epochs(committee, parties),
        *examine_serving(committee, parties),
        *examine(committee, parties, seconds),
    ):
        printed.print(f"{'ok ' if line.ok else 'FIX'}  {line.text}", markup=False)
        findings.append({"ok": line.ok, "text": line.text})
    problems = sum(not found["ok"] for found in findings)
    emit({"folder": folder, "parties": parties, "ok": not problems, "findings": findings})
    if problems:
        raise PartyError(f"{problems} thing(s) to fix in {folder}, see above")
    console.print("everything is in order")
