"""A party whose committee has passed its keys on: it answers each request with ``moved``, and with what proves it (:mod:`keyquorum.parties.epochs.moved`). It has no shares, and no session."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import keyquorum
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import CommitteeError, KeyQuorumError, MovedError
from keyquorum.model.plain import Json
from keyquorum.parties.audit.chain import Signer
from keyquorum.parties.audit.log import NAME as AUDIT_LOG
from keyquorum.parties.audit.log import AuditLog
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs.moved import checked_move, proof_of_move
from keyquorum.parties.queue import serve_lock
from keyquorum.plans.pools import Pool
from keyquorum.schemes.key_folder import load_key
from keyquorum.sharing.group import RoundingGroup

from .admission import Receivers
from .kinds.base import Asked, Own, ParsedRequest, ServedKind, Service
from .listener import Listener
from .metrics import Metrics
from .requests import Requests

REQUEST_LIMIT = 1 << 28
"""Bytes of the longest request that is read to its end and answered so."""


class MovedKind(ServedKind):
    """A key that another committee holds. Lines of the audit log have no digest of a request: it may be one that must not be searched for."""

    counter, hashed = "decryptions", False
    limit, unit, batch, variant = REQUEST_LIMIT, 1, 1, None

    def __init__(self, key_id: str, refusal: MovedError) -> None:
        self.key_id, self._refusal, self.audited = key_id, refusal, {"moved": True}

    def read(self, head: Json, body: bytes | bytearray) -> ParsedRequest:
        """Raises MovedError with the proof, whatever the request is."""
        raise self._refusal

    def run(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: Sequence[Asked]) -> NoReturn:
        """Nothing comes so far."""
        raise self._refusal

    def close(self) -> None:
        """There are no shares."""


class MovedParty:
    """Serves ``moved`` until stopped. ``committee``: the whole one. Raises MovedError, ``error``, where nothing proves the move to receivers yet, and CommitteeError where another process serves for the party."""

    def __init__(self, committee: Committee, party: int, service: Service, own: Own, log: Callable[[str], None], error: MovedError) -> None:
        proof, folder = proof_of_move(committee, party), committee.party_folder(party)
        if not proof:
            raise error
        try:
            text = checked_move(committee, {f"party {party}": proof}).text()
        except KeyQuorumError:  # another member may show what is missing
            text = str(error)
        self.service, self._folder, self._log, self._stop = service, folder, log, threading.Event()
        self._lock = serve_lock(committee, party, f"the answer that the keys moved, for key {service.key}")
        if not self._lock.take():
            raise CommitteeError(f"party {party} of {committee.folder} is busy with {self._lock.holder()}: try again when that has ended")
        try:
            self._receivers = Receivers(committee.identity_path(party), folder / "receivers", log)
            kind = MovedKind(load_key(committee.key_folder(party, service.key)).key_id, MovedError(f"moved: {text}: ask that one", proof))
            self.metrics = Metrics(own.ports[1], own.metrics_host, lambda: f"moved: {text}")
            common = {"party": party, "key_id": kind.key_id, **kind.audited}
            self.audit = AuditLog(own.audit or folder / AUDIT_LOG, common, log, Signer(committee.identity_path(party)))
            requests = Requests(service.patience, lambda asked: None)
            self.listener = Listener(self._receivers, own.host, own.ports[0], kind, requests, self.metrics.request, self.audit)
            addresses = {"host": own.host, "port": self.listener.port, "metrics": self.metrics.port}
            write_atomically(folder / "serve.json", json.dumps(addresses).encode() + b"\n")
        except BaseException:
            self._lock.release()
            raise
        log(f"moved: {text}: requests are answered with that ({keyquorum.__version__})")

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
            self._stop.wait()
        finally:
            self.listener.close()
            self.metrics.close()
            self.audit.close()
            with suppress(OSError):
                (self._folder / "serve.json").unlink()
            self._lock.release()


__all__ = ["MovedParty"]
