"""The parties' side: keys, policies, what is counted, and one-time material."""

from __future__ import annotations

import hashlib
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass

from keyquorum import api
from keyquorum.api import KeygenResult, PathLike
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, ParameterError
from keyquorum.model.plain import is_hex
from keyquorum.parties.context import Progress
from keyquorum.schemes.prf.evaluate import check_evaluation
from keyquorum.schemes.prf.evaluations import JOURNAL, read_journal
from keyquorum.schemes.prf.key import AES, load_prf_key
from keyquorum.schemes.prf.policy import HOUR, POLICY, EvaluationPolicy, read_policy, write_policy
from keyquorum.serve.wire import certificate_of


def toprf_keygen(committee: Committee | PathLike, key: str, progress: Progress | None = None) -> KeygenResult:
    """Makes a key of AES-128 among all parties of this host, each a process of its own, over TLS. Nothing of it is ever opened. It is
    :func:`keyquorum.keygen` with the parameter set ``prf-aes128``."""
    return api.keygen(committee, key, AES.name, progress=progress)


def toprf_fill(committee: Committee | PathLike, items: int, method: str = "circuit") -> str:
    """Makes one-time material for ``items`` blocks, where the method takes some. Returns a line that says what was made. The circuit takes none from a
    pool: ANDs of replicated shares need none, and additive shares get triples while the parties evaluate. Raises ParameterError."""
    committee = api.as_committee(committee)
    if items < 1:
        raise ParameterError(f"{items} items: choose at least 1")
    check_evaluation(committee, method)
    if committee.rounds_with_triples:
        return f"method {method}: nothing to make ahead, the triples of {committee.protocol} are made while the parties evaluate"
    return f"method {method}: nothing to make ahead, ANDs of {committee.protocol} need no one-time material"


def set_policy(
    committee: Committee | PathLike, party: int, key: str, rate: int, total: int | None = None, receivers: Sequence[str] | None = None
) -> EvaluationPolicy:
    """Writes the policy of a party of this host for a key; :class:`.EvaluationPolicy` has the limits. ``receivers``: names of receivers that the
    party admits, or SHA-256 of their certificates (None: all that it admits). A running party reads it at its next start."""
    committee = api.as_committee(committee)
    folder = committee.key_folder(party, key)
    info = load_prf_key(folder)
    chosen = None if receivers is None else tuple(_fingerprint(committee, party, receiver) for receiver in receivers)
    policy = EvaluationPolicy(info.key_id, rate, total, chosen)
    write_policy(folder, policy)
    return policy


def _fingerprint(committee: Committee, party: int, receiver: str) -> str:
    if is_hex(receiver, 64):
        return receiver
    path = committee.party_folder(party) / "receivers" / f"receiver-{receiver}.crt"
    if not path.is_file():
        raise CommitteeError(f"{path}: party {party} admits no receiver of this name: keyquorum receiver makes one, or give its SHA-256")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate_of(path))).hexdigest()


@dataclass(frozen=True)
class EvaluationStatus:
    """What a party of this host has counted. ``last_hour``: evaluations by receiver (SHA-256 of its certificate)."""

    party: int
    policy: EvaluationPolicy | None
    total: int
    last_hour: dict[str, int]


def toprf_status(committee: Committee | PathLike, key: str) -> list[EvaluationStatus]:
    """Policy and count of each party of this host. Raises KeyFileError for damaged files."""
    committee, found, now = api.as_committee(committee), [], time.time()
    for party in committee.local_parties():
        folder = committee.key_folder(party, key)
        info = load_prf_key(folder)
        counts = read_journal(folder / JOURNAL, info.key_id)
        policy = read_policy(folder / POLICY, info.key_id) if (folder / POLICY).exists() else None
        recent = {line.receiver: counts.used(line.receiver, now) for line in counts.lines if line.time > now - HOUR}
        found.append(EvaluationStatus(party, policy, counts.total, recent))
    if not found:
        raise CommitteeError(f"{committee.folder}: no party of the committee is on this host")
    return found


__all__ = ["EvaluationStatus", "set_policy", "toprf_fill", "toprf_keygen", "toprf_status"]
