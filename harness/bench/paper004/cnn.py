"""Keys and decryption of the paper's encrypted network (section 6.2.1, tables 5 and 6)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keyquorum.fhe import seal
from keyquorum.fhe.decode import ckks_plaintext
from keyquorum.fhe.errors import SealOperationError
from keyquorum.fhe.keys import key_bytes
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.errors import CiphertextError
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.schemes.seal.decrypt import check_decryption
from keyquorum.schemes.seal.decrypt import decrypt as decrypt_flooded
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.schemes.seal.keygen import SealRequest, generate
from keyquorum.schemes.seal.phases import shares_of_phase
from keyquorum.sharing.rounding import ROUNDINGS
from keyquorum.sharing.shares import Shares
from keyquorum.sweep.decryption import common_start

from ..runner import Row, committee_of, new_key
from .beside import Asked, Cost, compare, paper_figure, time_and_traffic

PAPER_SET, SECURE_SET, QUICK_SET = "ckks-16384-seed004", "ckks-16384", "ckks-4096"
GALOIS_KEYS = 7
"""Galois keys of our network (keyquorum.cnn), which the paper's does not count."""
LIMIT = 1 << 24
SCALE_BITS = 30
"""Scale of the message that is opened without flooding: it has to fit the last prime."""
TOLERANCE = 2.0**-9
"""Of a value: some ten deviations of a flooded decryption of ckks-4096, the largest of whose 2,048 errors is about 2^-10."""


@dataclass(frozen=True)
class KeySet:
    """A set of key generation, and the distribution of its errors."""

    name: str
    error_law: str

    @property
    def row(self) -> str:
        """The text of its row. The paper's 484 bits are above the 438 of 128-bit security."""
        return f"key generation {self.name}" + (", no 128-bit security" if self.name == PAPER_SET else "")


KEY_SETS = (KeySet(PAPER_SET, "gaussian"), KeySet(PAPER_SET, "cbd"), KeySet(SECURE_SET, "cbd"))
"""The paper's set with its errors, with SEAL's errors, and a set of 128-bit security."""


def key_rows(asked: Asked, made: KeySet) -> list[Row]:
    """Key generation: public key and one relinearisation key. From the start of the processes to the files on disk."""
    name, runs = QUICK_SET if asked.quick else made.name, []
    for _ in range(asked.repeats):
        result, seconds, _ = new_key(ADDITIVE, asked.parties, name, error_law=made.error_law, link=asked.job.get("link"))
        runs.append([{"seconds": seconds, "cpu": r.cpu_seconds, "sent": r.total.bytes_sent} for r in result.reports])
    row: Row = {
        "table": "5", "row": KeySet(name, made.error_law).row, "cell": "KeyGen", "method": made.error_law, "best": "yes" if made == KEY_SETS[0] else "no", "q_bits": "",
        "batch": 1,
    }  # fmt: skip
    match = None if asked.quick or made.name != PAPER_SET else {"operation": "KeyGen"}
    return time_and_traffic(row | asked.columns, asked, match, ("seconds", "communication_gb"), Cost.of([*zip(*runs, strict=True)]))


def lowest(info: SealKeyInfo, data: bytes) -> bytes:
    """A fresh ciphertext, switched down to the fewest primes at which the committee decrypts it with flooding."""
    evaluator = seal.Evaluator(info.parameters)
    while read_ciphertext(info.parameters, data).level_primes > 1:
        try:
            below = evaluator.next_level(data)
            check_decryption(info, [read_ciphertext(info.parameters, below)], 0, ROUNDINGS[0])
        except (CiphertextError, SealOperationError):
            break
        data = below
    return data


def opened(context: PartyContext, working: Shares, prime: int) -> np.ndarray:
    """UNSAFE: the phase as it is, noise included, to every party: its noise gives the secret key away. What the paper's decryption opens; no command does."""
    committee, phase = context.committee, working["phase"]
    engine = context.session.engine(committee.field_protocol, f"F_{prime}", "open", committee.threshold)
    words = engine.read(engine.open(engine.import_(working.file.read(engine, phase.start, phase.length), phase.length)))
    return np.where(words < 0, words + prime, words).astype(np.uint64)


