"""A ballot in which nobody sees a vote (BFV).

Every voter encrypts a vector with one 1 and zeros. Stock SEAL adds the vectors up, and three parties of a Shamir committee decrypt the
tally. Voters are trusted to vote once: nothing here proves that a vector has a single 1.
"""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

import keyquorum

CANDIDATES = ["Ada", "Emmy", "Sofja", "Maryam"]
VOTERS = 25  # fewer than t / 2 = 32768, so that no count wraps around


def main() -> None:
    choices = [secrets.randbelow(len(CANDIDATES)) for _ in range(VOTERS)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        committee = keyquorum.init(folder / "committee", parties=3, protocol="shamir")
        keyquorum.keygen(committee, "ballot", "bfv-4096", relin=False)

        for voter, choice in enumerate(choices):  # each voter, with the public key
            vote = [int(choice == candidate) for candidate in range(len(CANDIDATES))]
            keyquorum.encrypt(committee, "ballot", vote, folder / f"vote-{voter}.ct")

        tally = folder / "vote-0.ct"  # the counter of votes, who has no secret key
        for voter in range(1, VOTERS):
            made = keyquorum.evaluate(committee, "ballot", "add", [tally, folder / f"vote-{voter}.ct"], folder / "tally.ct")
            tally = made.path
        assert made.budget is not None
        print(f"{VOTERS} votes counted, {made.budget:.0f} bits of the noise budget are left")

        keyquorum.decrypt(committee, "ballot", [tally], receiver=0, outputs=[folder / "tally.plain"])
        counts = keyquorum.decode(committee, "ballot", folder / "tally.plain", count=len(CANDIDATES)).tolist()

    for candidate, count in zip(CANDIDATES, counts, strict=True):
        print(f"{candidate:8} {count:3}")
    assert counts == [choices.count(candidate) for candidate in range(len(CANDIDATES))], "the tally differs from the votes"


if __name__ == "__main__":
    main()
