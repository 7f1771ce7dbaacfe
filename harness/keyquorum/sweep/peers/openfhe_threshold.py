"""OpenFHE's n-of-n threshold FHE, all parties in this process: ``python openfhe_threshold.py SCHEME PARTIES``.

Public key and key for products (as in OpenFHE's documentation of threshold FHE), one encryption, one joint decryption, with noise
flooding. Depth 1, t = 65537, 128 bits of security; OpenFHE chooses ring and primes. Nothing but OpenFHE and the standard library
is imported, so that any Python for which OpenFHE has a wheel can run this file. Prints one line of JSON.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

VALUES = 1024
Phases = list[tuple[str, float, float]]


@contextmanager
def _phase(phases: Phases, name: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    phases.append((name, time.perf_counter() - wall, time.process_time() - cpu))


def _context(fhe: Any, scheme: str) -> Any:
    chosen = {"ckks": "CCParamsCKKSRNS", "bfv": "CCParamsBFVRNS", "bgv": "CCParamsBGVRNS"}[scheme]
    parameters = getattr(fhe, chosen)()
    parameters.SetMultiplicativeDepth(1)
    parameters.SetSecurityLevel(fhe.HEStd_128_classic)
    if scheme == "ckks":
        parameters.SetScalingModSize(50)
    else:
        parameters.SetPlaintextModulus(65537)
        parameters.SetMultipartyMode(fhe.NOISE_FLOODING_MULTIPARTY)
    made = fhe.GenCryptoContext(parameters)
    for feature in (fhe.PKE, fhe.KEYSWITCH, fhe.LEVELEDSHE, fhe.ADVANCEDSHE, fhe.MULTIPARTY):
        made.Enable(feature)
    return made


def _keys(context: Any, parties: int) -> list[Any]:
    """A pair of keys of each party; the last public key is the joint one. Inserts the key for products."""
    pairs = [context.KeyGen()]
    for _ in range(parties - 1):
        pairs.append(context.MultipartyKeyGen(pairs[-1].publicKey))
    first = context.KeySwitchGen(pairs[0].secretKey, pairs[0].secretKey)
    joint = first
    for pair in pairs[1:]:
        part = context.MultiKeySwitchGen(pair.secretKey, pair.secretKey, first)
        joint = context.MultiAddEvalKeys(joint, part, pair.publicKey.GetKeyTag())
    tag, product = pairs[-1].publicKey.GetKeyTag(), None
    for pair in pairs:
        part = context.MultiMultEvalKey(pair.secretKey, joint, tag)
        product = part if product is None else context.MultiAddEvalMultKeys(product, part, tag)
    context.InsertEvalMultKey([product])
    return pairs


def main(scheme: str, parties: int) -> dict[str, Any]:
    """Measures; returns what is printed."""
    try:
        fhe = import_module("openfhe")
    except ImportError as error:
        here = ".".join(map(str, sys.version_info[:2]))
        return {"missing": f"Python {here}: {error}"}
    phases: Phases = []
    context = _context(fhe, scheme)
    with _phase(phases, "keys"):
        pairs = _keys(context, parties)
    if scheme == "ckks":
        values: list[Any] = [random.uniform(-1, 1) for _ in range(VALUES)]
    else:
        values = [random.randrange(-32768, 32769) for _ in range(VALUES)]
    with _phase(phases, "encryption"):
        plain = context.MakeCKKSPackedPlaintext(values) if scheme == "ckks" else context.MakePackedPlaintext(values)
        ciphertext = context.Encrypt(pairs[-1].publicKey, plain)
    with _phase(phases, "decryption"):
        parts = [context.MultipartyDecryptLead([ciphertext], pairs[0].secretKey)[0]]
        parts += [context.MultipartyDecryptMain([ciphertext], pair.secretKey)[0] for pair in pairs[1:]]
        opened = context.MultipartyDecryptFusion(parts)
        opened.SetLength(VALUES)
    if scheme == "ckks":
        right = max(abs(a - b) for a, b in zip(opened.GetRealPackedValue(), values)) < 1e-3  # noqa: B905
    else:
        right = list(opened.GetPackedValue()[:VALUES]) == values
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"phases": phases, "right": right, "peak_memory": memory}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
