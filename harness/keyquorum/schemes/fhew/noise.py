"""How the noise of FHEW keys is made: by contributions of all parties, or jointly. Paper: Ajax (ePrint 2025/1834), sections 2.1 and 4.1.

``local``: every party contributes deviates of a discrete Gaussian of variance max(variance / (n - t), LEAST), and the noise is their sum. It is no
discrete Gaussian itself. The n - t honest parties alone contribute the variance of the set, on which the security depends: what hides the secrets
from t parties is the sum of n - t such deviates. Its distance from a discrete Gaussian of the whole variance is small (10^-16 for 3 parties, 8 10^-3
at the least variance), and LWE with that sum is the assumption. A corrupted party may contribute anything, so this is for semi-honest committees.

``exact``: centred binomial noise of at least the variance, made jointly of random bits that nobody knows. The noise of the key-switching key is wide: a
weighted centred binomial plus a uniform part that fills its gaps (`sample_wide_noise`), with the variance of the set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from keyquorum.fhe.fhew import SWITCHING
from keyquorum.fhe.lwe import FhewParameters, Ints
from keyquorum.fhe.lwe_sets import tuniform_deviation
from keyquorum.sharing.randomness import discrete_gaussian, table_gaussian

LOCAL, EXACT = "local", "exact"
NOISES = (LOCAL, EXACT)
LEAST = 0.49
"""The least variance that a party contributes: that of the scale 0.7, the least that the paper's sampler has."""


class Wide(NamedTuple):
    """The distribution weight * c + u: c centred binomial of 2 ``half`` bits, and u of TUniform(``b``)."""

    half: int
    weight: int
    b: int


@dataclass(frozen=True)
class NoisePlan:
    """The noise of a key of n = ``parties`` parties, of which t = ``threshold`` may be corrupted. ``noise``: one of :data:`NOISES`."""

    parameters: FhewParameters
    noise: str
    parties: int
    threshold: int

    @property
    def contributed(self) -> float:
        """The variance of a party's contributions to the noise of public key and bootstrapping key."""
        return max(self.parameters.variance / (self.parties - self.threshold), LEAST)

    @property
    def half(self) -> int:
        """Bits on each side of the centred binomial noise, whose variance is half of that: the least with the set's variance."""
        return math.ceil(2 * self.parameters.variance)

    @property
    def wide(self) -> Wide:
        """The noise of the key-switching key that is made jointly: its variance is that of the set, up to the rounding of the weight."""
        variance = self.parameters.switch_deviation**2
        b = max(0, round(math.log2(variance) / 2) - 2)
        weight = round(math.sqrt((variance - tuniform_deviation(b) ** 2) / (self.half / 2)))
        return Wide(self.half, weight, b)

    @property
    def variance(self) -> float:
        """The variance of the noise of public key and bootstrapping key."""
        return self.parties * self.contributed if self.noise == LOCAL else self.half / 2

    @property
    def growth(self) -> float:
        """The same as a multiple of the set's variance: n / (n - t), where contributions are not of the least variance."""
        return self.variance / self.parameters.variance

    @property
    def switch_variance(self) -> float:
        """The variance of the noise of the key-switching key."""
        if self.noise == LOCAL:
            return self.parties * self.parameters.switch_deviation**2 / (self.parties - self.threshold)
        return self.wide.weight**2 * self.wide.half / 2 + tuniform_deviation(self.wide.b) ** 2

    def contribution(self, kind: str, size: int) -> Ints:
        """This party's summands of the noise of ``size`` rows, from the operating system's randomness. Whoever calls this wipes them.

        The sampler of the wide noise of the key-switching key looks up tables, so its time and its addresses are not constant.
        """
        if kind == SWITCHING:
            return discrete_gaussian(size, self.parameters.switch_deviation / math.sqrt(self.parties - self.threshold))
        return table_gaussian(size, self.contributed)

    def text(self) -> str:
        """For people: its distribution."""
        if self.noise == LOCAL:
            return f"sums of contributions of {self.parties} parties, {self.growth:.3g} times the variance of the set"
        return f"centred binomial of variance {self.variance:g}, made jointly"


__all__ = ["EXACT", "LEAST", "LOCAL", "NOISES", "NoisePlan", "Wide"]
