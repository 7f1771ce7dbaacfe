"""What all tests share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

import hypothesis
import pytest

hypothesis.settings.register_profile("keyquorum", deadline=None)  # other tests run beside them
hypothesis.settings.load_profile("keyquorum")


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests that are marked ``alone`` run while no other process of pytest-xdist runs one: they measure times."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    kind = fcntl.LOCK_EX if request.node.get_closest_marker("alone") else fcntl.LOCK_SH
    with (tmp_path_factory.getbasetemp().parent / "alone.lock").open("w") as file:
        fcntl.flock(file, kind)
        yield
