"""Messages for receivers outside of a committee with MACs: what the parties do and send, and what a receiver checks.

A receiver cannot check MACs. So each message m is opened under a pad w that the receiver alone knows, with MACs checked among the parties. An item of the pool has random elements of which nobody
knows any: w, and masks v, one for each combination. For a batch of requests the parties

1. commit to their shares of w and v, each to all others;
2. toss a challenge, when they have the commitments of all. It gives factors c for each w;
3. compute shares of 2^shift m modulo 2^k, and open 2^shift (m + w) and all v + c w, with MACs checked (program `client_outputs`);
4. send each receiver their shares of its w and v, with all commitments, the challenge, and what was opened.

A receiver goes on if all parties sent the same of what is common (one of them is honest), if every share of w and v is the one that its party had committed to, and if their sums satisfy the combinations.
Then it takes w off.

**A wrong message passes with probability 2^-80 at most.** What is opened is right, or a check of MACs fails with its probability. Corrupted parties have chosen errors d of w and e of v when they
committed, before the honest party revealed its part of the challenge. The receiver goes on if c d + e = 0 modulo 2^k. The message is another one only if d is not 0 modulo 2^(k - shift): then d has
fewer than k - shift factors 2, and each uniform c satisfies this with probability 2^-(shift + 1) at most. There are as many combinations as 80 bits take (:attr:`.PaddedOutput.checks`).

**Nobody else learns a message.** The parties see the message under w, at the bits from shift on, and v + c w: uniform, since an honest party sends its shares of w and v to the receiver alone, and its commitment hides them. Each item serves once.

**Whether a receiver goes on tells nothing.** That depends on c, d, e, and on what corrupted parties send: they know all of it. Products w k with a random key k of the receiver would not do here: they
would be checked after the masked message is known, so a corrupted party that guesses m could have an error of k pass if and only if the guess is right. (Evaluations have such products, checked before anything is
opened: :mod:`keyquorum.schemes.prf.client_masks`.)

Sources: outputs under pads of clients: Damgard, Damgard, Nielsen, Nordholt, Toft, Confidential Benchmarking based on Multiparty Computation (FC 2016, eprint 2015/1006). Random combinations modulo 2^k:
SPDZ2k (CRYPTO 2018, eprint 2018/482), section 3. A challenge that is tossed after commitments: as for the checks of MACs of SPDZ (CRYPTO 2012, ESORICS 2013).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.base import OpeningMasks
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ShareVector
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.errors import PartyError, ProgramError
from keyquorum.programs import Layout
from keyquorum.programs.signatures import client_outputs

from .group import RoundingGroup
from .openings import WORDS
from .randomness import wipe
from .variants import PaddedOutput, Preprocessing, Variant, low_mask

Words = NDArray[np.uint64]
NONCE, HASH = 32, 32
"""Bytes of the randomness of a commitment, and of a commitment, a challenge and a digest."""


class DifferentAnswers(PartyError):
    """Two parties sent different results: one of them cheats, or has other files. Nothing was decrypted."""


class WrongPads(PartyError):
    """A party sent wrong shares of the pads. Nothing was decrypted."""


@dataclass(frozen=True)
class Wanted:
    """A request of a batch. ``name``: the same at all parties, and of no other request of the batch; ``count``: messages."""

    name: str
    count: int


def commitment(party: int, nonce: bytes, shares: bytes) -> bytes:
    """Of a party to its shares of pads and masks."""
    return hashlib.sha256(b"keyquorum pads of a receiver" + party.to_bytes(4, "little") + nonce + shares).digest()


def factors_of(challenge: bytes, padded: PaddedOutput, count: int) -> Words:
    """c for each combination and pad, [checks, count], uniform modulo 2^64."""
    data = hashlib.shake_256(b"keyquorum factors of pads" + challenge).digest(8 * padded.checks * count)
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(padded.checks, count)


def answers_for_receivers(
    group: RoundingGroup, variant: Variant, z: Words, preprocessing: Preprocessing, context: bytes, batch: Sequence[Wanted], agreed: bytes
) -> list[bytes]:
    """This party's answers to the requests of a batch, whose phases are z, with one item for each message; every party calls this. ``context``: of the messages (:meth:`.ClaimedItems.take`).
    ``agreed``: 32 bytes that the parties compare before anything is opened: a digest of the batch as this party has it. Raises PartyError if another party has a different one.

    Rounds beside those of the rounding: one of commitments, those of a toss, one that opens, and those of a check of MACs."""
    padded = variant.padded
    if padded is None or not isinstance(group.backend, Embedded) or group.me is None:
        raise ProgramError(f"items of {variant.name} have no pads for receivers outside: decrypt to a party")
    rows = variant.for_receivers(preprocessing)
    mine = (rows[0, : padded.rows, ::WORDS] & low_mask(padded.bits)).astype("<u8")
    places, at = list[slice](), 0
    for request in batch:
        places.append(slice(at, at + request.count))
        at += request.count
    nonces = [secrets.token_bytes(NONCE) for _ in batch]
    session = group.backend.session
    shares = [mine[:, place].copy() for place in places]
    try:
        own = [commitment(group.me, nonce, share.tobytes()) for nonce, share in zip(nonces, shares, strict=True)]
        said = session.all_gather(agreed + b"".join(own))
        for party, theirs in enumerate(said):
            if len(theirs) != HASH * (1 + len(batch)) or theirs[:HASH] != agreed:
                raise PartyError(f"party {party} has other requests in this batch, or runs another version: see what runs there")
        reached("receivers/committed")
        tossed = session.toss(HASH)
        challenges = [hashlib.sha256(tossed + request.name.encode()).digest() for request in batch]
        factors = np.concatenate([factors_of(c, padded, r.count) for c, r in zip(challenges, batch, strict=True)], axis=1)
        messages = variant.use(group, z, preprocessing, "share", context)
        assert messages is not None
        opened = _opened(group, padded, messages, rows, factors, preprocessing, context)
    except BaseException:
        wipe(*shares)  # of a batch that failed: nobody may take them for those of another one
        raise
    finally:
        mine.fill(0)
    answers = []
    for i, place in enumerate(places):
        commitments = b"".join(theirs[HASH * (1 + i) : HASH * (2 + i)] for theirs in said)
        common = commitments + challenges[i] + np.ascontiguousarray(opened[:, place]).astype("<u8").tobytes()
        answers.append(shares[i].tobytes() + nonces[i] + common)
        wipe(shares[i])
    return answers


def _opened(
    group: RoundingGroup,
    padded: PaddedOutput,
    messages: Words,
    rows: NDArray[np.unsignedinteger],
    factors: Words,
    preprocessing: Preprocessing,
    context: bytes,
) -> Words:
    """Opened messages under pads, then combinations, [rows, items]. Wipes the shares of messages."""
    size = factors.shape[1]
    pads = rows[:, : padded.rows].reshape(rows.shape[0], -1).copy()
    masks = OpeningMasks(rows[:, padded.rows :].reshape(rows.shape[0], -1).copy())
    working = ShareVector.from_sections([messages, pads], WORDS)
    working.take_origins(preprocessing.origins)
    layout = Layout(messages=size, pads=size, masks=padded.checks * size)
    call = client_outputs(
        size=size, checks=padded.checks, shift=padded.shift, messages=layout["messages"], pads=layout["pads"], masks=layout["masks"]
    )
    try:
        words = group.ring(padded.bits).run(
            call, working, public=[factors.view(np.int64).ravel()], keep=True, purpose=context + b" to receivers", masks=masks
        )
        opened: Words = words.view(np.uint64).reshape(padded.rows, size) & low_mask(padded.bits)
        return opened
    finally:
        working.wipe()
        masks.wipe()
        wipe(messages, pads)


def answer_bytes(parties: int, padded: PaddedOutput, count: int) -> int:
    """Bytes of an answer for ``count`` messages."""
    return NONCE + HASH * (parties + 1) + 16 * padded.rows * count


def received_messages(committee: Committee, padded: PaddedOutput, answers: Sequence[bytes | bytearray], count: int) -> Words:
    """The messages modulo 2^(bits - shift), [count], from the answers of all parties in their order. Raises :class:`DifferentAnswers`, :class:`WrongPads`, or PartyError for an answer of
    another length."""
    size, start = answer_bytes(committee.size, padded, count), 8 * padded.rows * count + NONCE
    for party, answer in enumerate(answers):
        if len(answer) != size:
            raise PartyError(f"party {committee.number_of(party)} sent {len(answer)} bytes for {count} messages: run the same version everywhere")
    same_results(committee, [bytes(answer[start:]) for answer in answers])
    common = bytes(answers[0][start:])
    challenge = common[HASH * committee.size : HASH * (committee.size + 1)]
    opened = np.frombuffer(common[HASH * (committee.size + 1) :], "<u8").astype(np.uint64).reshape(padded.rows, count)
    total = np.zeros((padded.rows, count), np.uint64)
    for party, answer in enumerate(answers):
        check_commitment(committee, party, bytes(answer[:start]), common)
        total += np.frombuffer(bytes(answer[: start - NONCE]), "<u8").astype(np.uint64).reshape(padded.rows, count)
    check_pads(padded, total, opened[1:], factors_of(challenge, padded, count))
    messages: Words = ((opened[0] >> np.uint64(padded.shift)) - total[0]) & low_mask(padded.bits - padded.shift)
    return messages


def same_results(committee: Committee, results: Sequence[bytes]) -> None:
    """Raises :class:`DifferentAnswers`, which names two parties, unless all sent the same."""
    for party, result in enumerate(results):
        if result != results[0]:
            raise DifferentAnswers(
                f"parties {committee.number_of(0)} and {committee.number_of(party)} sent different results, so one of them cheats or has other files: nothing was decrypted; "
                "ask their operators, and do not try again before"
            )


def check_commitment(committee: Committee, party: int, sent: bytes, common: bytes) -> None:
    """Raises :class:`WrongPads` unless a party's shares, and its nonce behind them, are those that it had committed to."""
    if commitment(party, sent[-NONCE:], sent[:-NONCE]) != common[HASH * party : HASH * (party + 1)]:
        raise WrongPads(
            f"party {committee.number_of(party)} sent other shares of the pads than it had committed to, so it cheats: nothing was decrypted; ask its operator, and do not try again before"
        )


def check_pads(padded: PaddedOutput, total: Words, combinations: Words, factors: Words) -> None:
    """Raises :class:`WrongPads` unless pads and masks, the rows of ``total``, satisfy the combinations."""
    if ((total[1:] + factors * total[0] - combinations) & low_mask(padded.bits)).any():
        raise WrongPads("a party sent wrong shares of the pads, so it cheats: nothing was decrypted; ask the operators, and do not try again before")


__all__ = [
    "DifferentAnswers", "Wanted", "WrongPads", "answer_bytes", "answers_for_receivers", "check_commitment", "check_pads", "commitment", "factors_of", "received_messages", "same_results",
]  # fmt: skip
