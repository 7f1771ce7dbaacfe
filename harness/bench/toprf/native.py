"""AES-128 under a shared key, by circuits and by tables: the job of the system ``native``."""

from __future__ import annotations

from typing import Literal

import numpy as np

from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.model.chosen_committees import ADDITIVE_RING, REPLICATED_RING, RING_WITH_MACS
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.programs import Call, Layout, signatures
from keyquorum.schemes.prf.key import domain_of

from ..clock import Clock
from .runs import Once, measured

METHODS = ("circuit", "table")
Direction = Literal["encrypt", "decrypt"]


class Cipher:
    """A shared key, and batches of blocks, at one party."""

    def __init__(self, context: PartyContext, method: str, batch: int) -> None:
        self._context, self._method, self._batch = context, method, batch
        protocol = context.committee.ring_protocol
        if protocol is None:
            raise KeyQuorumError(f"{context.committee.protocol} has no shares modulo 2: take {REPLICATED_RING}, {ADDITIVE_RING} or {RING_WITH_MACS}")
        self._protocol, self._domain = protocol, domain_of(context.committee.protocol)
        self._keys = self._made(signatures.aes_keys())

    def _made(self, call: Call) -> ShareVector:
        shares = ShareVector()
        self._context.backend.run(self._protocol, self._domain, call, shares=shares, mode=Mode(keep=True))
        return shares

    def blocks(self) -> ShareVector:
        """A batch of random blocks."""
        return self._made(signatures.sample_bits(size=128 * self._batch))

    def offline(self) -> ShareVector | None:
        """One-hot vectors of a batch; None if the method takes none."""
        return self._made(signatures.aes_hot(size=self._batch)) if self._method == "table" else None

    def call(self, direction: Direction) -> Call:
        """The program of a batch."""
        size = self._batch
        layout = Layout(blocks=128 * size, keys=1408)
        blocks, keys = layout["blocks"], layout["keys"]
        if self._method == "circuit":
            return signatures.aes_blocks(size=size, direction=direction, destination="share", blocks=blocks, keys=keys)
        masks, hot = layout.add("masks", 1280 * size), layout.add("hot", 40960 * size)
        return signatures.aes_blocks_table(size=size, direction=direction, destination="share", blocks=blocks, keys=keys, masks=masks, hot=hot)

    def file(self, blocks: ShareVector, vectors: ShareVector | None) -> ShareVector:
        """The share file of a batch."""
        parts = [part for part in (blocks, self._keys, vectors) if part is not None]
        made = ShareVector.from_words(np.concatenate([part.words for part in parts], axis=1), blocks.element_words)
        made.bind(self._protocol, self._domain)
        made.take_mac(blocks)
        return made

    def run(self, direction: Direction, file: ShareVector) -> ShareVector:
        """The results of a batch."""
        start = file.length
        self._context.backend.run(self._protocol, self._domain, self.call(direction), shares=file, mode=Mode(keep=True))
        width = file.element_words
        made = ShareVector.from_words(file.words[:, start * width :].copy(), width)
        made.bind(self._protocol, self._domain)
        made.take_mac(file)
        return made

    def opened(self, shares: ShareVector) -> np.ndarray:
        """The bits of a share file, row after row."""
        session, threshold = self._context.session, self._context.committee.threshold
        engine = session.engine(self._protocol, self._domain, "open", threshold)
        shares.check(engine, 0, shares.length)
        bits = engine.read(engine.open(engine.import_(shares.read(engine, 0, shares.length), shares.length)))
        return np.asarray(bits).reshape(128, -1)


@party_job("bench:toprf", {"method": str, "batch": int})
def toprf_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:toprf``: a batch of ``batch`` blocks several times by one ``method``; medians of this party."""
    cipher = Cipher(context, job["method"], job["batch"])

    def once() -> Once[tuple[ShareVector, ShareVector]]:
        blocks = cipher.blocks()
        clock = Clock(context)
        vectors = cipher.offline()
        made = clock.lap()
        file = cipher.file(blocks, vectors)
        return Once(lambda: (blocks, cipher.run("encrypt", file)), made["seconds"], made["sent"])

    figures, (blocks, results) = measured(context, once)
    back = cipher.opened(cipher.run("decrypt", cipher.file(results, cipher.offline())))
    wrong = np.count_nonzero((back != cipher.opened(blocks)).any(axis=0))
    return {**figures, "wrong": int(wrong)}


__all__ = ["METHODS", "toprf_job"]
