"""Assertions of the helper modules explain themselves; no shipped program compares numbers over a field."""

from __future__ import annotations

from typing import NoReturn

import pytest
from keyquorum.dsl import comparison

pytest.register_assert_rewrite("tests.programs.running", "tests.programs.distributions", "tests.programs.mpspdz")


@pytest.fixture(autouse=True)
def no_comparisons_over_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that compares over a field opens numbers of its own under masks: docs/pages/bounded-masks.md says of what size, and who can exceed it."""

    def refused(*arguments: object) -> NoReturn:
        raise AssertionError("a shipped program compares numbers over a field: docs/pages/bounded-masks.md says that none does")

    monkeypatch.setattr(comparison, "high_part", refused)
