"""The benchmark of keys of ajax53 finds the figures of the paper, and asks for committees that make such keys."""

from __future__ import annotations

from bench.decryption import ajax
from keyquorum import api
from keyquorum.fhe.lwe import FHEW_SETS
from keyquorum.schemes.fhew.keygen import FhewRequest


def test_figures_are_those_of_the_paper() -> None:
    assert [ajax.paper_seconds(parties) for parties in (3, 5, 21)] == ["17.6", "", "91.9"]


def test_every_configuration_makes_keys() -> None:
    for key in ajax.KEYS:
        FhewRequest(FHEW_SETS[ajax.PARAMETERS], key.noise).check_committee(api.in_process_committee(key.parties, key.protocol))
