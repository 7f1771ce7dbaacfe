"""Recorded programs, which the engine repeats without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyquorum import _engine

from ..context import Ints
from ..files.share_vector import ShareVector

Written = tuple[int | None, bool, Ints]
"""Output: the party that it is for (None: all parties), whether the words were revealed to this party alone, and the words."""


@dataclass(frozen=True)
class Recording:
    """A recorded run. ``shares``: whether the share file must fit the engine; ``prints``: whether the program prints; ``files``: the program
    and its helpers, with their versions."""

    steps: _engine.Recording
    shares: bool
    prints: bool
    files: Sequence[tuple[str, Any]]

    def play(self, engine: Any, shares: ShareVector, private: Ints, public: Sequence[Ints], show: Callable[[str], None]) -> list[Written]:
        """Executes the steps with the share file and the inputs of a run. ``show`` prints. Returns the output."""
        if self.shares and shares.exists:
            shares.check(engine, 0, 0)
        words = [np.ascontiguousarray(part, dtype=np.int64) for part in public]
        own = np.ascontiguousarray(private, dtype=np.int64)
        stored, output = self.steps.play(engine, shares.sections, shares.element_words, words, own, show)
        try:
            for rows in stored:
                shares.append(engine, rows)
        except BaseException:
            for rows in stored:
                rows.fill(0)
            raise
        return output
