"""Decryption of multi-key ciphertexts by their parties, each a process of this host over TLS: exact, and flooded. The job ``bench:multikey``."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.errors import CiphertextError
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job

from ..clock import Clock
from ..runner import Row, committee_of
from . import scheme
from .gadgets import RnsGadget
from .joint import decrypt_exactly, decrypt_flooded, prepare
from .ring import Ints, Words
from .scheme import Ciphertext, Party, Reference
from .sets import SETS
from .workloads import rounded

STEPS = ("offline", "online", "flooded")


def _sum_of_all(context: PartyContext, party: Party, values: Ints) -> Ciphertext:
    """Every party encrypts its row of ``values`` under its own key and sends the ciphertext to all; the sum."""
    gadget, ring = party.gadget, party.gadget.ring
    mine = scheme.encrypt(party.reference, party.public, scheme.encode(values[context.party], gadget.t))
    received = [_residues(context, mine.parts[i], q, gadget.parameters.name) for i, q in enumerate(ring.primes)]
    total = None
    for index in range(context.parties):
        parts = np.stack([of_prime[index] for of_prime in received])
        one = scheme.extend(Ciphertext((index,), parts), range(context.parties))
        total = one if total is None else scheme.add(gadget, total, one)
    assert total is not None
    return total


def _residues(context: PartyContext, mine: Words, q: int, name: str) -> list[Words]:
    """Residues modulo one prime of every party's ciphertext, ours sent to all. Raises CiphertextError for a damaged message."""
    found = []
    for index, data in enumerate(context.session.all_gather(mine.tobytes())):
        if len(data) != mine.nbytes or int((words := np.frombuffer(data, dtype=np.uint64)).max()) >= q:
            raise CiphertextError(f"party {index} sent no ciphertext of {name}: it runs other code or parameters")
        found.append(words.reshape(mine.shape))
    return found


@party_job("bench:multikey", {"parameters": str, "runs": int})
def decryption_job(context: PartyContext, job: Json) -> Json:
    """Makes keys, and decrypts a sum of a ciphertext of each party ``runs`` times after one time that is not counted. Returns the costs at this party, and
    the wrong coefficients at the receiver. The messages are public, so that the receiver can compare."""
    gadget = RnsGadget(SETS[job["parameters"]])
    party = Party(context.party, Reference(gadget, context.session.toss(32)), rows=1)
    try:
        values = np.random.default_rng(list(context.session.toss(16))).integers(0, gadget.t, (context.parties, gadget.ring.degree))
        ciphertext = _sum_of_all(context, party, values)
        right, wrong, measured = values.sum(axis=0) % gadget.t, 0, list[Json]()
        for _ in range(1 + job["runs"]):
            context.session.compare("ready", b"")
            clock = Clock(context)
            items = prepare(context, gadget)
            costs = {"offline": clock.lap()}
            exact = decrypt_exactly(context, gadget, party.secret, ciphertext, items=items)
            costs["online"] = clock.lap()
            flooded = decrypt_flooded(context, gadget, party.secret, ciphertext)
            costs["flooded"] = clock.lap()
            wrong += sum(int((scheme.decode(found, gadget.t) != right).sum()) for found in (exact, flooded) if found is not None)
            measured.append(costs)
    finally:
        party.wipe()
    return {"runs": measured[1:], "wrong": wrong}


def decryptions(parameters: ParameterSet, k: int, runs: int) -> Iterator[Row]:
    """Rows of one committee: times of the slowest party, bytes that a party sends (the most)."""
    with committee_of(ADDITIVE, k) as committee:
        results = run_processes(committee.folder, {"kind": "bench:multikey", "parameters": parameters.name, "runs": runs}, io_timeout=900)
    wrong = sum(result["wrong"] for result in results)
    for step in STEPS:
        ms = [1e3 * max(result["runs"][i][step]["seconds"] for result in results) for i in range(runs)]
        cpu = statistics.median(1e3 * max(result["runs"][i][step]["cpu"] for result in results) for i in range(runs))
        sent = max(result["runs"][-1][step]["sent"] for result in results)
        reading = "flooded" if step == "flooded" else f"exact, {step}"
        one: Row = {"workload": "decryption", "reading": reading, "parameters": parameters.name, "gadget": "", "parties": k, "threads": 1}
        yield {
            **one, "quantity": "ms", "ours": rounded(statistics.median(ms)), "low": rounded(min(ms)), "high": rounded(max(ms)), "runs": runs,
            "cpu_ms": rounded(cpu), "wrong": wrong,
        }  # fmt: skip
        yield {**one, "quantity": "kB", "ours": rounded(sent / 1e3), "wrong": wrong}


__all__ = ["decryption_job", "decryptions"]
