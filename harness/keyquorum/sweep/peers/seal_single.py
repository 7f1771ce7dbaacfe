"""One key of SEAL: ``python -m keyquorum.sweep.peers.seal_single SET``. Prints one line of JSON, see :func:`keyquorum.sweep.peers.run`."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from keyquorum.fhe import seal
from keyquorum.fhe.parameters import load
from keyquorum.fhe.values import Numbers

Phases = list[tuple[str, float, float]]


@contextmanager
def _phase(phases: Phases, name: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    phases.append((name, time.perf_counter() - wall, time.process_time() - cpu))


def main() -> int:
    """Makes a public and a relinearisation key, encrypts random values, decrypts them."""
    parameters, library = load(sys.argv[1]), seal.require_seal()
    context, rng = seal.context(parameters), np.random.default_rng()
    phases: Phases = []
    values: Numbers
    if parameters.scheme == "ckks":
        values = rng.uniform(-1, 1, parameters.slots)
    else:
        values = rng.integers(0, parameters.plain_modulus, parameters.slots)
    with _phase(phases, "keys"):
        generator = library.KeyGenerator(context)
        public = generator.create_public_key()
        generator.create_relin_keys()
    with _phase(phases, "encryption"):
        ciphertext = library.Encryptor(context, public).encrypt(seal.encode(parameters, values))
    with _phase(phases, "decryption"):
        plain = library.Decryptor(context, generator.secret_key()).decrypt(ciphertext)
        encoder = library.CKKSEncoder(context) if parameters.scheme == "ckks" else library.BatchEncoder(context)
        got = np.asarray(encoder.decode(plain))
    if parameters.scheme == "ckks":
        right = bool(np.abs(got - values).max() < 1e-3)
    else:
        right = bool(np.array_equal(got % parameters.plain_modulus, values))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"phases": phases, "right": right, "peak_memory": memory}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
