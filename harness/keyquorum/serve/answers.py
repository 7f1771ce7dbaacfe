"""What parties of a served committee answer, and how a receiver finds a wrong answer. It depends on the kind of the committee, and only this module asks for that."""

from __future__ import annotations

from enum import Enum

from keyquorum.model.committee import Committee


class Answers(Enum):
    """The answers of the parties to one request."""

    SUMMANDS = "the summands of the result, each from one party: a receiver finds no wrong one"
    COPIES = "the summands, and hashes of the copies that other parties hold (:mod:`.copies`)"
    POINTS = "the values of polynomials of degree t (:mod:`.copies`)"
    PADDED = "the same bytes of all parties, opened with MACs under pads that the receiver alone knows"

    @staticmethod
    def of(committee: Committee) -> Answers:
        """The answers of a committee."""
        if not committee.malicious:
            return Answers.SUMMANDS
        if committee.authenticated:
            return Answers.PADDED
        return Answers.POINTS if committee.ring_protocol is None else Answers.COPIES
