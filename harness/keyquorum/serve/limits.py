"""Limits of receivers at one party: how much each may ask in a time, and how many requests of it may wait.

They keep the service available to the others, and protect no secret: whoever may ask may decrypt. So the counts are in memory, and a party that
starts begins at 0. Every party has limits of its own. The file ``limits.json`` in the party's folder::

    {"all": ["20 requests/s", "100000 items/h", "8 waiting"], "receivers": {"receiver-alice": ["5000000 items/day"]}}

A receiver is named as its certificate in ``receivers``. One that is named has its own limits alone. An item is what a request takes of a pool: a
ciphertext of LWE or TFHE, a coefficient of BFV or BGV, a block of a pseudorandom function.
"""

from __future__ import annotations

import math
import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from keyquorum.model.errors import ParameterError, PolicyError
from keyquorum.model.plain import json_loads

NAME = "limits.json"
"""The file, in the party's folder."""
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0}
MOST = 1 << 53
CURE = 'write limits as {"all": ["20 requests/s", "100000 items/h", "8 waiting"], "receivers": {"receiver-alice": ["5000000 items/day"]}}'


@dataclass(frozen=True)
class Limit:
    """``amount`` requests or items in any ``per`` (s, min, h, day), or requests that wait (``per`` is empty)."""

    amount: int
    what: str
    per: str = ""

    def __str__(self) -> str:
        return f"{self.amount:,} {self.what}" + (f"/{self.per}" if self.per else "")


def parse_limit(text: str) -> Limit:
    """A limit from its text. Raises ParameterError."""
    found = re.fullmatch(r"([0-9]{1,16}) (?:(requests|items)/(s|min|h|day)|(waiting))", text)
    if found is None or not 1 <= int(found[1]) <= MOST:
        raise ParameterError(f"{text[:60]!r} is no limit: write '20 requests/s', '100000 items/h' (or /min, /day) or '8 waiting'")
    return Limit(int(found[1]), found[2] or found[4], found[3] or "")


@dataclass(frozen=True)
class Limits:
    """Limits of every receiver, and of those that are named."""

    all: tuple[Limit, ...] = ()
    receivers: dict[str, tuple[Limit, ...]] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Limit, ...]:
        """Those of one receiver."""
        return self.receivers.get(name, self.all)


def read_limits(path: Path) -> Limits:
    """The limits in a file; none if it is not there. Raises ParameterError."""
    try:
        said = json_loads(path.read_text())
        if not (isinstance(said, dict) and set(said) <= {"all", "receivers"} and isinstance(said.get("receivers", {}), dict)):
            raise ValueError
        named: dict[str, object] = said.get("receivers", {})
        return Limits(_parsed(said.get("all", [])), {name: _parsed(texts) for name, texts in named.items()})
    except FileNotFoundError:
        return Limits()
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
    except ValueError:
        raise ParameterError(f"{path}: damaged: {CURE}") from None


def _parsed(texts: object) -> tuple[Limit, ...]:
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise ValueError
    return tuple(map(parse_limit, texts))


class _Bucket:
    """What one receiver may still ask: ``amount`` at first, refilled evenly in ``seconds``."""

    def __init__(self, amount: float, now: float) -> None:
        self.left, self.at = amount, now

    def refill(self, amount: float, seconds: float, now: float) -> None:
        self.left, self.at = min(amount, self.left + (now - self.at) * amount / seconds), now


class Meter:
    """Counts what receivers ask, against limits. Thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buckets: dict[tuple[str, Limit], _Bucket] = {}
        self._lock = threading.Lock()

    def replace(self, limits: Limits) -> None:
        """Sets other limits. What a limit that stays has counted stays."""
        with self._lock:
            self._limits = limits

    def take(self, receiver: str, name: str, items: int, waiting: int) -> None:
        """Counts a request of ``items`` items. ``receiver``: SHA-256 of its certificate, under the ``name`` of its file; ``waiting``: its requests that
        wait already. Raises PolicyError, with the limit and the cure, and then counts nothing."""
        now = time.monotonic()
        with self._lock:
            counted = []
            for limit in self._limits.of(name):
                if limit.what == "waiting":
                    if waiting >= limit.amount:
                        raise PolicyError(
                            f"{waiting:,} requests of this receiver wait, its limit is {limit}: send the request again when one is answered"
                        )
                    continue
                asked = items if limit.what == "items" else 1
                if asked > limit.amount:
                    raise PolicyError(f"the request has {asked:,} items, the limit of this receiver is {limit}: send it in parts")
                bucket = self._buckets.setdefault((receiver, limit), _Bucket(limit.amount, now))
                bucket.refill(limit.amount, SECONDS[limit.per], now)
                if asked > bucket.left:
                    seconds = (asked - bucket.left) * SECONDS[limit.per] / limit.amount
                    raise PolicyError(f"the limit of this receiver is {limit}: send the request again in {math.ceil(seconds):,} s")
                counted.append((bucket, asked))
            for bucket, asked in counted:
                bucket.left -= asked


__all__ = ["NAME", "Limit", "Limits", "Meter", "parse_limit", "read_limits"]
