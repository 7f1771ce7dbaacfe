"""Estimates how long the primal attack takes on the parameter sets of LWE, TFHE and FHEW: prints the tables of docs/pages/tfhe.md and fhew.md, and what
docs/pages/decryption.md says of the sets of LWE.
The rounded results are in the files of the sets, params/tfhers-2-2.toml and params/ajax53.toml.

The attack embeds an LWE instance into a lattice with one unusually short vector, (e, nu s, 1), and finds it by BKZ with blocks of size beta. It succeeds if
sqrt(beta) sigma <= delta^(2 beta - d - 1) vol^(1/d) (Alkim, Ducas, Poeppelmann, Schwabe, USENIX Security 2016, section 6.3), where d = m + n + 1,
vol = q^m nu^n, and nu = sigma / sigma_s scales the secret to the size of the noise. It costs 8 d 2^(0.292 beta + 16.4) operations (Becker, Ducas, Gama, Laarhoven,
SODA 2016). The number of samples m is the best one for the attacker.

This is one attack, and the sizes are of its usual heuristics: hybrid attacks on binary secrets and memory are left out. Calibration: `known`, and
tests/test_lwe_security.py.

    python Scripts/lwe_security.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from keyquorum.fhe.lwe import FHEW_SETS, LWE_SETS, TFHE_SETS
from keyquorum.fhe.lwe_sets import tuniform_deviation


@dataclass(frozen=True)
class Instance:
    """LWE: dimension, log2 of the modulus, deviations of noise and of a coefficient of the secret, and the most samples that an attacker gets."""

    name: str
    dimension: int
    modulus_bits: float
    noise: float
    secret: float
    samples: int


def root_hermite(beta: int) -> float:
    """delta of BKZ with blocks of size ``beta``, 50 or more (Chen's thesis, 2013)."""
    return float(((math.pi * beta) ** (1 / beta) * beta / (2 * math.pi * math.e)) ** (1 / (2 * (beta - 1))))


def succeeds(instance: Instance, beta: int, m: int) -> bool:
    """Whether blocks of size ``beta`` find the secret from ``m`` samples."""
    n = instance.dimension
    d = m + n + 1
    volume = m * instance.modulus_bits + n * math.log2(instance.noise / instance.secret)
    short = math.log2(beta) / 2 + math.log2(instance.noise)
    return short <= (2 * beta - d - 1) * math.log2(root_hermite(beta)) + volume / d


def best_samples(instance: Instance, beta: int) -> int:
    """The number of samples whose lattice is best: its dimension balances delta^d and vol^(1/d)."""
    n = instance.dimension
    bits = instance.modulus_bits - math.log2(instance.noise / instance.secret)
    best = math.sqrt(n * bits / math.log2(root_hermite(beta)))
    return max(1, min(instance.samples, round(best) - n - 1))


def bits(instance: Instance) -> tuple[float, int]:
    """log2 of the operations of the cheapest attack, and its block size."""
    low, high = 50, 4000
    while low < high:
        middle = (low + high) // 2
        if succeeds(instance, middle, best_samples(instance, middle)):
            high = middle
        else:
            low = middle + 1
    d = best_samples(instance, low) + instance.dimension + 1
    return 0.292 * low + 16.4 + math.log2(8 * d), low


def known() -> list[tuple[Instance, int]]:
    """Instances with a published level: the gates of the TFHE library (Chillotti et al., 2020), and the standard's N = 16384 (HomomorphicEncryption.org, 2018)."""
    many = 1 << 20
    return [
        (Instance("TFHE library, n = 630", 630, 32, 2.0**17, 0.5, many), 128),
        (Instance("ternary, N = 16384, 438 bits", 16384, 438, 3.2, math.sqrt(2 / 3), 16384), 128),
    ]


def instances() -> list[Instance]:
    """The two keys of every set of TFHE and FHEW. A row of a ring key has 2048 samples, and an attacker has all rows."""
    found = []
    for p in TFHE_SETS.values():
        found.append(Instance(f"{p.name}, s", p.lwe_dimension, math.log2(p.modulus), tuniform_deviation(p.lwe_noise), 0.5, 1 << 20))
        found.append(Instance(f"{p.name}, z", p.dimension, math.log2(p.modulus), tuniform_deviation(p.glwe_noise), 0.5, 1 << 20))
    for f in FHEW_SETS.values():
        found.append(Instance(f"{f.name}, s", f.lwe_dimension, math.log2(f.modulus), f.switch_deviation, 0.5, 1 << 20))
        # The coefficients of z are differences of two bits.
        found.append(Instance(f"{f.name}, z", f.dimension, math.log2(f.modulus), math.sqrt(f.variance), math.sqrt(0.5), 1 << 20))
    return found


def plain() -> list[Instance]:
    """Ciphertexts of every set of LWE, whose secrets are binary."""
    return [Instance(p.name, p.dimension, math.log2(p.modulus), p.deviation, 0.5, 1 << 20) for p in LWE_SETS.values()]


def main() -> None:
    """Prints the table."""
    print("| secret | dimension | log2 q | log2 of the noise | block size | log2 of operations |\n| --- | --- | --- | --- | --- | --- |")
    for instance in [*instances(), *plain(), *(one for one, _ in known())]:
        cost, beta = bits(instance)
        print(f"| {instance.name} | {instance.dimension} | {instance.modulus_bits:.0f} | {math.log2(instance.noise):.1f} | {beta} | {cost:.0f} |")


if __name__ == "__main__":
    main()