class Decryptions:
    """Decryptions of one ciphertext of random reals at one party."""

    def __init__(self, context: PartyContext, parameters: ParameterSet, flooded: bool) -> None:
        self.context, self.parameters, self.flooded = context, parameters, flooded
        self.key = generate(context, SealRequest(parameters, relin=False))
        self.values = np.random.default_rng(1).uniform(-1, 1, parameters.ring_degree // 2)
        self.ciphertext = self._encrypted()

    def _encrypted(self) -> Ciphertext:
        """Encrypted by party 0, and sent to all others."""
        set_, session = self.parameters, self.context.session
        if session.party:
            return read_ciphertext(set_, session.recv(0, LIMIT))
        scale = None if self.flooded else 2.0**SCALE_BITS
        data = seal.encrypt(set_, self.key.public["public.key"], self.values, scale)
        data = lowest(self.key.info, data) if self.flooded else seal.Evaluator(set_).last_level(data)
        for other in range(1, session.parties):
            session.send(other, data)
        return read_ciphertext(set_, data)

    def run(self) -> bytes | None:
        """Decrypts: the plaintext, of a flooded decryption at party 0 alone."""
        key, ciphertext = self.key, self.ciphertext
        if self.flooded:
            results = decrypt_flooded(self.context, key.info, key.shares, [ciphertext], 0, ROUNDINGS[0])
            return None if results is None else results[0].plaintext
        q = self.parameters.coeff_modulus[0]
        with shares_of_phase(self.context, key.info, key.shares[0], 0, ciphertext) as working:
            return ckks_plaintext(self.parameters, opened(self.context, working, q)[None], ciphertext.scale)

    def wrong(self, plaintext: bytes | None) -> int:
        """Values that are not those that were encrypted."""
        if plaintext is None:
            return 0
        found = seal.decode(self.parameters, plaintext)
        return int(np.count_nonzero(np.abs(found - self.values) > TOLERANCE))


@party_job("bench:paper004-decrypt", {"parameters": str, "flooded": bool, "repeats": int})
def decrypt_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:paper004-decrypt``: one ciphertext, decrypted ``repeats`` times after two runs that are not counted, under a key that is made for it and
    kept nowhere. Returns the costs at this party from the loaded shares on, and the number of primes of the ciphertext."""
    decryptions, measured, wrong = Decryptions(context, load_parameters(job["parameters"], warn=False), job["flooded"]), [], 0
    for _ in range(2 + job["repeats"]):
        common_start(context)
        before, start, cpu = context.backend.stats(), time.monotonic(), time.process_time()
        plaintext = decryptions.run()
        seconds, cpu, after = time.monotonic() - start, time.process_time() - cpu, context.backend.stats()
        measured.append({"seconds": seconds, "cpu": cpu, "sent": after["bytes_sent"] - before["bytes_sent"]})
        wrong += decryptions.wrong(plaintext)
    return {"runs": measured[2:], "wrong": wrong, "primes": decryptions.ciphertext.level_primes}


def decryption_rows(asked: Asked, flooded: bool) -> list[Row]:
    """Decryption of one ciphertext, online. The paper's bytes are those that a party sends: 16,384 words of 8 bytes to each other party."""
    name = QUICK_SET if asked.quick else PAPER_SET
    with committee_of(ADDITIVE, asked.parties) as committee:
        job = {"kind": "bench:paper004-decrypt", "parameters": name, "flooded": flooded, "repeats": asked.repeats, **asked.job}
        results = run_processes(committee.folder, job, io_timeout=900)
    cost, primes = Cost.of([r["runs"] for r in results]), results[0]["primes"]
    row: Row = {
        "table": "5", "row": f"decryption of a ciphertext, {name}, primes {primes}, " + ("flooded" if flooded else "opened plainly, unsafe"), "cell": "Dec",
        "method": "flooded" if flooded else "opened plainly", "best": "yes", "q_bits": "", "batch": 1, "wrong": sum(r["wrong"] for r in results),
    }  # fmt: skip
    match = {"operation": "Dec"}
    paper = [None if asked.quick else paper_figure("5", match, asked.parties, q, asked.network) for q in ("seconds", "communication_kb")]
    row |= asked.columns
    return [
        compare(row, "seconds", cost.seconds, paper[0], {"cpu_party": cost.cpu}),
        compare(row, "communication_kb", cost.sent, paper[1], {"ours_all_parties": cost.sent_by_all, "sent_by_a_party": cost.sent}),
    ]


def sizes_of_keys(parameters: ParameterSet) -> dict[str, int]:
    """Bytes of the keys of our network."""
    public, switching = key_bytes(parameters)
    return {"public key": public, "relinearisation key": switching, f"{GALOIS_KEYS} Galois keys": GALOIS_KEYS * switching}


def size_rows() -> Iterator[Row]:
    """Table 6: sizes of keys, computed, for any number of parties. The paper's switching key is the relinearisation key."""
    cells = {"public key": "pk", "relinearisation key": "swk"}
    for name, size in sizes_of_keys(load_parameters(PAPER_SET, warn=False)).items():
        match = {"key": cells.get(name, ""), "protocol": "GMPFHE-CKKS", "parties": None}
        row: Row = {
            "table": "6", "row": f"{name} of {PAPER_SET}", "cell": cells.get(name, name), "method": "computed", "best": "yes", "parties": "any", "link": "none",
            "shared_link": "", "q_bits": "", "batch": 1, "runs": 0,
        }  # fmt: skip
        yield compare(row, "mb", size, paper_figure("6", match, 0, "mb"))


__all__ = ["KEY_SETS", "decryption_rows", "key_rows", "size_rows", "sizes_of_keys"]
