"""Assertions of the helper modules explain themselves; shipped programs that compare numbers over a field are known."""

from __future__ import annotations

import pytest
from keyquorum.dsl.context import Run, Value
from keyquorum.dsl.values import comparison

pytest.register_assert_rewrite("tests.programs.running", "tests.programs.distributions", "tests.programs.mpspdz")

COMPARES_OVER_FIELDS = {"sample_fixed_weight"}
"""Shipped programs that open numbers under masks of comparisons. docs/pages/bounded-masks.md says what they are, and who can exceed their length."""


@pytest.fixture(autouse=True)
def comparisons_over_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends a run of any other program that compares over a field."""
    true = comparison.high_part

    def checked(run: Run, k: int, m: int, size: int) -> Value:
        name = run.program.args[0]
        assert name in COMPARES_OVER_FIELDS, f"{name} compares numbers over a field: docs/pages/bounded-masks.md says that it does not"
        return true(run, k, m, size)

    monkeypatch.setattr(comparison, "high_part", checked)
