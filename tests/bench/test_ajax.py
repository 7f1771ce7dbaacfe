"""The benchmark of keys of ajax53 finds the figures of the paper, and asks for committees that make such keys."""

from __future__ import annotations

from bench.decryption import ajax
from keyquorum import api
from keyquorum.fhe.lwe import FHEW_SETS
from keyquorum.schemes.fhew.keygen import FhewRequest


def test_figures_are_those_of_the_paper() -> None:
    assert [ajax.paper_seconds(parties, "lan") for parties in (3, 5, 21)] == ["17.6", "", "91.9"]
    assert [ajax.paper_seconds(21, link) for link in ("none", "wan")] == ["91.9", "908.0"]


def test_every_configuration_makes_keys() -> None:
    for key in ajax.KEYS:
        if key.link != ajax.NO_LINK:
            assert api.keygen_job("key", ajax.PARAMETERS, link=f"{key.link},shared")["link"] == f"{key.link},shared"
        FhewRequest(FHEW_SETS[ajax.PARAMETERS], key.noise).check_committee(api.in_process_committee(key.parties, key.protocol))
