"""serve, receiver."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, ParameterError
from keyquorum.model.subset import ANY, members_of, numbers_text
from keyquorum.serve.client import make_receiver
from keyquorum.serve.kinds import Own, Service
from keyquorum.serve.live.options import LiveOwn
from keyquorum.serve.signals import DRAIN_SECONDS
from keyquorum.terminal.output import choice, console, emit

from . import completion
from .options import Folder, Parties, chosen
from .pools import Levels, Rounding, Width

LONGEST_DRAIN = 3600.0
Patience = Annotated[float, typer.Option(help="Seconds that a request may wait.")]
Host = Annotated[str, typer.Option(help="Address to listen on for receivers.")]
Port = Annotated[int, typer.Option(help="Port for receivers; 0: any free one.")]
MetricsHost = Annotated[
    str, typer.Option(help="Address of the metrics and of /ready; 0.0.0.0: of every network of this host. Anybody there may read them.")
]
MetricsPort = Annotated[int, typer.Option(help="Port of the metrics (Prometheus); 0: any free one.")]
Drain = Annotated[float, typer.Option(help="After SIGTERM or Ctrl-C: most seconds until the party ends, to finish the batch that runs.")]
AcceptAssumed = Annotated[
    bool,
    typer.Option(
        "--accept-assumed", help="Serve a key of which nothing shows that its shares are right (correct: assumed), though parties may be malicious."
    ),
]
LiveHost = Annotated[str, typer.Option(help="--parties any: address where this party answers the others, whether it is there.")]
LivePort = Annotated[int, typer.Option(help="--parties any: its port; 0: any free one.")]
LiveAt = Annotated[
    list[str] | None,
    typer.Option(help="--parties any: HOST:PORT where each party answers, in order; repeat (default: those of this host).", show_default=False),
]
Chunk = Annotated[
    int, typer.Option(help="Items that are stored at a time; 0: as many as are made in a second. Requests are served while they are made.")
]
AuditLog = Annotated[
    Path | None,
    typer.Option(help="File that gets a line of JSON for each request, before it is answered (default: party-<i>/audit.jsonl).", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("serve")(serve)
    app.command("receiver")(receiver)


def receiver(folder: Folder, name: Annotated[str, typer.Argument(help="Name of the receiver.", show_default=False)]) -> None:
    """Make the identity of a receiver, which may ask the parties of this host for decryptions.

    Parties on other hosts need the certificate in their folder party-<i>/receivers. Admit only who may decrypt everything.
    """
    identity, certificate = make_receiver(api.as_committee(folder), name)
    emit({"name": name, "identity": identity, "certificate": certificate})
    console.print(f"{identity}: for keyquorum decrypt --committee; {certificate}: for the folders receivers of parties elsewhere")


def serve(
    folder: Folder,
    index: Annotated[int, typer.Argument(help="Which party this is.", show_default=False)],
    key: Annotated[str, typer.Argument(help="Name of a key of LWE, TFHE, BFV or BGV.", show_default=False, autocompletion=completion.keys)],
    rounding: Rounding = "round_ltz_circuit",
    width: Width = 8,
    levels: Levels = 2,
    keep: Annotated[int, typer.Option(help="Items up to which the pool is filled when there is nothing else to do.")] = 0,
    chunk: Chunk = 0,
    batch: Annotated[
        int, typer.Option(help="Most ciphertexts in a batch; 0: 1024 of LWE or TFHE, 4 of BFV or BGV. A request of more is a batch by itself.")
    ] = 0,
    parties: Parties = None,
    patience: Patience = 30.0,
    host: Host = "127.0.0.1",
    port: Port = 0,
    metrics_port: MetricsPort = 0,
    audit_log: AuditLog = None,
    drain: Drain = DRAIN_SECONDS,
    metrics_host: MetricsHost = "127.0.0.1",
    accept_assumed: AcceptAssumed = False,
    live_host: LiveHost = "127.0.0.1",
    live_port: LivePort = 0,
    live_at: LiveAt = None,
) -> None:
    """Run one party of a served committee: shares and pool at hand, connected to the others, until interrupted.

    All parties give the same options, except hosts, ports and audit log. With --parties any every party of the committee runs, any t + 1 of them that are live decrypt, and one that dies is replaced (shamir, rep-field). A party writes its address to party-<i>/serve.json. The audit log has the
    receiver of each request (the certificate's fingerprint), the ciphertext (its SHA-256), and the result; without it nothing is answered. Ctrl-C and SIGTERM end the party, after the batch that runs; SIGHUP reloads receivers and limits (party-<i>/limits.json).
    """
    whole = api.as_committee(folder)
    check_party(whole, index, port, metrics_port)
    if parties == ANY:
        check_port("--live-port", live_port)
        live = LiveOwn(live_host, live_port, [api.address(text) for text in live_at or []])
        own = Own(host, (port, metrics_port), audit_log, drain, metrics_host, accept_assumed)
        run_party(whole, index, Service(key, rounding, width, levels, keep, chunk, batch, patience), own, live=live)
        return
    if live_at or live_port or live_host != "127.0.0.1":
        raise ParameterError(f"--live-host, --live-port and --live-at are for --parties {ANY}: leave them out")
    committee = serving(whole, parties)
    run_party(
        committee,
        committee.index_of(index),
        Service(key, rounding, width, levels, keep, chunk, batch, patience),
        Own(host, (port, metrics_port), audit_log, drain, metrics_host, accept_assumed),
    )


def serving(whole: Committee, parties: str | None) -> Committee:
    """The parties that serve together: those of ``--parties``, or all."""
    committee = members_of(whole, chosen(parties))
    if committee is not whole:
        numbers = numbers_text([committee.number_of(index) for index in range(committee.size)])
        console.print(f"errors of connections among parties {numbers} number them from 0", markup=False)
    return committee


def check_port(option: str, value: int) -> None:
    """Refuses a port that is none."""
    if not 0 <= value < 1 << 16:
        raise ParameterError(f"{option} {value}: choose a port from 1 to 65535, or 0 for any free one")


def check_party(committee: Committee, index: int, port: int, metrics_port: int) -> None:
    """Refuses ports that are none, and a party that is none."""
    for option, value in (("--port", port), ("--metrics-port", metrics_port)):
        check_port(option, value)
    if not 0 <= index < committee.size:
        raise CommitteeError(f"there is no party {index} in {committee.folder}: choose 0 to {committee.size - 1}")


def run_party(
    committee: Committee, index: int, service: Service, own: Own, prepare: Callable[[], None] = lambda: None, live: LiveOwn | None = None
) -> None:
    """Serves until interrupted, with a line on standard output for every event. ``prepare``: see :class:`.Daemon`. ``live``: serves with any parties that are live."""
    from keyquorum.parties.audit.log import timestamp
    from keyquorum.serve.daemon import run_daemon
    from keyquorum.serve.daemon import serve as run_service
    from keyquorum.serve.events import EventLog
    from keyquorum.serve.live.daemon import live_served

    number = committee.number_of(index)

    def line(event: str) -> str:
        now = timestamp()
        return json.dumps({"time": now, "party": number, "event": event}) if choice.as_json else f"{now} party {number}: {event}"

    if not 0 < own.drain <= LONGEST_DRAIN:
        raise ParameterError(f"--drain {own.drain:g}: choose more than 0 and at most {LONGEST_DRAIN:g} seconds")
    events = EventLog(sys.stdout, line)
    silent = console.quiet and not choice.as_json
    log = (lambda event: None) if silent else events.write
    try:
        if live is None:
            run_service(committee, index, service, own, log, prepare)
        else:
            run_daemon(lambda: live_served(committee, index, service, own, log, live), own, log)
    finally:
        events.close()
