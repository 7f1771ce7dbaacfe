"""Fixtures of all tests."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

hypothesis.settings.register_profile("keyquorum", deadline=None)  # other tests run beside them
hypothesis.settings.load_profile("keyquorum")

# A shell may start the tests with Ctrl-C ignored, and processes inherit that; some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = (
    "cli/test_commands.py",
    "faults/test_disagreement.py",
    "adversaries/test_adversaries.py",
    "programs/test_samplers.py",
    "serve/test_padded.py",
)
"""Files of tests that take longest: they begin first, as a file is for one process alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests that are marked ``alone`` run while no other process of pytest-xdist runs one: they measure times. While one of them waits, no other test begins."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    kind = fcntl.LOCK_EX if request.node.get_closest_marker("alone") else fcntl.LOCK_SH
    folder = tmp_path_factory.getbasetemp().parent
    with (folder / "alone.lock").open("w") as file:
        with (folder / "next.lock").open("w") as queue:
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(file, kind)
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the seeds that tests drew, also those of passed tests."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", []):
                if name == "fresh seed" and report.when == "call":
                    terminalreporter.write_line(f"{report.nodeid}: seed {value}")
