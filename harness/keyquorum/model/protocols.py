"""The table of protocols with their capabilities, read from the engine.

The engine defines it (``Source/mpc/src/table.rs``, one descriptor beside each implementation). This module is the only one of
``model`` that imports the engine: the table has one definition, and the engine's module imports nothing of the harness. All other code asks
:class:`Protocol` for a capability and compares no names, so a protocol that is added to the engine's table needs no change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from keyquorum import _engine
from keyquorum.model.plain import Json

from .errors import ParameterError


@dataclass(frozen=True)
class MpSpdz:
    """The same protocol in MP-SPDZ.

    binary: its executable. field: whether its arithmetic is over prime fields, otherwise modulo 2^k. encrypt: whether links are in the clear
    unless ``-e`` is given. shares: the sharing's name in the header of a share file, ``{k}`` for the bits of a ring. extra_bits: bits of an
    element of a share beyond those of the domain.
    """

    binary: str
    field: bool
    encrypt: bool
    shares: str
    extra_bits: int

    @property
    def kind(self) -> str:
        """``ring`` or ``field``."""
        return "field" if self.field else "ring"

    @property
    def long_name(self) -> str:
        """The name of the executable without the ending that all executables share."""
        return self.binary.removesuffix(".x").removesuffix("-party")


@dataclass(frozen=True)
class Protocol:
    """A protocol: its name after ``-E``, and its capabilities.

    name, summary: for lists. sharing: ``replicated``, ``Shamir``, ``additive`` or ``none`` (clear text). bits, ring, field: whether an engine can
    be opened on packed bits alone, modulo 2^k, over prime fields. wide_fields: whether primes may have 65 to 127 bits. binary: whether programs compute on packed bits beside these. least_parties,
    most_parties: numbers of parties (None: no bound). chooses_threshold: whether a threshold below the largest can be chosen.
    dishonest_majority: whether half of the parties or more may be corrupt. adversary: of single programs, ``semi-honest``, ``malicious`` or
    ``none``. macs: whether shares carry MACs. splits: whether shares modulo 2^k split into their summands. edabits: whether random numbers come
    with their bits. oblivious_transfer: whether products come from it. king_openings: whether values can be opened through one party.
    committee: whether a committee of this name can be made. private_numbers: where those of its keys come from, a name in
    :data:`keyquorum.sharing.numbers.KINDS`. ring_protocol (None: there is none), field_protocol, plain_field_protocol (without
    MACs): what a committee of this protocol runs modulo 2^k and over prime fields. quorum: the protocols, modulo 2^k and over prime fields, of
    t + 1 parties that go on alone with additive shares; None where all parties go on. mp_spdz: None if MP-SPDZ does not have it here.
    """

    name: str
    summary: str
    sharing: str
    bits: bool
    ring: bool
    field: bool
    wide_fields: bool
    binary: bool
    least_parties: int
    most_parties: int | None
    chooses_threshold: bool
    dishonest_majority: bool
    adversary: str
    macs: bool
    splits: bool
    edabits: bool
    oblivious_transfer: bool
    king_openings: bool
    committee: bool
    private_numbers: str
    ring_protocol: str | None
    field_protocol: str
    plain_field_protocol: str
    quorum: tuple[str, str] | None
    mp_spdz: MpSpdz | None

    @property
    def emulated(self) -> bool:
        """Whether it computes on clear text: one process stands for all parties."""
        return self.sharing == "none"

    @property
    def verifies_products(self) -> bool:
        """Whether products are verified together: against malicious parties, without MACs."""
        return self.adversary == "malicious" and not self.macs

    @property
    def origin(self) -> str:
        """What is stored with shares to show the run that made them, ``unstated``, ``name`` or ``key test``: a name in
        :data:`keyquorum.dsl.files.binding.KINDS`. The engine refuses a protocol that stores another one."""
        return "key test" if self.macs else "name" if self.verifies_products else "unstated"

    @property
    def parties(self) -> int | None:
        """The number of parties, if there is only one."""
        return self.most_parties if self.most_parties == self.least_parties else None

    def most_corruptions(self, parties: int) -> int:
        """The largest threshold among so many parties, the default. Raises ParameterError."""
        return self.threshold(parties, None)

    def threshold(self, parties: int, asked: int | None) -> int:
        """The threshold among so many parties: the one asked for, or the default. Raises ParameterError for what the protocol does not have."""
        try:
            return _engine.protocol_threshold(self.name, parties, asked)
        except (_engine.UsageError, OverflowError) as error:
            raise ParameterError(str(error)) from None

    def held(self, party: int, parties: int, threshold: int) -> tuple[int, ...]:
        """Numbers of the summands that a party holds of a shared element, in the order of the parts of its share; MACs are none. A public value is
        added to summand 0. For Shamir's sharing: the number of the party's point."""
        return tuple(_engine.protocol_held(self.name, party, parties, threshold))

    def values(self, parties: int, threshold: int) -> int:
        """Elements that a party holds of a shared element, MACs not counted."""
        return len(self.held(0, parties, threshold))

    def parts(self, parties: int, threshold: int) -> int:
        """Elements that a party holds of a shared element."""
        return self.values(parties, threshold) * (2 if self.macs else 1)

    def summands(self, parties: int) -> int:
        """Summands whose sum is a shared element; 0 if the sharing is no sum."""
        return _engine.protocol_summands(self.name, parties)


def _protocol(row: Json) -> Protocol:
    other = row.pop("mp_spdz")
    assert row.keys() == {f.name for f in fields(Protocol)} - {"mp_spdz"}, "the engine has another table: build it again"
    return Protocol(**row, mp_spdz=None if other is None else MpSpdz(**other))


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType({p.name: p for p in map(_protocol, _engine.protocol_table())})
"""All protocols by name, in the order in which lists show them."""
COMMITTEES: Mapping[str, Protocol] = MappingProxyType({p.name: p for p in PROTOCOLS.values() if p.committee})
"""Protocols of which a committee can be made. With MACs, and where products are verified, every single program is secure against malicious parties. Of plans this
holds for those that declare it (:attr:`.Committee.verifies_products`). With MACs it holds for keys of SEAL and LWE, decryption of BFV, BGV, CKKS and LWE to a party, served decryption of BFV, BGV and LWE, and AES for
receivers. In others nothing proves that what a party gives to two programs is the same."""
DEFAULT_PROTOCOL = next(iter(PROTOCOLS))
"""Default protocol of single programs: the first of the table."""
DEFAULT_COMMITTEE = PROTOCOLS[DEFAULT_PROTOCOL].field_protocol
"""Default protocol of committees: the partner of the first over prime fields."""
CLEAR_TEXT = next(p.name for p in PROTOCOLS.values() if p.emulated)
"""The protocol of the reference in clear text, with which every protocol must agree."""
ANY_SIZE_COMMITTEE = next(p.name for p in COMMITTEES.values() if p.most_parties is None)
"""The first protocol whose committees can have any size."""


def named(name: str) -> Protocol:
    """The protocol of a name. Raises ParameterError, which lists all."""
    if name not in PROTOCOLS:
        raise ParameterError(f"unknown protocol {name!r}: choose one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def names(protocols: Mapping[str, Protocol] = PROTOCOLS, last: str = ", ", **capabilities: object) -> str:
    """Names of the protocols with these capabilities, for messages. ``last``: the separator before the last name."""
    found = [p.name for p in protocols.values() if all(getattr(p, name) == value for name, value in capabilities.items())]
    return last.join(part for part in (", ".join(found[:-1]), *found[-1:]) if part)


def no_committee(name: str) -> str:
    """Why a committee cannot be made of a protocol of this name, for an error."""
    return f"unknown protocol {name!r}: choose one of {names(COMMITTEES)}"


def default_threshold(protocol: str, parties: int) -> int:
    """The most corruptions that a protocol tolerates among ``parties`` parties. If it does not allow this number, the nearest one that it allows
    counts."""
    found = named(protocol)
    most = parties if found.most_parties is None else found.most_parties
    return found.most_corruptions(max(found.least_parties, min(parties, most)))
