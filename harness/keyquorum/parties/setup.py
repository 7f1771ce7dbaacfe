"""Making a committee: addresses, identities, fingerprints."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from random import SystemRandom

from keyquorum import _engine
from keyquorum.model.arguments import checked
from keyquorum.model.committee import NEW_BASE_OT, Committee, Party, check_apart, check_name, place_text
from keyquorum.model.errors import CommitteeError
from keyquorum.model.protocols import COMMITTEES, DEFAULT_COMMITTEE, default_threshold, no_committee

PathLike = str | Path


LOWEST_PORT = 10_000


def _free_ports(count: int) -> list[int]:
    """Ports of this host without a listener; where possible, ports that the system does not give to outgoing connections."""
    outgoing, found = _outgoing_ports(), list[int]()
    ports = range(LOWEST_PORT, 1 << 16)
    for port in chain(_shuffled(port for port in ports if port not in outgoing), _shuffled(port for port in ports if port in outgoing)):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise CommitteeError(f"{count} parties need a free port each on this host: give their addresses with --host")


def _shuffled(ports: Iterable[int]) -> Iterator[int]:
    """In random order. Each is drawn when it is asked for: few are."""
    left, random = list(ports), SystemRandom()
    while left:
        place = random.randrange(len(left))
        left[place], left[-1] = left[-1], left[place]
        yield left.pop()


def _outgoing_ports() -> range:
    """Ports that the system gives to outgoing connections; if it does not publish them, the dynamic ports of RFC 6335."""
    try:
        low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        low, high = 49_152, 65_535
    return range(low, high + 1)


def name_of(folder: Path) -> str:
    """The default name of a committee: the name of its folder, with a dash for each run of characters that a name cannot have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.absolute().name).strip("._-")[:64] or "committee"


@checked
def init(
    folder: PathLike,
    parties: int = 3,
    protocol: str = DEFAULT_COMMITTEE,
    threshold: int | None = None,
    hosts: Sequence[str] = (),
    me: Sequence[int] | None = None,
    name: str | None = None,
    *,
    openings: str = "direct",
    base_ot: str = NEW_BASE_OT,
    lpn: bool = True,
) -> Committee:
    """Makes a committee folder: ``committee.toml`` and an identity for each party of this host.

    ``hosts``: "HOST:PORT" of each party; without, all parties run on this host on free ports. ``me``: the parties whose
    identities are made here (default: all; fewer only with ``hosts``); the fingerprints of the others are added with :func:`trust`.
    ``name``: default :func:`name_of` the folder. ``openings``: one of :data:`keyquorum.model.committee.OPENINGS`; ``star`` is for
    protocols with ``king_openings``. ``base_ot``: one of :data:`keyquorum.model.committee.BASE_OT`. ``lpn``: whether a protocol with MACs may assume
    learning parity with noise. Raises CommitteeError.
    """
    root = Path(folder)
    if (root / "committee.toml").exists():
        raise CommitteeError(f"{root}: there is a committee already: choose another folder")
    if protocol not in COMMITTEES:
        raise CommitteeError(no_committee(protocol))
    if not 1 <= parties <= 64:
        raise CommitteeError(f"{parties} parties: choose 2 to 64")
    if hosts and len(hosts) != parties:
        raise CommitteeError(f"{len(hosts)} hosts for {parties} parties: name each party's HOST:PORT once")
    t = threshold if threshold is not None else default_threshold(protocol, parties)
    mine = list(range(parties)) if me is None else list(dict.fromkeys(me))
    for i in mine:
        if not 0 <= i < parties:
            raise CommitteeError(f"there is no party {i}: choose 0 to {parties - 1}")
    if not hosts and len(mine) < parties:
        raise CommitteeError(
            "--me without --host: the other parties run elsewhere, so give the HOST:PORT of every party with --host; leave out --me if all run here"
        )
    addresses = [address(h) for h in hosts]
    check_apart(addresses)
    addresses = addresses or [("127.0.0.1", port) for port in _free_ports(parties)]
    called = check_name(name, "committee name") if name is not None else name_of(root)
    members = [Party(i, host, port, "") for i, (host, port) in enumerate(addresses)]
    committee = Committee(root, called, protocol, t, tuple(members), openings, base_ot, lpn)
    committee.check()
    root.mkdir(parents=True, exist_ok=True)
    for i in mine:
        party_folder = committee.party_folder(i)
        party_folder.mkdir(mode=0o700, exist_ok=True)
        fingerprint = _engine.make_identity(str(committee.identity_path(i)), f"{committee.name}-party-{i}")
        members[i] = Party(i, members[i].host, members[i].port, fingerprint)
    committee = replace(committee, parties=tuple(members))
    committee.save()
    return committee


