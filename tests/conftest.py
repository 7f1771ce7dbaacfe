"""Fixtures of all tests."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from zlib import crc32

import hypothesis
import numpy as np
import pytest

from tests.commands import fork_parties

hypothesis.settings.register_profile("keyquorum", deadline=None)  # other tests run beside them
hypothesis.settings.load_profile("keyquorum")

# A shell may start the tests with Ctrl-C ignored, and processes inherit that; some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _forked_parties() -> None:
    """Parties of a job are processes that begin with the imports."""
    fork_parties()


@pytest.fixture(autouse=True)
def _own_samples(request: pytest.FixtureRequest) -> None:
    """Each test draws its own samples, whichever tests ran before: the generator ``RNG`` of its module begins anew, with the name of the test as its seed."""
    generator = getattr(request.module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = type(generator.bit_generator)(crc32(request.node.name.encode())).state  # type: ignore[call-arg]


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
