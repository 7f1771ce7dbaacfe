"""Evaluation of a pseudorandom function by a served committee: receivers learn its values, and the parties learn neither inputs nor values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyQuorumError, PartyError
from keyquorum.model.plain import Json
from keyquorum.model.subset import Subset
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pools import Pool
from keyquorum.schemes.key_folder import check_made_by
from keyquorum.schemes.prf.evaluate import evaluate_by_tables
from keyquorum.schemes.prf.evaluations import Evaluations
from keyquorum.schemes.prf.function import BLOCK, MOST_INPUTS, OUTPUTS, Bytes, held_by
from keyquorum.schemes.prf.functions import inner_of, points_of_blocks
from keyquorum.schemes.prf.key import load_prf_key, sharing_of
from keyquorum.schemes.prf.policy import POLICY, read_policy
from keyquorum.schemes.prf.tables import AT_ONCE, aes_tables
from keyquorum.sharing.group import RoundingGroup

from .base import Asked, ParsedRequest, ServedKind, Service, check_named, check_prf_key

PIECE, MOST_PIECES = 1 << 24, 128
"""Bytes of a message with what a party has counted, as another one learns it, and most messages: some 200 bytes for each request of the last hour, of which there may be ten million."""
_DIGEST, _LENGTH = hashlib.sha256().digest_size, 8
"""Bytes of a digest of what is counted, and of its length, little endian."""
COPY = 32
"""Bytes of the digest of a copy of a receiver's summands."""


@dataclass(frozen=True)
class Points:
    """Shares of the points of a request. ``shares``: [summands held, inputs, 16]; ``blocks``: for each input. Where shares have MACs: the masked points, and ``use``, the id of the
    request for their masks; such a request has no points, and None."""

    shares: Bytes
    blocks: int
    use: str | None = None

    @property
    def inputs(self) -> int:
        """Evaluations, as the policy counts them."""
        return len(self.shares[0])


