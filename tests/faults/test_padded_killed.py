"""A party with MACs that is killed while it answers receivers outside: no pad is ever used twice, and the next run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.schemes.lwe.scheme import SCHEME
from keyquorum.sharing.openings import receiver_rows
from keyquorum.sharing.receivers import received_messages

from tests.long import LONG

from .workers import run_workers

MESSAGES = [1, 0, 1]
ROWS = receiver_rows(SCHEME.padded(lwe_parameters("lwe64-p2")))
"""Random elements of an item, of which none may serve twice."""
POINTS = [
    "claim/durable",
    "take/read",
    "decrypt/before",
    "receivers/committed",
    "decrypt/after",
    "decrypt/removed",
    "claim/half@2",
    "decrypt/before@3",
]


@pytest.fixture
def committee(tmp_path: Path) -> Committee:
    """Of two, with a key and a file of ciphertexts."""
    made = api.init(tmp_path / "c", 2, "spdz2k")
    api.keygen(made, "key", "lwe64-p2")
    api.encrypt(made.folder, "key", MESSAGES, made.folder / "c.lwe")
    return Committee.load(made.folder)


def killed(committee: Committee, points: Sequence[str], *options: str) -> list[list[str]]:
    """Kills each party at each point, and ends with a run that is right. Returns hashes of the pads and masks that each party used, apart from one another."""
    for point in points:
        for party in (0, 1):
            done = run_workers("padded_worker", committee.folder, {party: point}, *options)
            other = done[1 - party]
            assert done[party] is None and other is not None, (point, party, done)
            assert "answers" in other or "party" in str(other["error"]), (point, other)
    done = run_workers("padded_worker", committee.folder, {}, *options)
    padded = SCHEME.padded(lwe_parameters("lwe64-p2"))
    for i in range(3):
        answers = [bytes.fromhex(each["answers"][i]) for each in done]  # type: ignore[index]
        assert received_messages(committee, padded, answers, len(MESSAGES)).tolist() == MESSAGES
    return [(committee.folder / f"used-{party}").read_text().split() for party in (0, 1)]


@pytest.mark.timeout(300)
def test_killed_anywhere(committee: Committee) -> None:
    for pads in killed(committee, POINTS if LONG else POINTS[2:5]):
        assert len(pads) > 9 * ROWS and len(set(pads)) == len(pads)


@pytest.mark.timeout(120)
def test_without_claims_on_the_disk_pads_are_used_twice(committee: Committee) -> None:
    """The test above, with the claims taken out: it would fail."""
    for pads in killed(committee, ["receivers/committed"], "unclaimed"):
        assert len(set(pads)) < len(pads)
