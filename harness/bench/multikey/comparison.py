"""Multi-key against joint keys of one set: bytes, time of a relinearised product, key generation, and after how many products joint keys have paid for
themselves. Joint keys are those of the quorum, with which stock SEAL computes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from keyquorum.fhe import seal
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE

from ..runner import Row, new_key
from .relinearisation import evaluation_key
from .scheme import Party
from .sets import CKKS_SET2, Shape
from .workloads import Times, WrongResultError, beside, keys, relinearised, rounded, timed

MIB = 1 << 20


def _bytes(workload: str, reading: str, shape: Shape, parties: int, count: int) -> Row:
    return {
        "workload": workload, "reading": reading, "parameters": shape.name, "gadget": "rns", "parties": parties, "threads": "", "quantity": "MiB",
        "ours": rounded(count / MIB),
    }  # fmt: skip


def sizes(parameters: ParameterSet, k: int) -> Iterator[Row]:
    """Bytes of ciphertexts and evaluation keys, computed."""
    shape = Shape.of(parameters)
    yield _bytes("ciphertext", "multi-key, k + 1 polynomials", shape, k, shape.ciphertext(k + 1))
    yield _bytes("ciphertext", "multi-key, 2 k polynomials", shape, k, shape.ciphertext(2 * k))
    yield _bytes("ciphertext", "joint", shape, k, shape.ciphertext(2))
    yield _bytes("evaluation key", "multi-key", shape, k, k * shape.evaluation_key)
    yield _bytes("evaluation key", "joint", shape, k, shape.joint_key)


def ckks_sizes() -> Iterator[Row]:
    """Bytes of the keys of MK-CKKS that table 6 of paper 004 quotes, computed."""
    table, each = "004_table6_key_sizes", {"pk": CKKS_SET2.public_key, "swk": CKKS_SET2.evaluation_key}
    for row in published.load(table):
        if row["protocol"] == "MK-CKKS":
            k, name = int(row["parties"] or 0), {"pk": "public key", "swk": "evaluation key"}[str(row["key"])]
            made = _bytes(name, "multi-key", CKKS_SET2, k, k * each[str(row["key"])])
            yield {**made, **beside(table, float(made["ours"]), float(row["mb"] or 0))}


@cache
def joint_product(parameters: ParameterSet, runs: int) -> Times:
    """Times of SEAL's multiplication and relinearisation, under a key of SEAL's own: a joint key has the same form."""
    library, context = seal.require_seal(), seal.context(parameters)
    generator = library.KeyGenerator(context)
    relin, evaluator = generator.create_relin_keys(), library.Evaluator(context)
    encryptor = library.Encryptor(context, generator.create_public_key())
    a, b = (encryptor.encrypt(seal.encode(parameters, [i, 2, 3])) for i in (1, 4))
    times, result = timed(lambda: evaluator.relinearize(evaluator.multiply(a, b), relin), runs)
    plain = library.Decryptor(context, generator.secret_key()).decrypt(result)
    if list(seal.decode(parameters, plain.to_bytes())[:3]) != [4, 4, 9]:
        raise WrongResultError("SEAL's product decrypts to something else")
    return times


@cache
def alone(parameters: ParameterSet, runs: int) -> Times:
    """Times in which a party makes its keys alone: secret, public key of all rows, evaluation key."""
    made = keys(parameters, "rns")
    reference = made.reference

    def one() -> None:
        party = Party(0, reference)
        evaluation_key(party)
        party.wipe()

    return timed(one, runs)[0]


@cache
def quorum(parameters: ParameterSet, parties: int) -> tuple[float, float]:
    """Seconds in which a quorum makes a public and a relinearisation key (from the start of its processes to the files, over TLS, all but one corrupted,
    semi-honest), and CPU seconds of its busiest party."""
    result, seconds, _ = new_key(ADDITIVE, parties, parameters)
    return seconds, max(report.cpu_seconds for report in result.reports)


def keys_and_products(parameters: ParameterSet, k: int, runs: int, with_quorum: bool) -> Iterator[Row]:
    """Times of keys, and of relinearised products under a joint key; and the number of products after which the quorum's key generation is paid."""
    shape, multi, joint, own = (
        Shape.of(parameters),
        relinearised(parameters, "rns", k, runs),
        joint_product(parameters, runs),
        alone(parameters, runs),
    )
    one: Row = {"parameters": shape.name, "gadget": "rns", "parties": k, "threads": 1}
    yield {"workload": "W2r", "reading": "joint", **one, **joint.cells}
    yield {"workload": "keys", "reading": "multi-key: each party alone", **one, **own.cells}
    if with_quorum:
        seconds, cpu = quorum(parameters, k)
        ms = rounded(1e3 * seconds)
        yield {
            "workload": "keys",
            "reading": "joint",
            **one,
            "quantity": "ms",
            "ours": ms,
            "low": ms,
            "high": ms,
            "runs": 1,
            "cpu_ms": rounded(1e3 * cpu),
        }
        if multi.ms > joint.ms:
            saved = (1e3 * seconds - own.ms) / (multi.ms - joint.ms)
            yield {"workload": "break-even", "reading": "relinearised products", **one, "quantity": "products", "ours": rounded(max(saved, 0))}


__all__ = ["alone", "ckks_sizes", "joint_product", "keys_and_products", "quorum", "sizes"]
