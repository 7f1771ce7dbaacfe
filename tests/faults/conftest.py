"""A committee of three party processes with a key called `before`, copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from keyquorum import api

from .deployment import PARAMETERS, POLICY


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once; tests work on copies."""
    folder = tmp_path_factory.mktemp("committee") / "c"
    api.init(folder, 3)
    api.keygen(folder, "before", PARAMETERS, False, policy=POLICY)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A committee folder that a test may damage."""
    target = tmp_path / "c"
    shutil.copytree(made, target)
    return target