class ToprfKind(ServedKind):
    """One key of a pseudorandom function, with the policy and the count of this party. Items are blocks of 16 bytes.

    Replicated summands come from the receiver in two copies. Where copies differ, products have errors that depend on single summands of the key, and
    a receiver could learn the key from values that these errors change. So the two holders of a summand compare digests of their copies before
    anything is computed, each pair over its own link: a third party could search the receiver's input with the digest. For the same reason the audit
    log has no digest of what a party got.

    By one-time tables, a batch claims an item of the pool for each block, durably, before it is counted and before anything is opened. A batch that fails
    has used its items, whatever came of it.
    """

    counter = "evaluations"
    hashed = False
    differs: ClassVar[str] = "other shares of the inputs: send both holders of a summand the same"
    """What another party got, where copies differ."""
    fill_command = "keyquorum toprf fill"

    def __init__(self, committee: Committee, party: int, service: Service) -> None:
        folder = committee.key_folder(party, service.key)
        self._info = load_prf_key(folder)
        check_made_by(committee.whole, self._info, folder)
        self._inner = inner_of(self._info.parameters)
        self._inner.check(committee, service.method)
        self._held = held_by(committee, party)
        others = {other: held_by(committee, other) for other in range(committee.size) if other != party}
        self._copies = {other: sorted(set(held) & set(self._held)) for other, held in others.items() if set(held) & set(self._held)}
        """Of each party that holds some of our summands: their numbers."""
        self.sharing, self.key_id = sharing_of(committee, self._info.parameters), self._info.key_id
        self.variant = aes_tables(committee) if service.method == "table" else None
        self._committee = committee
        self.unit, self.batch = 1, 2 * MOST_INPUTS
        self.limit = len(self._held) * MOST_INPUTS * BLOCK
        self.audited, self.compared = {"method": service.method}, {}
        self._evaluations = Evaluations(folder, read_policy(folder / POLICY, self.key_id))
        (self._key,) = self.load(committee, folder, self._info, party)

    def read(self, head: Json, body: bytes | bytearray) -> ParsedRequest:
        """See :class:`.ServedKind`. The head has the key's id, and ``output``, the bytes of a value. The digest is of what the parties may compare:
        the number of inputs and the length of values."""
        check_prf_key(head, self.key_id)
        check_named(self.named, head)
        output = head.get("output")
        if type(output) is not int or output not in OUTPUTS:
            raise CiphertextError(f"values of {output} bytes: ask for {' or '.join(map(str, OUTPUTS))}")
        inputs, rest = divmod(len(body), len(self._held) * BLOCK)
        if rest or not 1 <= inputs <= MOST_INPUTS:
            raise CiphertextError(
                f"{len(body)} bytes are no shares of inputs: {len(self._held) * BLOCK} bytes for each of 1 to {MOST_INPUTS} inputs; "
                "run the same version everywhere"
            )
        shares = np.frombuffer(bytes(body), np.uint8).reshape(len(self._held), inputs, BLOCK)
        self._inner.check_points(shares)
        digest = hashlib.sha256(f"{self.key_id} {inputs} inputs, values of {output} bytes".encode()).hexdigest()
        return ParsedRequest(Points(shares, OUTPUTS[output]), inputs * OUTPUTS[output], digest)

    def admit(self, asked: Asked) -> None:
        """See :class:`.ServedKind`. The policy, from what is counted so far."""
        self._evaluations.require()
        refusal = self._evaluations.refusal(*counted(asked))
        if refusal is not None:
            raise refusal

    def begin(self, context: PartyContext) -> None:
        """See :class:`.ServedKind`. Members of a subset learn what was counted while one of them was absent. One exchange, or two if they know different things."""
        if not isinstance(self._committee, Subset):
            return
        session, mine = context.session, self._evaluations.known()
        said = session.all_gather(self._evaluations.known_digest() + len(mine).to_bytes(_LENGTH, "little"))
        if len({each[:_DIGEST] for each in said}) == 1:
            return
        pieces = [-(-int.from_bytes(each[_DIGEST:], "little") // PIECE) for each in said]
        others = [other for other in range(session.parties) if other != session.party]
        for other in others:
            if len(said[other]) != _DIGEST + _LENGTH or pieces[other] > MOST_PIECES:
                raise self._no_count(other)
        theirs = {other: bytearray() for other in others}
        for number in range(max(pieces)):
            for other in others if number < pieces[session.party] else ():
                session.send(other, mine[PIECE * number : PIECE * (number + 1)])
            for other in others:
                theirs[other] += session.recv(other, PIECE) if number < pieces[other] else b""
        for other, data in theirs.items():
            try:
                self._evaluations.learn(bytes(data))
            except ValueError:
                raise self._no_count(other) from None

    def _no_count(self, other: int) -> PartyError:
        return PartyError(f"party {self._committee.number_of(other)} sent no count of evaluations: run the same version everywhere")

    def vouch(self, context: PartyContext, have: Sequence[Asked | None]) -> list[KeyQuorumError | None]:
        """See :class:`.ServedKind`. One exchange between parties that hold the same summands; then the policy, request by request."""
        refused = self._compared(context, have)
        self._refuse_by_policy(have, refused)
        return refused

    def _refuse_by_policy(self, have: Sequence[Asked | None], refused: list[KeyQuorumError | None]) -> None:
        """Adds the refusals of the policy, request by request."""
        taken: list[tuple[str, int]] = []
        for i, asked in enumerate(have):
            if asked is None or refused[i] is not None:
                continue
            receiver, name, count = counted(asked)
            try:
                self._evaluations.require()
                refused[i] = self._evaluations.refusal(receiver, name, count, taken)
            except KeyQuorumError as error:
                refused[i] = error
            if refused[i] is None:
                taken.append((receiver, count))

    def _compared(self, context: PartyContext, have: Sequence[Asked | None]) -> list[KeyQuorumError | None]:
        """An error for each request whose copies of summands differ. A request that one of the two has not got is refused by that one."""
        session, refused = context.session, list[KeyQuorumError | None]([None] * len(have))
        mine = {other: b"".join(self._digest(asked, numbers) for asked in have) for other, numbers in self._copies.items()}
        for other, digests in mine.items():
            session.send(other, digests)
        for other, digests in mine.items():
            theirs = session.recv(other, COPY * len(have))
            if len(theirs) != len(digests):
                raise PartyError(
                    f"party {self._committee.number_of(other)} sent {len(theirs)} bytes for {len(have)} requests: run the same version everywhere"
                )
            for i, asked in enumerate(have):
                said = theirs[COPY * i : COPY * (i + 1)]
                if asked is not None and any(said) and said != digests[COPY * i : COPY * (i + 1)]:
                    refused[i] = CiphertextError(f"party {self._committee.number_of(other)} got {self.differs}")
        return refused

    def _digest(self, asked: Asked | None, numbers: Sequence[int]) -> bytes:
        """Of our copies of some summands of a request; zeros for a request that we have not got."""
        if asked is None:
            return bytes(COPY)
        key, parsed = asked
        shares = points_of(parsed).shares[[self._held.index(number) for number in numbers]]
        return hashlib.sha256(f"keyquorum toprf copy {self.key_id} {key} ".encode() + shares.tobytes()).digest()

    def run(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: Sequence[Asked]) -> list[bytes]:
        """See :class:`.ServedKind`. Counts the evaluations, on the disk, before anything is computed; raises PolicyError if it cannot, and PoolTooSmall
        before anything is claimed or counted."""
        points = [points_of(parsed) for _, parsed in batch]
        joined, blocks = np.concatenate([p.shares for p in points], axis=1), [p.blocks for p in points for _ in range(p.inputs)]
        purpose = hashlib.sha256(f"keyquorum toprf {self.key_id} {' '.join(key + parsed.digest for key, parsed in batch)}".encode()).digest()
        if self.variant is None:
            self._count(batch)
            with context.phase("online"):
                values = self._inner.evaluated(context, self._key, joined, blocks, purpose)
        else:
            assert pool is not None
            values = self._by_tables(context, pool, batch, points_of_blocks(context.committee, context.party, joined, blocks), purpose)
        reached("toprf/evaluated")
        answers, at = [], 0
        for _, parsed in batch:
            answers.append(np.ascontiguousarray(values[:, at : at + parsed.count]).tobytes())
            at += parsed.count
        values.fill(0)
        return answers

    def _by_tables(self, context: PartyContext, pool: Pool, batch: Sequence[Asked], points: Bytes, purpose: bytes) -> Bytes:
        """The blocks of a batch, some at a time, with items of the pool that are all claimed before the first is used."""
        values = np.zeros_like(points)
        with pool.claimed(points.shape[1], f"evaluate {purpose.hex()}") as items:
            reached("toprf/claimed")
            self._count(batch)
            with context.phase("online"):
                for first in range(0, points.shape[1], AT_ONCE):
                    part = points[:, first : first + AT_ONCE]
                    tables, bound = items.take(part.shape[1])
                    reached("toprf/taken")
                    values[:, first : first + AT_ONCE] = evaluate_by_tables(context, self._key, part, tables, bound)
                    reached("toprf/part")
        reached("toprf/removed")
        return values

    def _count(self, batch: Sequence[Asked]) -> None:
        self._evaluations.claim([counted(asked) for asked in batch])
        reached("toprf/counted")

    def left(self) -> int | None:
        """See :class:`.ServedKind`."""
        total = self._evaluations.policy.total
        return None if total is None else max(0, total - self._evaluations.total)

    def close(self) -> None:
        """See :class:`.ServedKind`."""
        self._key.wipe()


def points_of(parsed: ParsedRequest) -> Points:
    """The content of a request."""
    assert isinstance(parsed.content, Points)
    return parsed.content


def counted(asked: Asked) -> tuple[str, str, int]:
    """Receiver, id, and evaluations of a request."""
    key, parsed = asked
    receiver, _, name = key.partition("/")
    return receiver, name, points_of(parsed).inputs
