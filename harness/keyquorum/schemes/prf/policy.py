"""The policy of one party for a key: who may have the function evaluated, and how often. Each party has a policy of its own.

A request is evaluated by all parties or by none, so the strictest policy of the committee holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import KeyFileError, ParameterError, PolicyError
from keyquorum.model.plain import Json, is_count, is_hex, json_loads

POLICY = "evaluations.json"
"""File in a party's key folder."""
HOUR = 3600.0
"""Seconds of the window of a rate."""
MOST = 10_000_000
"""Largest rate: the evaluations of the last hour are kept in memory."""


@dataclass(frozen=True)
class EvaluationPolicy:
    """``rate``: evaluations of one receiver in any hour; ``total``: evaluations that the key may ever serve (None: any number); ``receivers``:
    SHA-256 of the certificates of those who may ask (None: all that the party admits)."""

    key_id: str
    rate: int
    total: int | None = None
    receivers: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.rate <= MOST:
            raise ParameterError(f"a rate of {self.rate}/h: choose 1/h to {MOST}/h")
        if self.total is not None and not 1 <= self.total <= 1 << 62:
            raise ParameterError(f"{self.total} evaluations in all: choose 1 to 2^62")

    def text(self) -> str:
        """One line for people."""
        who = "all admitted receivers" if self.receivers is None else f"{len(self.receivers)} receivers"
        return f"{self.rate}/h for each of {who}, {'any number' if self.total is None else f'{self.total:,}'} in all"

    def to_json(self) -> Json:
        """Plain data, as the file has it."""
        return {"key_id": self.key_id, "rate": self.rate, "total": self.total, "receivers": None if self.receivers is None else list(self.receivers)}

    def require_allowed(self, receiver: str) -> None:
        """Raises PolicyError for a receiver that may not ask."""
        if self.receivers is not None and receiver not in self.receivers:
            raise PolicyError(f"this receiver ({receiver[:16]}...) may not evaluate under key {self.key_id}: ask who runs the party to allow it")


def parse_rate(text: str) -> int:
    """The evaluations an hour in a text such as ``100/h``. Raises ParameterError."""
    found = re.fullmatch(r"(\d{1,9})/h", text)
    if found is None:
        raise ParameterError(f"--rate {text}: give evaluations an hour, as 100/h")
    return int(found[1])


def write_policy(folder: Path, policy: EvaluationPolicy) -> None:
    """Stores the policy of a party in its key folder."""
    write_atomically(folder / POLICY, json.dumps(policy.to_json()).encode() + b"\n", 0o600)


def read_policy(path: Path, key_id: str | None = None) -> EvaluationPolicy:
    """A policy from its file. Raises PolicyError where there is none, and KeyFileError for a damaged one or one of another key."""
    if not path.exists():
        raise PolicyError(f"{path}: this party has no policy for the key: name one, keyquorum toprf serve ... --rate 100/h")
    try:
        data = json_loads(path.read_text())
        receivers: Sequence[str] | None = data["receivers"]
        numbers = [data["rate"], *([] if data["total"] is None else [data["total"]])]
        if not (is_hex(data["key_id"], 32) and all(map(is_count, numbers)) and (receivers is None or all(is_hex(r, 64) for r in receivers))):
            raise ValueError("entries of other types")
        policy = EvaluationPolicy(data["key_id"], data["rate"], data["total"], None if receivers is None else tuple(receivers))
    except (ValueError, KeyError, TypeError, ParameterError):
        raise KeyFileError(f"{path} is damaged: write it again, keyquorum toprf serve ... --rate 100/h") from None
    if key_id is not None and policy.key_id != key_id:
        raise KeyFileError(f"{path} is of another key: write it again, keyquorum toprf serve ... --rate 100/h")
    return policy


__all__ = ["HOUR", "POLICY", "EvaluationPolicy", "parse_rate", "read_policy", "write_policy"]
