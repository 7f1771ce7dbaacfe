"""Which tests run."""

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

LONG = os.environ.get("KEYQUORUM_LONG", "") == "1"
"""Whether tests of minutes run as well, and others with all their samples, committees or positions."""


def some(values: Iterable[T], kept: int) -> list[T]:
    """All of these parameters of a test where long tests run, else the first ``kept``."""
    found = list(values)
    return found if LONG else found[:kept]
