"""How shares are bound to the run that made them, so that parties with shares of different runs see it before they use them. Each kind of origin is one class.

====================  ====================  ==============================  =======================================
step                  unstated              name                            key test
====================  ====================  ==============================  =======================================
protocol              semi-honest           that verifies products          with MACs
stored with shares    nothing               the name of the run, public     share of the MAC key; name of the run and
                                                                            elements that test the key, secret
before shares are     nothing               all parties compare the name,   the engine's key is that of the shares; all
used or changed                             once an engine                  test theirs, once a session
after a change        nothing               the name of this run            origin and key of the first write stay
a program ends        shares are written    written under a new name, if    shares are written
                                            they were changed
in the next epoch     nothing               a hash of name and epoch        shares with MACs stay in their epoch
====================  ====================  ==============================  =======================================

The descriptor of a protocol says which it is (:attr:`.Protocol.origin`), and its engine refuses another one (``Source/protocols/src/stored.rs``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import Engine
from keyquorum.model.errors import ParameterError, ProgramError
from keyquorum.model.protocols import named

from .origin import NO_ORIGIN, Origin

Words = NDArray[np.uint64]


class StatedOrigins:
    """What a party's shares in memory state of the runs that made them.

    ``mac_key``: this party's share of the MAC key. ``origins``: one from each session that made some of the shares; a name alone is one for all shares. ``compared``: the
    engine with whose parties the name was compared. ``changed``: whether shares were changed since the name was given to them."""

    def __init__(self) -> None:
        self.mac_key: Words | None = None
        self.origins: list[Origin] = []
        self.compared: Engine | None = None
        self.changed = False

    def __bytes__(self) -> bytes:
        """What is stored with the shares. Raises ProgramError for shares with MACs of several sessions."""
        if self.mac_key is None:
            return b"".join(map(bytes, self.origins))
        if len(self.origins) > 1:
            raise ProgramError(f"shares of {len(self.origins)} sessions are stored together: store what one session made")
        return self.mac_key.astype("<u8").tobytes() + b"".join(map(bytes, self.origins))

    def take_over(self, other: StatedOrigins) -> None:
        """Takes what ``other`` states, which states nothing afterwards."""
        self.mac_key, self.origins, self.changed = other.mac_key, other.origins, other.changed
        other.mac_key, other.origins = None, []

    def wipe(self) -> None:
        """Overwrites everything with zeros: with MACs it is secret."""
        key, self.mac_key = self.mac_key, None
        origins, self.origins = self.origins, []
        self.compared = None
        for secret in (key, *(origin.words for origin in origins)):
            if secret is not None and secret.flags.writeable:
                secret.fill(0)


@dataclass(frozen=True)
class Binding:
    """What binds shares of a protocol to the run that made them. ``protocol``: its name. ``shares_exist``: whether any shares were ever stored. A kind of origin defines what it does
    at a step; at the others nothing is done."""

    protocol: str
    stored: ClassVar[bool] = False
    """Whether anything is stored with shares, behind them or in a file beside them."""
    may_lack: ClassVar[bool] = False
    """Whether it may be missing in files of earlier builds, of which the engine then uses no shares."""
    marks_files: ClassVar[bool] = False
    """Whether a run marks a share file before it uses the shares as masks, which serve once (docs/pages/security/stored-masks.md)."""
    cure: ClassVar[str] = ""
    """What to do where the file beside the shares of a key is missing."""

    def complete(self, beside: int) -> bool:
        """Whether so many bytes are what this build stores with shares: some, or none."""
        return (beside > 0) == self.stored

    def fits(self, beside: int) -> bool:
        """Whether a file may have so many bytes beside its shares."""
        return self.complete(beside) or self.may_lack

    def parse(self, stated: StatedOrigins, data: bytes, element_bytes: int) -> None:
        """Reads the bytes of :class:`StatedOrigins`. Raises ProgramError if their length does not fit."""

    def first_written(self, stated: StatedOrigins, engine: Engine) -> None:
        """A run writes the first shares."""

    def written(self, stated: StatedOrigins, engine: Engine) -> None:
        """A run has written shares, after :meth:`check` where there were others before."""

    def begin_run(self, stated: StatedOrigins, engine: Engine, shares_exist: bool) -> None:
        """A program begins, which may use shares that its parties read from files. Raises as :meth:`check`."""

    def check(self, stated: StatedOrigins, engine: Engine, shares_exist: bool) -> None:
        """Before an engine uses or changes shares: they are of one run at all parties. Raises StoreError if they are not, ProgramError if they do not state their run."""

    def end_run(self, stated: StatedOrigins, engine: Engine, shares_exist: bool) -> bool:
        """A program has come to its end. Whether its parties write their share files."""
        return shares_exist

    def check_joint(self, stated: StatedOrigins, name: bytes | None, shares_exist: bool) -> None:
        """Before shares of joint integers are stored, whose draw has a ``name`` where products are verified. Raises ProgramError for those that do not belong here."""
        if name is not None:
            raise self._foreign_joint(name)

    def joined(self, stated: StatedOrigins, name: bytes | None, start: int) -> None:
        """Shares of joint integers are stored from position ``start`` on."""

    def derive(self, stated: StatedOrigins, purpose: str, origins: Sequence[Origin]) -> None:
        """Shares were computed locally from shares of ``origins``. Raises ParameterError if these are none and must not be."""

    def public(self, data: bytes) -> bytes:
        """What other parties can state of the bytes that are stored with shares; nothing where these are secret, or none. Raises ProgramError."""
        return b""

    def carried(self, data: bytes, purpose: str) -> bytes:
        """What is stored with the shares of the next epoch, which every party computed locally from those with ``data``. Raises ProgramError for shares that stay in their epoch."""
        raise ProgramError(f"shares of {self.protocol} stay in the epoch in which they were made: make new ones")

    def _foreign_joint(self, name: bytes | None) -> ProgramError:
        return ProgramError(
            f"joint integers {'without a' if name is None else 'with the'} name of their draw are not stored with shares of {self.protocol}"
        )


class Unstated(Binding):
    """Nothing: the parties follow the protocol."""

    def carried(self, data: bytes, purpose: str) -> bytes:
        """Nothing."""
        return b""


class RunName(Binding):
    """The name of the run that stored the shares last, or changed them, which all its parties tossed."""

    stored = may_lack = marks_files = True
    cure = "restore it from a backup, with the shares of the same time"

    def parse(self, stated: StatedOrigins, data: bytes, element_bytes: int) -> None:
        """The name alone."""
        stated.origins = [Origin(data)]

    def first_written(self, stated: StatedOrigins, engine: Engine) -> None:
        """As any shares."""
        self.written(stated, engine)

    def written(self, stated: StatedOrigins, engine: Engine) -> None:
        """Shares that were changed have the name of the run that changed them, which had compared the old name."""
        stated.origins, stated.compared, stated.changed = [Origin(engine.origin())], engine, True

    def begin_run(self, stated: StatedOrigins, engine: Engine, shares_exist: bool) -> None:
        """Also a program that uses no shares compares: the others may use theirs."""
        self.check(stated, engine, shares_exist)

    def check(self, stated: StatedOrigins, engine: Engine, shares_exist: bool) -> None:
        """All parties compare the name; those without shares state that they have none. Once an engine."""
        if stated.compared is engine:
            return
        self._require_name(stated, shares_exist)
        engine.check_origin(stated.origins[0].words if shares_exist else np.empty(0, dtype=np.uint8))
        stated.compared = engine

    def end_run(self, stated: StatedOrigins, engine: Engine, shares_exist: bool) -> bool:
        """Shares that were changed get a new name for their file, which is tossed by all parties. The others have the name of their file, and nothing is sent."""
        if not stated.changed:
            return False
        stated.origins, stated.compared, stated.changed = [Origin(engine.renew_origin())], engine, False
        return True

    def check_joint(self, stated: StatedOrigins, name: bytes | None, shares_exist: bool) -> None:
        """Both must have a name."""
        if name is None:
            raise self._foreign_joint(name)
        self._require_name(stated, shares_exist)

    def joined(self, stated: StatedOrigins, name: bytes | None, start: int) -> None:
        """The names of all draws and runs whose shares are here become one name, a hash, which the next engine compares."""
        assert name is not None, "check_joint comes before"
        names = b"".join(map(bytes, stated.origins)) + name
        joined = hashlib.sha256(b"keyquorum joint integers at" + start.to_bytes(8, "little") + names).digest()
        stated.origins, stated.compared, stated.changed = [Origin(joined[: len(name)])], None, True

    def derive(self, stated: StatedOrigins, purpose: str, origins: Sequence[Origin]) -> None:
        """A name of their own (:meth:`.Origin.derived`), which all parties compare before a program uses the shares."""
        if not origins:
            raise ParameterError(f"shares of {self.protocol} without the name of a run are not used: make the key again")
        stated.origins = [Origin.derived(purpose, origins)]

    def public(self, data: bytes) -> bytes:
        """The name."""
        return bytes(Origin(data))

    def carried(self, data: bytes, purpose: str) -> bytes:
        """A hash of name and purpose, the same at all parties."""
        return bytes(Origin.derived(purpose, [Origin(data)]))

    def _require_name(self, stated: StatedOrigins, shares_exist: bool) -> None:
        if shares_exist and not stated.origins:
            raise ProgramError(NO_ORIGIN)


class KeyTest(Binding):
    """This party's share of the MAC key, the name of the run, and elements with MACs by which a later session tests that its key is the same."""

    stored = True
    cure = "restore it from a backup; LWE keys of earlier builds do not have it and cannot be used, make new ones"

    def parse(self, stated: StatedOrigins, data: bytes, element_bytes: int) -> None:
        """The share of the key is an element; shares of MP-SPDZ end with it."""
        if len(data) < element_bytes:
            raise ProgramError(f"the MAC key's share has {len(data)} bytes, it needs {element_bytes}: restore the file from a backup")
        stated.mac_key = np.frombuffer(data[:element_bytes], dtype="<u8").astype(np.uint64)
        stated.origins = [Origin(data[element_bytes:])] if len(data) > element_bytes else []

    def first_written(self, stated: StatedOrigins, engine: Engine) -> None:
        """The shares are under the engine's key from then on."""
        stated.mac_key, stated.origins = _mac_key(engine), [Origin(engine.origin())]

    def check(self, stated: StatedOrigins, engine: Engine, shares_exist: bool) -> None:
        """This party's key is that of the shares, and all parties test the keys of all origins."""
        if stated.mac_key is not None and not np.array_equal(stated.mac_key, _mac_key(engine)):
            raise ProgramError(
                f"the share file's MACs are under another key than this run's {engine.protocol} engine has: "
                "use the shares where they were made, by the committee and the backend that made them"
            )
        if not stated.origins:
            raise ProgramError(NO_ORIGIN)
        for origin in stated.origins:
            engine.check_origin(origin.words)

    def check_joint(self, stated: StatedOrigins, name: bytes | None, shares_exist: bool) -> None:
        """Joint integers have no MACs."""
        raise self._foreign_joint(name)


def _mac_key(engine: Engine) -> Words:
    """An engine's share of the MAC key. Raises ProgramError if it has none."""
    key: bytes | None = engine.mac_key
    if key is None:
        raise ProgramError(f"the engine of {engine.protocol} has no MAC key: please report it")
    return np.frombuffer(key, dtype="<u8").astype(np.uint64)


KINDS: dict[str, type[Binding]] = {"unstated": Unstated, "name": RunName, "key test": KeyTest}
"""By what protocols say (:attr:`.Protocol.origin`)."""


def binding_of(protocol: str) -> Binding:
    """What binds shares of a protocol. Raises ParameterError for an unknown name."""
    return KINDS[named(protocol).origin](protocol)


__all__ = ["KINDS", "Binding", "KeyTest", "RunName", "StatedOrigins", "Unstated", "binding_of"]