@checked
def init_after(
    folder: PathLike,
    old: Committee | PathLike,
    replace: Mapping[int, str] | None = None,
    *,
    parties: int | None = None,
    protocol: str | None = None,
    threshold: int | None = None,
    me: Sequence[int] | None = None,
    name: str | None = None,
) -> Committee:
    """Makes the folder of a committee to which another one's keys are to be passed on: :func:`init` with the protocol, the number of parties and the hosts of ``old``. All identities are new.

    A party keeps the host of its number in ``old``, with a port that is higher by the number of parties there, since both roles run at once; where all parties run on this host, free ports. An address of
    ``old`` is refused.
    ``replace``: "HOST:PORT" by number of party, for new hosts and further parties. ``me``: default: the parties that are on this host in ``old``; of the new ones those at a loopback address, if all of ``old`` is here.
    Raises CommitteeError."""
    before = old if isinstance(old, Committee) else Committee.load(Path(old))
    chosen = before.protocol if protocol is None else protocol
    if threshold is None and protocol is None and parties is None:
        threshold = before.threshold
    size = parties if parties is not None else max([before.size, *(number + 1 for number in replace or {})])
    given = {number: address(place) for number, place in (replace or {}).items()}
    here = before.local_parties()
    local = len(here) == before.size and all(_is_loopback(p.host) for p in before.parties)
    taken = {(p.host, p.port): p.index for p in before.parties}
    apart = {p.port for p in before.parties}
    free = (port for port in (_free_ports(size + before.size) if local else ()) if port not in apart)
    places, mine = list[tuple[str, int]](), list[int]()
    for number in range(size):
        if number in given:
            places.append(given[number])
        elif local:
            places.append(("127.0.0.1", next(free)))
        elif number < before.size:
            places.append(_next_port(before, number))
        else:
            raise CommitteeError(f"party {number} is not in {before.folder}: name its address with --replace {number}=HOST:PORT")
        if (local and _is_loopback(places[-1][0])) or (number in here and number not in given):
            mine.append(number)
    for number, place in enumerate(places):
        if place in taken:
            raise CommitteeError(
                f"party {number} has the address {place_text(*place)} of party {taken[place]} of {before.folder}, and both run at once: name another port with --replace {number}={place_text(*place).rpartition(':')[0]}:PORT"
            )
    if unknown := sorted(set(given) - set(range(size))):
        raise CommitteeError(f"there is no party {unknown[0]} among {size}: leave out its address, or choose more parties with --parties")
    if me is None and not mine:
        raise CommitteeError(f"no party of {before.folder} is on this host: name those of {folder} that are, with --me")
    return init(folder, size, chosen, threshold, [place_text(*place) for place in places], mine if me is None else me, name)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _next_port(committee: Committee, number: int) -> tuple[str, int]:
    """Another address at the host of a party, the same whoever computes it."""
    party = committee.parties[number]
    if party.port + committee.size > 65535:
        raise CommitteeError(
            f"party {number} has port {party.port}, and no higher one is left: name its address with --replace {number}={party.host}:PORT"
        )
    return party.host, party.port + committee.size


@checked
def trust(folder: PathLike, party: int, fingerprint: str) -> Committee:
    """Enters the fingerprint of a party that runs elsewhere."""
    committee = Committee.load(Path(folder))
    if not 0 <= party < committee.size:
        raise CommitteeError(f"there is no party {party}: choose 0 to {committee.size - 1}")
    if party in committee.local_parties():
        raise CommitteeError(f"party {party} is on this host: its fingerprint comes from its own identity")
    members = list(committee.parties)
    old = members[party]
    members[party] = Party(party, old.host, old.port, fingerprint.strip().lower().replace(":", ""))
    changed = replace(committee, parties=tuple(members))
    changed.check()
    changed.save()
    return changed


@checked
def fingerprint(folder: PathLike, party: int | None = None) -> str:
    """The fingerprint of a party of this host, 64 hexadecimal digits, from its identity. ``party``: which one, if the host has several."""
    committee = Committee.load(Path(folder))
    here = committee.local_parties()
    if party is None and len(here) != 1:
        names = ", ".join(map(str, here))
        raise CommitteeError(f"{folder}: this host has {f'parties {names}: name one of them' if here else 'no party: ask on the host of the party'}")
    if party is not None and party not in here:
        raise CommitteeError(f"{folder}: party {party} is not on this host: ask on its host")
    return _engine.identity_fingerprint(str(committee.identity_path(here[0] if party is None else party)))


@checked
def move(folder: PathLike, party: int, place: str) -> Committee:
    """Enters another address, HOST:PORT, of a party. Parties do not compare addresses, so keys and pools stay valid."""
    committee = Committee.load(Path(folder))
    if not 0 <= party < committee.size:
        raise CommitteeError(f"there is no party {party}: choose 0 to {committee.size - 1}")
    members = list(committee.parties)
    host, port = address(place)
    members[party] = replace(members[party], host=host, port=port)
    changed = replace(committee, parties=tuple(members))
    changed.check()
    changed.save()
    return changed


@checked
def address(text: str) -> tuple[str, int]:
    """HOST:PORT."""
    host, separator, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not separator or not port.isdecimal() or not _is_host(host):
        raise CommitteeError(f"{text!r} is no address: write HOST:PORT, the host as a name, an IPv4 address, or an IPv6 address in brackets")
    return host, int(port)


def _is_host(host: str) -> bool:
    """Whether a text can be the name of a host, or is an address. A name that nobody resolves is noticed when it is used."""
    try:
        return bool(ip_address(host))
    except ValueError:
        return re.fullmatch(r"\w([\w.-]*\w)?\.?", host) is not None
