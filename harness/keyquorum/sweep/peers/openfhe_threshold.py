"""OpenFHE's n-of-n threshold FHE, all parties in this process: ``python openfhe_threshold.py SCHEME PARTIES [RING BITS RUNS]``.

Public key and key for products (as in OpenFHE's documentation of threshold FHE), one encryption, one joint decryption. BFV and BGV are
decrypted with noise flooding, CKKS with OpenFHE's fixed noise. t = 65537, 128 bits of security. Without RING the depth is 1, and OpenFHE
chooses ring and primes. With RING that is the ring degree, and the depth the largest whose modulus has at most BITS bits. The first run is
not counted if there are several. Nothing but OpenFHE and the standard library is imported, so that any Python for which OpenFHE has a wheel
can run this file. Prints one line of JSON: times of the last run, of all counted runs, ring degree, bits of the modulus and threads.
"""

import json
import math
import os
import random
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

VALUES = 1024
DEEPEST = 20
"""Depths that are tried for a ring and a modulus."""
Phases = list[tuple[str, float, float]]


@contextmanager
def _phase(phases: Phases, name: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    phases.append((name, time.perf_counter() - wall, time.process_time() - cpu))


def _log2_q(context: Any) -> float:
    """Bits of the modulus of fresh ciphertexts."""
    return math.log2(context.GetModulus())


def _context(fhe: Any, scheme: str, ring: int = 0, bits: float = 0.0) -> Any:
    """A context of depth 1 or, with ``ring``, of the largest depth that the ring and ``bits`` allow. Raises LookupError if none does."""
    if not ring:
        return _made(fhe, scheme, 1, 0)
    found, why = None, f"its smallest modulus has more than {bits:.0f} bits"
    for depth in range(DEEPEST):
        try:
            made = _made(fhe, scheme, depth, ring)
        except RuntimeError as error:  # the ring is too small for this depth, or the depth for the scheme
            why = str(error).splitlines()[-1]
            if found is None and depth == 0:
                continue
            break
        if _log2_q(made) > bits:
            break
        found = made
    if found is None:
        raise LookupError(f"OpenFHE has no {scheme} with N = {ring} and a modulus of at most {bits:.0f} bits: {why}")
    return found


def _made(fhe: Any, scheme: str, depth: int, ring: int) -> Any:
    chosen = {"ckks": "CCParamsCKKSRNS", "bfv": "CCParamsBFVRNS", "bgv": "CCParamsBGVRNS"}[scheme]
    parameters = getattr(fhe, chosen)()
    parameters.SetMultiplicativeDepth(depth)
    parameters.SetSecurityLevel(fhe.HEStd_128_classic)
    if ring:
        parameters.SetRingDim(ring)
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


def _run(context: Any, scheme: str, parties: int) -> tuple[Phases, bool]:
    """Times of the phases of one run, and whether the decrypted values are right."""
    phases: Phases = []
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
        return phases, max(abs(a - b) for a, b in zip(opened.GetRealPackedValue(), values)) < 1e-3  # noqa: B905
    return phases, list(opened.GetPackedValue()[:VALUES]) == values


def main(scheme: str, parties: int, ring: int = 0, bits: float = 0.0, runs: int = 1) -> dict[str, Any]:
    """Measures; returns what is printed."""
    try:
        fhe = import_module("openfhe")
    except ImportError as error:
        here = ".".join(map(str, sys.version_info[:2]))
        return {"missing": f"Python {here}: {error}"}
    try:
        context = _context(fhe, scheme, ring, bits)
    except LookupError as error:
        return {"refused": str(error)}
    made = [_run(context, scheme, parties) for _ in range(runs if runs == 1 else runs + 1)][-runs:]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "phases": made[-1][0],
        "runs": [phases for phases, _ in made],
        "right": all(right for _, right in made),
        "peak_memory": memory,
        "ring_degree": context.GetRingDimension(),
        "log2_q": _log2_q(context),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), *(int(word) for word in sys.argv[3:]))))
