"""Metadata of FHEW keys, their public files, and the sharing of their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keyquorum.fhe.fhew import KEY_FILES
from keyquorum.fhe.lwe import FhewParameters
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.schemes.lwe.key import sharing_of as lwe_sharing
from keyquorum.schemes.seeded_keys import SeededKeyInfo, SeededKeys
from keyquorum.sharing.numbers import kind_of

from .noise import NOISES, NoisePlan


@dataclass(frozen=True, kw_only=True)
class FhewKeyInfo(SeededKeyInfo[FhewParameters]):
    """Metadata of a FHEW key. ``noise``: how its noise was made, one of :data:`.NOISES`; empty where the key is
    known by a ciphertext alone."""

    noise: str = ""

    @property
    def noise_plan(self) -> NoisePlan:
        """How its noise was made."""
        return NoisePlan(self.parameters, self.noise, self.parties, self.threshold)

    def check_types(self, texts: Sequence[object] = (), numbers: Sequence[object] = ()) -> None:
        super().check_types([self.noise, *texts], numbers)
        if self.noise not in NOISES:
            raise ValueError("entries of other types")


FHEW_KEYS = SeededKeys("FHEW", FhewKeyInfo, KEY_FILES, "ajax53")
"""Keys of FHEW, and their files."""


def sharing_of(committee: Committee, parameters: FhewParameters) -> Sharing:
    """Protocol and domain of the secrets' shares; refuses a committee that cannot use them."""
    if not kind_of(committee).plain_shares:
        raise ParameterError(
            f"{committee.protocol}: phases modulo the prime of {parameters.name} are scaled share by share, which MACs do not follow: "
            "take a committee of shamir or rep-field"
        )
    return lwe_sharing(committee, parameters)


__all__ = ["FHEW_KEYS", "FhewKeyInfo", "sharing_of"]
