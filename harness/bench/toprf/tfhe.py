"""AES-128 of a block by TFHE-rs, under a jointly made key and with jointly encrypted round keys: system F of `bench.toprf`.

The parties make both keys, and encrypt the round keys. A client encrypts its block under the compact public key; TFHE-rs evaluates on the cores of this host; the parties decrypt 128 bits to
a receiver. Needs the bridge (``make tfhe-bridge``).
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum import api
from keyquorum.backends.base import Mode
from keyquorum.deploy.tfhe_bridge import bridge, run_bridge
from keyquorum.dsl import ShareVector
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.programs import Layout, signatures
from keyquorum.schemes.key_folder import load_shares
from keyquorum.schemes.prf.key import load_prf_key, sharing_of
from keyquorum.toprf import toprf_encrypt, toprf_keygen, write_circuit

from ..runner import Row

SYSTEM, METHOD, BLOCK = "F", "tfhe-rs", 128
PARAMETERS = "tfhers-2-2"


def bridge_is_built() -> bool:
    """Whether there is a bridge to TFHE-rs on this host."""
    try:
        bridge()
    except KeyQuorumError:
        return False
    return True


def bits_of(data: bytes) -> NDArray[np.uint64]:
    """The bits of a block, from the lowest of its first byte."""
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").astype(np.uint64)


@party_job("bench:toprf-block", {"key": str, "block": str})
def toprf_block_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:toprf-block``: AES of a public block under a stored key, opened to all parties."""
    committee, me = context.committee, context.party
    folder = committee.key_folder(me, job["key"])
    info = load_prf_key(folder)
    [keys] = load_shares(folder, info, me)
    protocol, domain = sharing_of(committee)
    held = committee.capabilities.held(me, committee.size, committee.threshold)
    block = np.zeros((keys.words.shape[0], BLOCK), np.uint64)
    if 0 in held:
        block[held.index(0)] = bits_of(bytes.fromhex(job["block"]))
    file = ShareVector.from_words(np.concatenate([block, keys.words], axis=1))
    layout = Layout(blocks=BLOCK, keys=keys.length)
    call = signatures.aes_blocks(size=1, direction="encrypt", destination="all", blocks=layout["blocks"], keys=layout["keys"])
    bits = context.backend.run(protocol, domain, call, shares=file, mode=Mode(committee.threshold)).words & 1
    keys.wipe()
    file.wipe()
    return {"block": np.packbits(bits.astype(np.uint8), bitorder="little").tobytes().hex()}


def measure_tfhe(protocol: str, parties: int) -> Row:
    """One block. ``ms``: TFHE-rs's evaluation and the decryption; ``mb``: what a party sends in the decryption; ``offline_ms``, ``offline_mb``: round keys and masks, without
    the key generation of `bench.tfhe`; ``request_mb``: what the client sends; ``answer_mb``: the result's file; ``all_mb``: what all
    parties send in the decryption."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as name:
        folder = Path(name)
        committee = api.init(folder / "committee", parties, protocol)
        made = api.keygen(committee, "tfhe", PARAMETERS)
        toprf_keygen(committee, "prf")
        start = time.perf_counter()
        keys = toprf_encrypt(committee, "prf", "tfhe")
        encrypted = time.perf_counter() - start
        run_bridge(["keys", str(made.folder), str(folder)])
        circuit = folder / "aes.txt"
        bootstraps = write_circuit(circuit)
        block = secrets.token_bytes(BLOCK // 8)
        request, result, plain = (folder / name for name in ("request", "result.lwe", "plain"))
        run_bridge(["encrypt-bits", str(folder / "CompactPublicKey.bin"), *(str(bit) for bit in bits_of(block)), str(request)])
        start = time.perf_counter()
        run_bridge(["circuit", str(folder / "ServerKey.bin"), str(circuit), str(request), str(keys), str(result)])
        evaluated = time.perf_counter() - start
        filled = [report.total for report in api.pool_fill(committee, PARAMETERS, "round_ltz_circuit", BLOCK)]
        decrypted = [report.total for report in api.decrypt(committee, "tfhe", [result], 0, [plain]).reports]
        found = np.array(api.decode(committee, "tfhe", plain)).astype(np.uint8)
        native = run_processes(committee.folder, {"kind": "bench:toprf-block", "key": "prf", "block": block.hex()})
        wrong = int(np.packbits(found, bitorder="little").tobytes().hex() != native[0]["block"])
        online = evaluated + max(cost.seconds for cost in decrypted)
        return {
            "ms": f"{1e3 * online:.2f}", "mb": f"{max(cost.bytes_sent for cost in decrypted) / 1e6:.6f}", "per_s": f"{1 / online:.4f}",
            "offline_ms": f"{1e3 * (encrypted + max(cost.seconds for cost in filled)):.2f}", "offline_mb": f"{max(cost.bytes_sent for cost in filled) / 1e6:.6f}",
            "rounds": decrypted[0].rounds, "runs": 1, "wrong": wrong, "request_mb": f"{os.path.getsize(request) / 1e6:.6f}", "bootstraps": bootstraps,
            "answer_mb": f"{os.path.getsize(result) / 1e6:.6f}", "all_mb": f"{sum(cost.bytes_sent for cost in decrypted) / 1e6:.6f}",
        }  # fmt: skip


__all__ = ["METHOD", "SYSTEM", "bridge_is_built", "measure_tfhe", "toprf_block_job"]
