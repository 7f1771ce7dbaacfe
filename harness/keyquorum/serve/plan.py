"""The proposal of party 0 for a cycle of a served committee, and its bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from keyquorum.model.errors import PartyError
from keyquorum.model.plain import is_count, json_loads

PLAN_LIMIT = 1 << 24
"""Bytes of a plan."""


@dataclass(frozen=True)
class Plan:
    """The proposal of party 0 for a cycle. ``fill``: items to make; ``slice``: of the next slice, while items are made; ``decrypt``: (key, digest) of requests; ``refuse``: (key, items that the
    request takes, items that are left); ``last``: keys of requests that are not proposed again, if a member still lacks them; ``ends``: whether the session ends, as party 0 lends its shares."""

    fill: int
    decrypt: list[tuple[str, str]]
    refuse: list[tuple[str, int, int]]
    last: list[str] = field(default_factory=list)
    slice: int = 0
    ends: bool = False

    def to_bytes(self) -> bytes:
        """See :func:`read_plan`."""
        return json.dumps(vars(self)).encode()


def read_plan(data: bytes, most: int = 1 << 62) -> Plan:
    """Inverse of :meth:`Plan.to_bytes`. Raises PartyError if party 0 sent something else, or would fill in more than ``most`` items at once."""
    try:
        plan = Plan(**json_loads(data))
        plan = Plan(
            plan.fill,
            [(key, digest) for key, digest in plan.decrypt],
            [(key, count, left) for key, count, left in plan.refuse],
            list(plan.last),
            plan.slice,
            plan.ends,
        )
    except (ValueError, TypeError):
        raise PartyError("party 0 sent no proper plan: run the same version everywhere") from None
    texts = [text for pair in plan.decrypt for text in pair] + [key for key, _, _ in plan.refuse] + plan.last
    numbers = [plan.fill, plan.slice, *(number for _, *pair in plan.refuse for number in pair)]
    if not (all(isinstance(text, str) for text in texts) and all(map(is_count, numbers)) and isinstance(plan.ends, bool)):
        raise PartyError("party 0 sent a plan with entries of other types: run the same version everywhere")
    if len(dict(plan.decrypt)) < len(plan.decrypt):
        raise PartyError("party 0 sent a plan that has a request twice, which would be counted twice: run the same version everywhere")
    if plan.fill > most:
        raise PartyError(
            f"party 0 would fill {plan.fill:,} items at once, --chunk and --keep allow {most:,}: see what runs there, or leave it out of the committee"
        )
    return plan
