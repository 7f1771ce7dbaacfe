"""Cost of a served decryption by a committee with MACs: what a batch of one request takes between the parties, and its answer.

All parties are threads of one process, without a network. Rounds and bytes are those between parties, of a party, from the request to the answer, without the filling of the pool and the agreement on
items that a claim takes unless it was made ahead. The time is that of the batch at party 0 (median), on a machine that all parties share. The receiver's checks are in ``receiver_ms``.

    python -m bench.served [--parties 2,3] [--parameters lwe64-p2] [--rounding round_ltz_circuit] [--counts 1,100] [--runs 11]
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keyquorum import api
from keyquorum.model.chosen_committees import WITH_MACS
from keyquorum.model.committee import Committee
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.plans.keygen import keygen_job
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool
from keyquorum.schemes import encryption_of
from keyquorum.serve.kinds.decryption_macs import PaddedServedKey
from keyquorum.sharing.receivers import received_messages

from .runner import MACHINE, Arguments, Bench, Options, Row

MESSAGE = 1
COMMITMENTS, TOSS, COMPARED_TOSS = 1, 2, 3
"""Exchanges that the session does not count as rounds; a toss among more than two parties compares commitments."""


def _requests(committee: Committee, parameters: str, counts: Sequence[int]) -> list[bytes]:
    """A key, and bodies of requests: files of LWE ciphertexts, or one ciphertext of SEAL."""
    own = api.load_parameters(parameters)
    run_in_process(committee, lambda context: keygen_job(context, api.keygen_job("key", own, relin=False)))
    info = api.load_key(committee.key_folder(0, "key"))
    found = []
    for i, count in enumerate(counts):
        path = committee.folder / f"{i}.ciphertext"
        api.encrypt(committee.folder, "key", np.full(count, MESSAGE), path)
        found.append(encryption_of(info).request_body(info, path, path.read_bytes()))
    return found


def measure(parties: int, parameters: str, rounding: str, counts: Sequence[int], runs: int) -> list[Row]:
    """A row for each number of messages; of SEAL ciphertexts, which have N, one row. Raises AssertionError if the receiver has a wrong message."""
    with tempfile.TemporaryDirectory() as folder:
        committee = api.init(Path(folder) / "c", parties, WITH_MACS)
        bodies = _requests(committee, parameters, counts)

        def party(context: PartyContext) -> list[tuple[list[float], dict[str, int], list[bytes], float]]:
            kind = PaddedServedKey(committee, context.party, "key", rounding)
            parsed = [kind.read({"key": kind.key_id}, body) for body in bodies]
            group = pool_group(context)
            pool, start = Pool(context, group, kind.variant), time.monotonic()
            try:
                pool.fill((runs + 1) * sum(request.count for request in parsed))
                filled, found = time.monotonic() - start, []
                for i, request in enumerate(parsed):
                    answers, times, spent = [], [], {}
                    for j in range(runs + 1):
                        before, start = context.session.stats(), time.monotonic()
                        answers += kind.run(context, group, pool, [(f"receiver/{i}x{j}", request)])
                        times.append(time.monotonic() - start)
                        after = context.session.stats()
                        spent = {name: after[name] - before[name] for name in ("rounds", "bytes_sent")}
                    found.append((times[1:], spent, answers, filled))
                return found
            finally:
                pool.close()
                kind.close()

        results = run_in_process(committee, party)
        return [_row(committee, parameters, rounding, bodies[i], [found[i] for found in results]) for i in range(len(bodies))]


def _row(
    committee: Committee, parameters: str, rounding: str, body: bytes, found: Sequence[tuple[list[float], dict[str, int], list[bytes], float]]
) -> Row:
    info = api.load_key(committee.key_folder(0, "key"))
    scheme, times, spent = encryption_of(info), found[0][0], found[0][1]
    ciphertext = scheme.parse(info, body, "the request", rounding)
    count, padded = scheme.item_count(info, ciphertext), scheme.padded(info.parameters)
    received = []
    for answers in zip(*(answers for _, _, answers, _ in found), strict=True):
        start = time.monotonic()
        words = scheme.words_of(info.parameters, received_messages(committee, padded, answers, count))
        received.append(time.monotonic() - start)
        scheme.plaintexts(info, [ciphertext], words)
        assert scheme.title != "LWE" or (received_messages(committee, padded, answers, count) == MESSAGE).all()
    return {
        "parameters": parameters, "rounding": rounding, "protocol": committee.protocol, "n": committee.size, "messages": count,
        "rounds": spent["rounds"] + COMMITMENTS + (COMPARED_TOSS if committee.size > 2 else TOSS), "bytes_sent": spent["bytes_sent"], "answer_bytes": len(found[0][2][0]),
        "batch_ms": round(1e3 * statistics.median(times), 2), "receiver_ms": round(1e3 * statistics.median(received), 2),
        "fill_s_of_all": round(found[0][3], 1),
    }  # fmt: skip


SHOWN = (
    "parameters", "rounding", "protocol", "n", "messages", "rounds", "bytes_sent", "answer_bytes", "batch_ms", "receiver_ms", "fill_s_of_all", *MACHINE,
)  # fmt: skip
OPTIONS: Arguments = {
    "parties": {"default": "2,3", "help": "numbers of parties (default: 2,3)"},
    "parameters": {"default": "lwe64-p2", "help": "a set of LWE over 2^64, BFV or BGV (default: lwe64-p2)"},
    "rounding": {"default": "round_ltz_circuit", "help": "of LWE also round_ltz_table (default: round_ltz_circuit)"},
    "counts": {"default": "1,100", "help": "messages of a request, LWE; of SEAL ciphertexts give one number (default: 1,100)"},
    "runs": {"type": int, "default": 11, "help": "measurements of each (default: 11)"},
}


def job(parties: int, given: Options) -> list[Row]:
    """The rows of a committee."""
    return measure(parties, given.parameters, given.rounding, [int(count) for count in given.counts.split(",")], max(1, given.runs))


BENCH = Bench("served", lambda given: [int(parties) for parties in given.parties.split(",")], job, (), shown=SHOWN, label=str, options=OPTIONS)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
