"""New shares of Shamir's sharing that t + 1 parties deal, in committees with too many sets of members for common seeds.

Each dealer d has the summand l_d f(d) of the secret, and deals it as points of a polynomial of degree t with this value at 0; a new share is the sum of the points of all dealers. That is a resharing from the committee to itself
(``Source/mpc/src/resharing.rs``): what t old and t new parties see together does not tell the secret, also if a party counts in both epochs. It is for parties that follow the protocol: another summand makes another key.

Paper: Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995. Rounds: 3 for the toss (2 among two parties), 1 for seeds, 1 for each vector.
"""

from __future__ import annotations

import ctypes

import numpy as np

from keyquorum._engine import Dealer, Dealt
from keyquorum.model.domains import Domain
from keyquorum.parties.context import PartyContext

NAME_BYTES = 16
"""Of the name of an epoch."""
MOST_BYTES = 1 << 26
"""Of what a dealer sends of a vector."""


class Dealing:
    """One party's part; all parties that are present make it, and ask for the same vectors in the same order. ``dealers``: numbers of the parties that deal; ``name``: of the new epoch."""

    def __init__(self, context: PartyContext) -> None:
        here, self._session = context.committee, context.session
        committee, self._me = here.whole, context.party
        self.dealers, self.name = tuple(here.members[: committee.threshold + 1]), self._session.toss(NAME_BYTES)
        number, self._members = here.number_of(context.party), here.members
        self._dealer = Dealer(committee.shape, committee.shape, self.dealers, number, self.name) if number in self.dealers else None
        seeds: list[bytes | bytearray] = []
        try:
            own = self._exchanged({} if self._dealer is None else {to: self._dealer.seeds(to) for to in self._members}, seeds)
            self._dealt = Dealt(committee.shape, number, own, self.name)
        finally:
            for data in seeds:
                wipe_bytes(data)

    def refreshed(self, domain: str, label: bytes, shares: bytes) -> bytearray:
        """This party's new share of a vector, from its old one. One round."""
        secret: list[bytes | bytearray] = []
        try:
            pieces = [] if self._dealer is None else self._dealer.dealt(domain, label, shares)
            secret += pieces
            sent = self._exchanged({to: pieces[to] for to in self._members} if pieces else {}, secret)
            return self._dealt.taken(domain, label, len(shares) // (8 if Domain.parse(domain).bits <= 64 else 16), sent)
        finally:
            for data in secret:
                wipe_bytes(data)

    def _exchanged(self, mine: dict[int, bytearray], secret: list[bytes | bytearray]) -> list[bytes]:
        """Sends what this party deals to each, by number, and returns what it gets of all dealers, in their order. ``secret``: gets all, to be wiped."""
        secret += mine.values()
        for place, number in enumerate(self._members):
            if mine and place != self._me:
                message = bytes(mine[number])
                secret.append(message)
                self._session.send(place, message)
        found = []
        for dealer in self.dealers:
            place = self._members.index(dealer)
            found.append(bytes(mine[dealer]) if place == self._me else self._session.recv(place, MOST_BYTES))
            secret.append(found[-1])
        return found


def wipe_bytes(data: bytes | bytearray) -> None:
    """Overwrites bytes that the caller alone has, also those of an immutable object: the engine takes and gives shares as such. Python shares objects of one byte and less, which stay."""
    if isinstance(data, bytearray):
        np.frombuffer(data, np.uint8).fill(0)
    elif len(data) > 1:
        start = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
        ctypes.memset(start, 0, len(data))


__all__ = ["Dealing", "wipe_bytes"]
