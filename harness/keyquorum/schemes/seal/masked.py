"""How often `round_mask_open` may decrypt under a BFV or BGV key: its wrong coefficients leak the secret.

Coefficient j of a result is wrong, by sign(e_j), with probability |e_j| / 2^l; in units of the ciphertext that is |e_j| t/q. After the switch to the last
level e = r0 + r1 s over the integers, and whoever has the ciphertext from before knows r0 and r1, whose coefficients are uniform in [-1/2, 1/2).
The sum, over the wrong coefficients, of their sign times the row of r1 estimates s. After K decryptions the mean of the estimate is
K N s_i t / (12 q), its variance K N E|e| t / (12 q), so

    (mean / deviation)^2 = K N t / (12 q E|e|)     for s_i = 1 or -1.

It takes no chosen ciphertext. At a ratio of 10 the key is read off; :func:`most_masked` keeps it below 2^-5: the estimate of a coefficient, which is
-1, 0 or 1, has a deviation of 32, and the whole key needs some 10^5 times as many decryptions. A better estimator, which weighs what it sees by |e_j|,
has at most some ten times the information.
"""

from __future__ import annotations

import math

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.schemes.base import MASKED, MASKED_ONE

from .noise import rounding

COUNTED = (MASKED, MASKED_ONE)
"""Roundings whose decryptions are counted, together: their errors are the same."""
RATIO = 2.0**-5
"""Mean over deviation of the estimate of a coefficient of the secret, at the limit."""


def estimate_ratio(parameters: ParameterSet, decryptions: int) -> float:
    """Mean over deviation of the estimate of a coefficient of the secret, after so many decryptions."""
    n, q, t = parameters.ring_degree, parameters.coeff_modulus[0], parameters.plain_modulus
    size = rounding(n) * math.sqrt(2 / math.pi)
    return math.sqrt(decryptions * n * t / (12 * q * size))


def most_masked(parameters: ParameterSet) -> int:
    """Ciphertexts that a BFV or BGV key may ever decrypt by the roundings of :data:`COUNTED`."""
    return math.floor((RATIO / estimate_ratio(parameters, 1)) ** 2)


def masked_limit(parameters: ParameterSet) -> str:
    """What is to be said of :data:`COUNTED` under a BFV or BGV set; empty for CKKS, which has no rounding."""
    if parameters.scheme == "ckks":
        return ""
    return f"a key of {parameters.name} decrypts at most {most_masked(parameters):,} ciphertexts with it"


__all__ = ["COUNTED", "MASKED", "estimate_ratio", "masked_limit", "most_masked"]
