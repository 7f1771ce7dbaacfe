"""Crashes in these tests are exceptions, so nothing needs to reach a disk: without syncs they take a tenth of the time."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
