"""The jobs of the baseline: AES-128 on LWE ciphertexts with encrypted tables by the parties of a committee, for one of them, which alone learns the
blocks, and their values under the shared key.

Two pools: items of the key, one for each block, and items of an exact rounding. Those of all blocks are claimed before the first bit is opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError, PoolTooSmall
from keyquorum.model.outputs import reserved, save_all
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.plans.decrypt import RESULTS
from keyquorum.plans.pool_jobs import check_fill
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import ClaimedItems, Pool
from keyquorum.plans.weakness import warn_all
from keyquorum.programs.signatures import sum_inputs
from keyquorum.schemes.circuit import aes_forms
from keyquorum.schemes.key_folder import NewKey, check_made_by, load_shares, write_info, write_public_files, write_share
from keyquorum.schemes.prf.function import BLOCK, blocks_of, combined, held_by, rows_of
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.variants import Preprocessing

from .evaluate import Evaluator
from .key import BITS, load_public_key, load_round_keys
from .keygen import GateRequest, generate
from .parameters import gate_parameters
from .stored import load_gate_key
from .tables import gate_rounding, gate_tables

Bytes = NDArray[np.uint8]
CHUNK = 4
"""Blocks of a file of the pool: 138 kB each, and 20 MB of memory while they are made."""
MOST_BLOCKS = 1024
ROUNDING = "round_ltz_circuit"
LINE = 2 * BLOCK + 1
"""Bytes of a block in a file."""
MOST_TEXT = 2 * LINE * MOST_BLOCKS


class GateKey:
    """A key with its two pools, at one party, in a ``with`` block; every party opens it. The secrets are wiped in the end."""

    def __init__(self, context: PartyContext, key: str, rounding: str) -> None:
        committee = context.committee
        self._context, folder = context, committee.key_folder(context.party, key)
        info = load_gate_key(folder)
        check_made_by(committee, info, folder)
        context.session.compare("key", info.digest)
        masks, forms, group = gate_rounding(committee, info.parameters, rounding), aes_forms(), pool_group(context)
        own = load_round_keys(folder, info)
        secret, keys = load_shares(folder, info, context.party)
        keys.wipe()
        self._secret = secret.words.copy()
        secret.wipe()
        self._open: list[Pool | Evaluator] = []
        try:
            kind = gate_tables(committee, info.parameters, info.key_id, forms, 8 * BLOCK, self._secret)
            self.tables = self._opened(Pool(context, group, kind))
            self.masks = self._opened(Pool(context, group, masks))
            self._evaluator = Evaluator(context, group, forms, self._secret, own, kind, masks)
            self._open.append(self._evaluator)
        except BaseException:
            self.close()
            raise

    def _opened(self, pool: Pool) -> Pool:
        self._open.append(pool)
        return pool

    def __enter__(self) -> GateKey:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Releases the locks and wipes the secret."""
        for one in self._open:
            one.close()
        self._secret.fill(0)

    def fill(self, count: int) -> int:
        """Makes items for ``count`` blocks more, of both pools; every party calls this. Returns the blocks for which there are items."""
        check_fill(count, CHUNK)
        self.tables.store.require_room(count, len(self._context.committee.local_parties()))
        self.tables.fill(count, CHUNK)
        self.masks.fill(count * self._evaluator.decryptions)
        return min(self.tables.left, self.masks.left // self._evaluator.decryptions)

    def evaluate(self, points: Bytes, purpose: str) -> Bytes:
        """This party's shares of AES of its shares of blocks, [summands held, blocks, 16]; every party calls this. Raises PoolTooSmall before anything is
        claimed in either pool.

        ``purpose``: of the evaluation, the same at all parties. Each block takes a round for its input, and the rounds of the rounding for each of 40
        layers and for the output."""
        count = points.shape[1]
        made, needed = np.zeros_like(points), {self.tables: count, self.masks: count * self._evaluator.decryptions}
        for pool, items in needed.items():  # all parties find the same
            pool.agree(f"look for {items} items, {purpose}")
            if pool.left < items:
                raise PoolTooSmall(
                    f"{pool.name}: needs {items:,} items, has {pool.left:,}: fill the pools (python -m bench.baselines.toprf_lwe fill)"
                )
        with (
            self.tables.claimed(count, purpose) as tables,
            self.masks.claimed(needed[self.masks], purpose) as masks,
        ):
            reached("gates/claimed")
            try:
                for block in range(count):
                    made[:, block : block + 1] = self._block(points[:, block : block + 1], *tables.take(1), masks)
                    reached("gates/block")
            except BaseException:
                made.fill(0)
                raise
        reached("gates/removed")
        return made

    def _block(self, point: Bytes, tables: Preprocessing, bound: bytes, masks: ClaimedItems) -> Bytes:
        """One block of :meth:`evaluate`, with its item."""
        reached("gates/taken")
        rows = rows_of(point)
        try:
            bits = self._evaluator.evaluate(rows.reshape(rows.shape[0], -1, 1), tables, masks, bound)
            made = blocks_of(bits.reshape(bits.shape[0], -1))
            wipe(bits)
        finally:
            wipe(rows)
        return made


def _shared(context: PartyContext, own: bytes | None, count: int) -> Bytes:
    """Our shares of the blocks of the party that has them (``own``), [summands held, count, 16]. Rounds and bytes are those of `sum_inputs`."""
    committee, blocks = context.committee, np.zeros((1, count, BLOCK), np.uint8)
    if own is not None:
        blocks[:] = np.frombuffer(own, np.uint8).reshape(blocks.shape)
    private, shares = rows_of(blocks)[0].view(np.int64), ShareVector()
    protocol = committee.ring_protocol
    assert protocol is not None
    try:
        call = sum_inputs(contributors=committee.size, size=private.size)
        context.backend.run(protocol, BITS, call, private=private, shares=shares, mode=Mode(committee.threshold))
        return blocks_of(shares.words)
    finally:
        shares.wipe()
        wipe(private)
        blocks.fill(0)


def _delivered(context: PartyContext, shares: Bytes, receiver: int) -> bytes | None:
    """The blocks, at the receiver. One message of each other party."""
    if context.party != receiver:
        context.session.send(receiver, shares.tobytes())
        return None
    answers: list[bytes] = []
    for party in range(context.parties):
        most = len(held_by(context.committee, party)) * shares.shape[1] * BLOCK
        answers.append(shares.tobytes() if party == receiver else context.session.recv(party, most))
    return combined(context.committee, answers, shares.shape[1])


def _blocks(job: Json) -> int:
    count = job["count"]
    if not 1 <= count <= MOST_BLOCKS:
        raise ParameterError(f"{count} blocks: choose 1 to {MOST_BLOCKS}")
    return int(count)


def check_evaluate(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``bench:gates-evaluate`` that a party makes alone: key and shares, and at the receiver its blocks."""
    folder = committee.key_folder(party, job["key"])
    info = load_gate_key(folder)
    check_made_by(committee, info, folder)
    gate_rounding(committee, info.parameters, job["rounding"])
    for share in load_shares(folder, info, party):
        share.wipe()
    if committee.index_of(job["receiver"]) == party:
        _own_blocks(job, _blocks(job))


def blocks_in(path: Path) -> list[bytes]:
    """The blocks of a file of words of 32 hexadecimal digits. Raises ParameterError."""
    if not path.is_file():
        raise ParameterError(f"{path}: no such file")
    if path.stat().st_size > MOST_TEXT:
        raise ParameterError(f"{path}: {path.stat().st_size} bytes are more than {MOST_BLOCKS} blocks: split it")
    return [block_of(word) for word in path.read_text(errors="replace").split()]


def block_of(word: str) -> bytes:
    """A block of 32 hexadecimal digits. Raises ParameterError."""
    try:
        block = bytes.fromhex(word)
    except ValueError:
        block = b""
    if len(block) != BLOCK or len(word) != 2 * BLOCK:
        raise ParameterError(f"a block of {len(word)} characters: give {2 * BLOCK} hexadecimal digits")
    return block


def lines_of(blocks: Sequence[bytes]) -> bytes:
    """The text of :func:`blocks_in`, a block on each line."""
    return b"".join(block.hex().encode() + b"\n" for block in blocks)


def _own_blocks(job: Json, count: int) -> bytes:
    """The receiver's blocks."""
    path = _local_file(job, "inputs")
    blocks = blocks_in(path)
    if len(blocks) != count:
        raise ParameterError(f"{path}: {len(blocks)} blocks, and the job is for {count}: copy the file of the job")
    return b"".join(blocks)


def _local_file(job: Json, name: str) -> Path:
    """The file of this party that a list under ``local`` has."""
    paths = job["local"].get(name)
    if not isinstance(paths, list) or len(paths) != 1 or not isinstance(paths[0], str) or not paths[0].isprintable():
        raise ParameterError(f"the {job['kind']} job needs a path under local, {name}: write the job file again")
    return Path(paths[0])


@party_job("bench:gates-keygen", {"key": str, "parameters": str})
def keygen_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:gates-keygen``: makes a key of a set, and stores it in this party's folder."""
    request = GateRequest(gate_parameters(job["parameters"]))
    request.check_plan(context.committee)
    warn_all(request.warnings())
    with NewKey(context, job["key"]) as new:
        material = generate(context, request)
        for j, shares in enumerate(material.shares):
            write_share(new.folder, material.info, context.party, j, shares)
            shares.wipe()
        info = write_public_files(new.folder, material.info, material.public)
        load_round_keys(new.folder, info)
        load_public_key(new.folder, info)
        context.session.compare("stored key", info.digest)
        write_info(new.folder, info)
        new.publish()
        context.session.compare("end of the key generation", info.digest)
    return {"key_id": info.key_id}


@party_job("bench:gates-fill", {"key": str, "rounding": str, "count": int})
def fill_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:gates-fill``: encrypted tables and items of a rounding for ``count`` blocks under the key ``key``."""
    with context.phase("fill"), GateKey(context, job["key"], job["rounding"]) as opened:
        return {"available": opened.fill(job["count"])}


@party_job("bench:gates-evaluate", {"key": str, "rounding": str, "receiver": int, "count": int, "local": dict}, check=check_evaluate)
def evaluate_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:gates-evaluate``: AES of ``count`` blocks, which ``receiver`` has, and whose values it alone gets. Under ``local`` at the receiver: ``inputs``,
    the file of the blocks, and ``outputs``, the file of their values (0600, reserved before anything is claimed), both as of :func:`blocks_in`."""
    receiver, count = context.committee.index_of(job["receiver"]), _blocks(job)
    receives = context.party == receiver
    own = _own_blocks(job, count) if receives else None
    outputs: Sequence[Path] = [_local_file(job, "outputs")] if receives else []
    folder = context.committee.key_folder(context.party, job["key"])
    with GateKey(context, job["key"], job["rounding"]) as opened, reserved(outputs, [count * LINE] * len(outputs), folder / RESULTS) as places:
        with context.phase("input"):
            points = _shared(context, own, count)
        try:
            with context.phase("online"):
                shares = opened.evaluate(points, f"{count} blocks for party {receiver}")
        finally:
            points.fill(0)
        value = _delivered(context, shares, receiver)
        shares.fill(0)
        if value is not None:
            save_all(places, [lines_of([value[first : first + BLOCK] for first in range(0, len(value), BLOCK)])])
    context.session.compare("end of the evaluation", hashlib.sha256(str(count).encode()).digest())
    return {"count": count, "receiver": job["receiver"], **({"outputs": [str(path) for path in outputs]} if receives else {})}


__all__ = ["MOST_BLOCKS", "ROUNDING", "GateKey", "block_of", "blocks_in", "check_evaluate", "lines_of"]
