"""A party whose committee has passed its keys on: it answers each request with ``moved``, and with what proves it (:mod:`keyquorum.parties.epochs.moved`). It serves no shares, and has no session. A job that ends the change, and erases
the shares, gets its lock, as from a daemon."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import keyquorum
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import KeyQuorumError, MovedError
from keyquorum.model.plain import Json
from keyquorum.parties.audit.chain import Signer
from keyquorum.parties.audit.log import NAME as AUDIT_LOG
from keyquorum.parties.audit.log import AuditLog
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs.moved import checked_move, proof_of_move
from keyquorum.plans.pools import Pool
from keyquorum.schemes.key_folder import load_key
from keyquorum.sharing.group import RoundingGroup

from .admission import Receivers
from .kinds.base import Asked, Own, ParsedRequest, ServedKind, Service
from .lending import Lending
from .listener import Listener
from .metrics import Metrics
from .requests import Requests

PAUSE = 0.25
"""Seconds between two looks at the lock."""
Say = Callable[[str], None]
REQUEST_LIMIT = 1 << 28
"""Bytes of the longest request that is read to its end and answered so."""


class MovedKind(ServedKind):
    """A key that another committee holds. Lines of the audit log have no digest of a request: it may be one that must not be searched for."""

    counter, hashed = "decryptions", False
    limit, unit, batch, variant = REQUEST_LIMIT, 1, 1, None

    def __init__(self, key_id: str, refusal: KeyQuorumError) -> None:
        self.key_id, self.refusal, self.audited = key_id, refusal, {"moved": True}

    def read(self, head: Json, body: bytes | bytearray) -> ParsedRequest:
        """Raises the refusal, whatever the request is."""
        raise self.refusal

    def run(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: Sequence[Asked]) -> NoReturn:
        """Nothing comes so far."""
        raise self.refusal

    def close(self) -> None:
        """There are no shares."""


class MovedParty:
    """Serves ``moved`` until stopped. ``committee``: the whole one. Raises MovedError, ``error``, where nothing proves the move to receivers yet, and CommitteeError where another process serves for the party."""

    def __init__(self, committee: Committee, party: int, service: Service, own: Own, log: Say, error: MovedError) -> None:
        self._committee, self._party, self._error, folder = committee, party, error, committee.party_folder(party)
        refusal = self._found(error)
        self.service, self._folder, self._log, self._stop = service, folder, log, threading.Event()
        self._lending = Lending(committee, party, service.key, log)
        self._lending.begin()
        try:
            self._receivers = Receivers(committee.identity_path(party), folder / "receivers", log)
            self._kind = kind = MovedKind(load_key(committee.key_folder(party, service.key)).key_id, refusal)
            self.metrics = Metrics(own.ports[1], own.metrics_host, lambda: str(self._kind.refusal))
            common = {"party": party, "key_id": kind.key_id, **kind.audited}
            self.audit = AuditLog(own.audit or folder / AUDIT_LOG, common, log, Signer(committee.identity_path(party)))
            requests = Requests(service.patience, lambda asked: None)
            self.listener = Listener(self._receivers, own.host, own.ports[0], kind, requests, self.metrics.request, self.audit)
            addresses = {"host": own.host, "port": self.listener.port, "metrics": self.metrics.port, **self._addresses()}
            write_atomically(folder / "serve.json", json.dumps(addresses).encode() + b"\n")
        except BaseException:
            self._lending.release()
            raise
        log(f"{refusal}: requests are answered with that ({keyquorum.__version__})")

    def _found(self, error: MovedError) -> KeyQuorumError:
        """What requests are answered with. Raises ``error`` where nothing proves the move yet."""
        proof = proof_of_move(self._committee, self._party)
        if not proof:
            raise error
        try:
            text = checked_move(self._committee, {f"party {self._party}": proof}).text()
        except KeyQuorumError:  # another member may show what is missing
            text = str(error)
        return MovedError(f"moved: {text}: ask that one", proof)

    def _addresses(self) -> Json:
        """What ``serve.json`` has besides."""
        return {}

    def _step(self) -> None:
        """Learns what proves the move, if it did not know it."""
        if not isinstance(self._kind.refusal, MovedError):
            self._kind.refusal = self._found(self._error)
            if isinstance(self._kind.refusal, MovedError):
                self._log(str(self._kind.refusal))

    def stop(self) -> None:
        """Ends it. From any thread."""
        self._stop.set()

    def reload(self) -> None:
        """Reads the receivers again. From any thread."""
        try:
            self._receivers.reload()
        except (KeyQuorumError, OSError) as error:
            self._log(f"not reloaded: {error}")

    def run(self) -> None:
        """Answers until stopped."""
        try:
            while not self._stop.wait(PAUSE):
                with suppress(OSError):  # the lock is taken again when the disk takes it
                    self._lending.lend(self._stop, lambda: None, lambda: None)
                    self._step()
        finally:
            self.listener.close()
            self.metrics.close()
            self.audit.close()
            with suppress(OSError):
                (self._folder / "serve.json").unlink()
            self._lending.release()


__all__ = ["MovedParty"]
