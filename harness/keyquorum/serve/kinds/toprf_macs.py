"""Evaluation of AES by parties whose shares have MACs, for receivers who check what they get (:mod:`keyquorum.schemes.prf.client_masks`)."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from keyquorum._engine import Session
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pools import Pool
from keyquorum.schemes.prf.client_masks import MOST_MASKED, KeptMasks, evaluate_masked, make_masks
from keyquorum.schemes.prf.function import BLOCK, OUTPUTS
from keyquorum.sharing.group import RoundingGroup

from .base import Asked, ParsedRequest, Service, check_named, check_prf_key, is_request_id
from .toprf import COPY, Points, ToprfKind, counted, points_of

MOST_OF_RECEIVER, MOST_WAITING = 1024, 4096
"""Inputs whose masks may wait for a receiver, and for all: further requests for masks are refused, and nothing is counted. Masks that were counted are never given up for others."""
MASK_SECONDS = 120.0
"""Masks are given up after so long: else a receiver could save what its hourly rate allows, and use it at once."""


class MaskedToprfKind(ToprfKind):
    """One key of AES with MACs. A request takes two messages of the receiver. The first one asks for masks: it is counted, and answered with shares of them. The second one
    has the masked points, the same at all parties, and names the first. Masks serve once. They live in the memory of the party, in one session: when it breaks,
    they are given up, as after some time, and the receiver asks again.

    All parties make, use and give up the same masks, as they answer the same requests in one order."""

    differs = "another request: send all parties the same"

    def __init__(self, committee: Committee, party: int, service: Service) -> None:
        super().__init__(committee, party, service)
        self._copies = {other: [0] for other in range(committee.size) if other != party}
        self.batch, self.limit = 2 * MOST_MASKED, MOST_MASKED * BLOCK
        self._session: Session | None = None
        self._waiting: dict[str, tuple[KeptMasks, float]] = {}
        """By receiver and id of the request for them, with the time when they are given up."""

    def read(self, head: Json, body: bytes | bytearray) -> ParsedRequest:
        """See :class:`.ServedKind`. The head has the key's id, ``output``, the bytes of a value, and ``masks``, the number of inputs, or ``use``, the id of the request for
        masks. The body: the masked points."""
        check_prf_key(head, self.key_id)
        check_named(self.named, head)
        output, wanted, use = head.get("output"), head.get("masks"), head.get("use")
        if type(output) is not int or output not in OUTPUTS:
            raise CiphertextError(f"values of {output} bytes: ask for {' or '.join(map(str, OUTPUTS))}")
        if (wanted is None) == (use is None):
            raise CiphertextError("shares have MACs here: ask for masks, and use them; run the same version everywhere")
        if use is None:
            if type(wanted) is not int or not 1 <= wanted <= MOST_MASKED or len(body):
                raise CiphertextError(f"masks of {wanted} inputs, and {len(body)} bytes: ask for those of 1 to {MOST_MASKED}, without a body")
            inputs, shares = wanted, np.zeros((1, wanted, 0), np.uint8)
        else:
            inputs, rest = divmod(len(body), BLOCK)
            if not is_request_id(use):
                raise CiphertextError("the request for the masks has no id of 8 to 64 letters and digits: run the same version everywhere")
            if rest or not 1 <= inputs <= MOST_MASKED:
                raise CiphertextError(f"{len(body)} bytes are no masked points: {BLOCK} bytes for each of 1 to {MOST_MASKED} inputs")
            shares = np.frombuffer(bytes(body), np.uint8).reshape(1, inputs, BLOCK)
        said = f"{self.key_id} {'masks of' if use is None else f'with masks {use} '} {inputs} inputs, values of {output} bytes"
        return ParsedRequest(Points(shares, OUTPUTS[output], use), inputs * OUTPUTS[output], hashlib.sha256(said.encode()).hexdigest())

    def admit(self, asked: Asked) -> None:
        """See :class:`.ServedKind`. A request with masked points was counted when it asked for the masks."""
        if points_of(asked[1]).use is None:
            super().admit(asked)

    def vouch(self, context: PartyContext, have: Sequence[Asked | None]) -> list[KeyQuorumError | None]:
        """See :class:`.ServedKind`. All parties compare what they got; then the policy for new masks, and for masked points whether there are masks."""
        self._renew(context.session)
        self._expire(time.monotonic())
        refused = self._compared(context, have)
        wants = [asked if asked is not None and points_of(asked[1]).use is None else None for asked in have]
        self._refuse_by_policy(wants, refused)
        self._refuse_more_than_wait(wants, refused)
        used: set[str] = set()
        for i, asked in enumerate(have):
            if asked is None or refused[i] is not None or points_of(asked[1]).use is None:
                continue
            name, points = _masks_of(asked), points_of(asked[1])
            kept = self._waiting.get(name)
            if kept is None or name in used or (kept[0].inputs, kept[0].blocks) != (points.inputs, points.blocks):
                refused[i] = CiphertextError("there are no such masks, or they were used, or given up: ask for new ones")
            used.add(name)
        return refused

    def _refuse_more_than_wait(self, wants: Sequence[Asked | None], refused: list[KeyQuorumError | None]) -> None:
        """Adds the refusals of requests for masks beyond what may wait. A request whose id has masks that wait is refused too."""
        waiting = Counter[str]()
        for name, (kept, _) in self._waiting.items():
            waiting[name.partition("/")[0]] += kept.inputs
        for i, asked in enumerate(wants):
            if asked is None or refused[i] is not None:
                continue
            receiver, _, inputs = counted(asked)
            if asked[0] in self._waiting:
                refused[i] = CiphertextError("masks of this request wait already: use them, or take another id")
            elif waiting[receiver] + inputs > MOST_OF_RECEIVER:
                refused[i] = CiphertextError(
                    f"masks of {waiting[receiver]} inputs of this receiver wait: use them first, {MOST_OF_RECEIVER} may wait"
                )
            elif waiting.total() + inputs > MOST_WAITING:
                refused[i] = CiphertextError(
                    f"masks of {waiting.total()} inputs wait, and {MOST_WAITING} may: ask again in {MASK_SECONDS:.0f} seconds"
                )
            else:
                waiting[receiver] += inputs

    def _digest(self, asked: Asked | None, numbers: Sequence[int]) -> bytes:
        """Of a request as we got it, which is the same at all parties."""
        if asked is None:
            return bytes(COPY)
        key, parsed = asked
        return hashlib.sha256(f"keyquorum toprf masked {key} {parsed.digest} ".encode() + points_of(parsed).shares.tobytes()).digest()

    def run(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: Sequence[Asked]) -> list[bytes]:
        """See :class:`.ServedKind`. Counts requests for masks, on the disk, before the masks are made. Masks that are used are removed before anything is opened."""
        self._renew(context.session)
        wants = [asked for asked in batch if points_of(asked[1]).use is None]
        uses = [asked for asked in batch if points_of(asked[1]).use is not None]
        kept = [self._waiting.pop(_masks_of(asked))[0] for asked in uses]
        answers: dict[str, bytes] = {}
        try:
            # Before anything is made or opened: which requests are in a batch, where a corrupted party told others of different ones.
            context.session.compare("requests of a batch", _purpose("batch", batch))
            if wants:
                self._count(wants)
            with context.phase("online"):
                if uses:
                    points = [points_of(parsed).shares[0] for _, parsed in uses]
                    values = evaluate_masked(context, self._key, kept, points, _purpose("values", uses))
                    answers.update((key, value) for (key, _), value in zip(uses, values, strict=True))
                    reached("toprf/evaluated")
                for blocks in sorted({points_of(parsed).blocks for _, parsed in wants}):
                    answers.update(self._made(context, [asked for asked in wants if points_of(asked[1]).blocks == blocks], blocks))
        finally:
            for one in kept:
                one.wipe()
        return [answers[key] for key, _ in batch]

    def items(self, parsed: ParsedRequest) -> int:
        """See :class:`.ServedKind`. Masks are no values yet."""
        return 0 if points_of(parsed).use is None else parsed.count

    def _made(self, context: PartyContext, wants: Sequence[Asked], blocks: int) -> Iterator[tuple[str, bytes]]:
        """New masks of some requests, and the answers."""
        sizes = [points_of(parsed).inputs for _, parsed in wants]
        made, words = make_masks(context, sum(sizes), blocks, _purpose("masks", wants))
        at, until = 0, time.monotonic() + MASK_SECONDS
        try:
            for (key, _), size in zip(wants, sizes, strict=True):
                self._waiting[key] = made.part(at, size), until
                yield key, np.ascontiguousarray(words[:, at : at + size]).astype("<u8").tobytes()
                at += size
        finally:
            made.wipe()
            words.fill(0)

    def _expire(self, now: float) -> None:
        """Gives up masks whose time is over."""
        for name in [name for name, (_, until) in self._waiting.items() if until < now]:
            self._waiting.pop(name)[0].wipe()

    def _renew(self, session: Session) -> None:
        """Gives up the masks of an earlier session."""
        if session is not self._session:
            self._wipe()
            self._session = session

    def _wipe(self) -> None:
        for kept, _ in self._waiting.values():
            kept.wipe()
        self._waiting.clear()

    def close(self) -> None:
        """See :class:`.ServedKind`."""
        self._wipe()
        super().close()


def _masks_of(asked: Asked) -> str:
    """The name of the masks that a request would use: of its own receiver."""
    return f"{counted(asked)[0]}/{points_of(asked[1]).use}"


def _purpose(what: str, batch: Sequence[Asked]) -> bytes:
    return hashlib.sha256(f"keyquorum toprf {what} {' '.join(key + parsed.digest for key, parsed in batch)}".encode()).digest()


__all__ = ["MaskedToprfKind"]
