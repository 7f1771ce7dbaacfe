"""The interface between a served party and what it serves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeGuard

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import CiphertextError, EpochError, KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.model.subset import Subset, numbers_text
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pools import Pool
from keyquorum.schemes.holding import epoch_of, holding_of
from keyquorum.schemes.key_folder import load_shares
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.subset_keys import shares_of
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import PreprocessingKind

from ..signals import DRAIN_SECONDS


@dataclass(frozen=True)
class Service:
    """Options of a served committee, the same at all parties. ``keep``: the pool is filled below so many items, by ``chunk``, when no waiting request
    can be served (0: by as many as are made in a second). ``batch``: most items in a batch (0: the bound of the key's kind). ``patience``: seconds that a request may wait. ``rounding``,
    ``width``, ``levels``: of decryptions. ``method``: of evaluations."""

    key: str
    rounding: str = "round_ltz_circuit"
    width: int = 8
    levels: int = 2
    keep: int = 0
    chunk: int = 0
    batch: int = 0
    patience: float = 30.0
    method: str = "circuit"


@dataclass(frozen=True)
class Own:
    """Options that each party chooses for itself. ``ports``: for receivers and for metrics (0: any free one; metrics None: no endpoint), at ``host`` and
    ``metrics_host``. ``audit``: the file of the audit log (default: audit.jsonl in the party's folder). ``drain``: most seconds from a signal to the end.
    ``accept_assumed``: serve a key that nothing shows to be right, though the committee's parties may be malicious (:func:`.require_correct`)."""

    host: str = "127.0.0.1"
    ports: tuple[int, int | None] = (0, 0)
    audit: Path | None = None
    drain: float = DRAIN_SECONDS
    metrics_host: str = "127.0.0.1"
    accept_assumed: bool = False


DEFAULTS = Own()


@dataclass(frozen=True)
class ParsedRequest:
    """The content of a request. ``count``: items that it takes, of the pool where there is one. ``digest``: equal at all parties that got the same
    request."""

    content: object
    count: int
    digest: str


Asked = tuple[str, ParsedRequest]
"""A request with its key: the receiver's fingerprint, a slash, and the id that the receiver chose."""


class ServedKind(ABC):
    """One key of one party, and what is done under it. ``key_id``: of the key; ``limit``: bytes of the longest request; ``unit``: items that the
    smallest request takes; ``batch``: most smallest requests in a batch, unless the service has its own bound; ``sharing``: protocol and domain of
    the shares of the key; ``variant``: preprocessing in a pool (None: there is none); ``audited``: fields of every line of the audit log.

    ``counter``: the metric that counts items; ``fill_command``: the command that fills the pool; ``hashed``: whether lines of the audit log have the SHA-256 of a request's body, which must not help to
    find secrets in it."""

    named: list[int] | str | None = None
    """What requests name under ``parties`` (:func:`named_in_requests`)."""
    compared: Json
    """What the parties compare besides, when they connect."""
    epoch = ""
    """Name of the party's epoch when the shares were loaded."""
    folder: Path
    """Of the key."""
    counter: ClassVar[str]
    hashed: ClassVar[bool] = True
    fill_command: ClassVar[str] = "keyquorum pool fill"
    key_id: str
    limit: int
    unit: int
    batch: int
    sharing: Sharing
    variant: PreprocessingKind | None
    audited: Json

    def load(self, committee: Committee, folder: Path, info: KeyInfo, party: int, count: int | None = None) -> list[ShareVector]:
        """This party's shares of the secret vectors (the first ``count``) of a key. Lines of the audit log name the epoch. For a subset: requests name its parties, these lines too, and the parties
        compare the sharing of these very shares."""
        self.named = named_in_requests(committee)
        self.folder, self.epoch, held = folder, epoch_of(folder).name, holding_of(folder, info)
        if held.epoch:
            self.compared = {**self.compared, "epoch": held.epoch, "epoch name": held.sharing}
        if self.epoch:
            self.audited = {**self.audited, "epoch": self.epoch}
        if not isinstance(committee, Subset):
            return load_shares(folder, info, party, count)
        sharing, shares = shares_of(committee).load(folder, info, committee, party, count)
        self.audited, self.compared = {**self.audited, "parties": self.named}, {**self.compared, "sharing": sharing}
        return shares

    def require_epoch(self) -> None:
        """Raises EpochError if the party is not in the epoch of the loaded shares any more."""
        here = epoch_of(self.folder).name
        if here != self.epoch:
            loaded, now = (f"epoch {name}" if name else "the epoch of key generation" for name in (self.epoch, here))
            raise EpochError(f"{self.folder}: the loaded shares are of {loaded}, and the party is in {now}: start keyquorum serve again")

    @abstractmethod
    def read(self, head: Json, body: bytes | bytearray) -> ParsedRequest:
        """A checked request. Raises CiphertextError, or another KeyQuorumError."""

    def admit(self, asked: Asked) -> None:  # noqa: B027
        """Refuses a request when it comes, from what is known by then. The default refuses none. Raises KeyQuorumError."""

    def begin(self, context: PartyContext) -> None:  # noqa: B027
        """Is called at the beginning of a session, at every party. The default does nothing."""

    def vouch(self, context: PartyContext, have: Sequence[Asked | None]) -> list[KeyQuorumError | None]:
        """Why each request of a proposed batch is refused by this party, if it has it and refuses it. Every member calls this, with None for requests
        that it has not got. The default refuses none, without a message."""
        return [None] * len(have)

    @abstractmethod
    def run(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: Sequence[Asked]) -> list[bytes]:
        """This party's answers to the requests that all members have and admit; every member calls this."""

    def items(self, parsed: ParsedRequest) -> int:
        """What an answered request adds to the metric. The default: what it takes."""
        return parsed.count

    def left(self) -> int | None:
        """Evaluations that the key may still serve, by this party's policy. The default: no policy bounds them."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Wipes this party's shares of the key."""


def named_in_requests(committee: Committee) -> list[int] | None:
    """What requests name under ``parties``: the numbers of a subset; nothing for the whole committee."""
    return list(committee.numbers) if isinstance(committee, Subset) else None


def is_request_id(name: object) -> TypeGuard[str]:
    """Whether this can be the id of a request: 8 to 64 ASCII letters and digits."""
    return isinstance(name, str) and 8 <= len(name) <= 64 and name.isalnum() and name.isascii()


def check_prf_key(head: Json, key_id: str) -> None:
    """Refuses a request for another key of a PRF than the one that is served. Raises CiphertextError."""
    if head.get("key") == key_id:
        return
    served = f"the PRF key {key_id}, which is served here"
    if not isinstance(head.get("key"), str):
        raise CiphertextError(
            f"the request names no key, as those for decryptions of LWE and TFHE do, and not {served}: ask the committee that serves its key"
        )
    raise CiphertextError(f"the request is for another key ({head['key']}), not {served}")


def check_named(named: list[int] | str | None, head: Json) -> None:
    """Refuses a request for other parties than those that serve together. Raises CiphertextError."""
    if head.get("parties") == named:
        return
    if named is None:
        here = "all parties together, leave out --parties"
    elif isinstance(named, str):
        here = f"any parties that are live, ask with --parties {named}"
    else:
        here = f"parties {numbers_text(named)}, name them with --parties"
    raise CiphertextError(f"the request is for other parties: here serve {here}")
