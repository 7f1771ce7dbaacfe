"""The function under the shared key, around which stand two hashes: what receivers and parties do with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.parties.context import PartyContext

from .function import Bytes


class InnerPrf(ABC):
    """A function of points of 16 bytes. Its values are blocks of 16 bytes, one or two for a point. Summands of points go to the parties, and summands
    of what blocks are computed from come back."""

    answer_bytes: int
    """Of a summand of a block in an answer."""

    @abstractmethod
    def point(self, data: bytes, domain: bytes, length: int) -> bytes:
        """The point of an input, for a value of ``length`` bytes. Raises ParameterError."""

    @abstractmethod
    def shared(self, committee: Committee, points: Sequence[bytes]) -> list[bytes]:
        """The bodies of a request to every party: fresh uniform summands of the points."""

    @abstractmethod
    def combined(self, committee: Committee, answers: Sequence[bytes | bytearray], blocks: int) -> bytes:
        """The blocks of which the parties hold these shares. Raises PartyError for answers that are none, or of which copies of a summand differ."""

    @abstractmethod
    def check(self, committee: Committee, method: str) -> None:
        """Refuses a committee or a method with which nothing is evaluated for receivers. Raises ParameterError."""

    @abstractmethod
    def check_points(self, shares: Bytes) -> None:
        """Refuses summands, [held, inputs, 16], that are no elements. Raises CiphertextError."""

    @abstractmethod
    def evaluated(self, context: PartyContext, key: ShareVector, points: Bytes, blocks: Sequence[int], purpose: bytes) -> Bytes:
        """This party's shares of blocks, [summands held, sum of ``blocks``, answer_bytes], from shares of points, [summands held, points, 16]; every party
        calls this. ``blocks``: of each point. ``purpose``: bound to the messages; parties with other ones refuse each other's."""


__all__ = ["InnerPrf"]
