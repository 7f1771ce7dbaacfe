"""Requests of receivers to one party that are not answered yet."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from keyquorum.model.errors import CiphertextError, PartyError
from keyquorum.model.plain import Json

from .kinds.base import Asked, ParsedRequest

Key = str
"""Fingerprint of the receiver, a slash, and the id that the receiver chose."""
LATE_SECONDS, MOST_LATE = 10.0, 1024
"""How long a refusal waits for a request that has not come yet, and how many wait."""


@dataclass(frozen=True)
class Answer:
    """What a party answers: ``body``, its shares of the result, and entries of the head of the message."""

    body: bytes
    head: Json = field(default_factory=dict)


@dataclass
class Request:
    """A request of a receiver; ``done`` gets this party's answer, or an error."""

    key: Key
    parsed: ParsedRequest
    deadline: float
    done: Future[Answer] = field(default_factory=Future)

    @property
    def asked(self) -> Asked:
        """What the key's kind needs to know of it."""
        return self.key, self.parsed

    @property
    def receiver(self) -> str:
        """SHA-256 of the certificate of the receiver that sent it."""
        return self.key.partition("/")[0]


def in_turn(requests: Sequence[Request], turns: Mapping[str, int]) -> list[Request]:
    """Requests in the order in which they are served: the first of each receiver, then the second of each, and so on. Of the receivers, the one that was
    answered longest ago goes first. So a receiver that has one request waits for one request of each other receiver, however many those have."""
    places: Counter[str] = Counter()
    ranked = []
    for request in requests:
        ranked.append((places[request.receiver], turns.get(request.receiver, 0)))
        places[request.receiver] += 1
    order = sorted(range(len(requests)), key=ranked.__getitem__)
    return [requests[i] for i in order]


class Requests:
    """Requests of one party, by key, in the order in which they came. Thread-safe. ``admit``: raises for a request that is refused when it comes."""

    def __init__(self, patience: float, admit: Callable[[Asked], None] = lambda asked: None) -> None:
        self.patience, self._admit = patience, admit
        self.left: int | None = None
        """Items that requests may take now, while the parties are connected and serve; None: they are not."""
        self._waiting: dict[Key, Request] = {}
        self._refused: dict[Key, tuple[float, BaseException]] = {}
        self._changed = threading.Condition()
        self._turns: dict[str, int] = {}
        """Of each receiver: when a request of it was answered last, as a number that grows."""
        self._answered = 0
        self._closed: BaseException | None = None

    def add(self, key: Key, parsed: ParsedRequest) -> Request:
        """Adds a request. One that was refused before it came has its error already. Raises CiphertextError for a key that is in use, the error of ``admit``, and the
        error of :meth:`close` after it."""
        request = Request(key, parsed, time.monotonic() + self.patience)
        with self._changed:
            if self._closed is not None:
                raise self._closed
            if key in self._waiting:
                raise CiphertextError("a request of this id is under way: take another id")
            until, error = self._refused.pop(key, (0.0, None))
            if error is not None and until > time.monotonic():
                request.done.set_exception(error)
                return request
            self._admit(request.asked)
            self._waiting[key] = request
            self._changed.notify_all()
        return request

    def wait(self, seconds: float) -> list[Request]:
        """All requests, of the receivers in turn; waits for the first one, at most ``seconds``. Requests beyond their deadline get an error here."""
        with self._changed:
            if not self._waiting:
                self._changed.wait(seconds)
            now = time.monotonic()
            for key in [k for k, r in self._waiting.items() if r.deadline < now]:
                late = self._waiting.pop(key)
                late.done.set_exception(PartyError(f"not answered within {self.patience:g} s: {self._reason(late)}"))
            return in_turn(list(self._waiting.values()), self._turns)

    def ages(self) -> list[float]:
        """Seconds since the requests that wait came."""
        with self._changed:
            now = time.monotonic()
            return [now - request.deadline + self.patience for request in self._waiting.values()]

    def waiting_of(self, receiver: str) -> int:
        """How many requests of a receiver wait."""
        with self._changed:
            return sum(request.receiver == receiver for request in self._waiting.values())

    def _reason(self, late: Request) -> str:
        """Why a request was not answered, and what to do."""
        if self.left is not None and late.parsed.count > self.left:
            return f"it needs {late.parsed.count:,} items of the pool, which has {self.left:,} and is being filled; send it again later, or fewer at a time"
        return "a party is missing, or has not got the request; send it again to all"

    def get(self, key: Key, seconds: float) -> Request | None:
        """The request of a key; waits for it, at most ``seconds``. None if it did not come."""
        end = time.monotonic() + seconds
        with self._changed:
            while key not in self._waiting and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._waiting.get(key)

    def answer(self, key: Key, result: Answer | bytes | BaseException) -> None:
        """Ends a request with this party's answer, or with an error. Bytes: the body of an answer."""
        with self._changed:
            request = self._waiting.pop(key, None)
            if request is None:
                return
            self._answered += 1
            self._turns[request.receiver] = self._answered
        if isinstance(result, BaseException):
            request.done.set_exception(result)
        else:
            request.done.set_result(result if isinstance(result, Answer) else Answer(result))

    def refuse(self, key: Key, error: BaseException) -> None:
        """Ends a request with an error: now, or when it comes. A party whose copy is late, or never comes, holds up nobody."""
        with self._changed:
            if key not in self._waiting:
                now = time.monotonic()
                self._refused = {k: kept for k, kept in self._refused.items() if kept[0] > now}
                if len(self._refused) >= MOST_LATE:
                    del self._refused[next(iter(self._refused))]
                self._refused[key] = now + LATE_SECONDS, error
        self.answer(key, error)

    def refuse_all(self, error: BaseException, but: Collection[Key] = ()) -> None:
        """Ends all requests with an error, but those of some keys."""
        with self._changed:
            keys = [key for key in self._waiting if key not in but]
        for key in keys:
            self.answer(key, error)

    def close(self, error: BaseException, but: Collection[Key] = ()) -> None:
        """Accepts no more requests, and ends all with an error, but those of some keys."""
        with self._changed:
            self._closed = error
        self.refuse_all(error, but)
