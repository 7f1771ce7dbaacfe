"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from keyquorum.model.committee import write_atomically


def test_mode_content_and_no_left_overs(tmp_path: Path) -> None:
    """A second write replaces the first; the mode is the asked one, and nothing else stays in the folder."""
    path = tmp_path / "secret"
    for data in (b"one", b"two"):
        write_atomically(path, data, 0o600)
        assert path.read_bytes() == data and path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A file that cannot be written does not damage the old one."""
    path = tmp_path / "secret"
    write_atomically(path, b"old", 0o600)
    with pytest.raises(TypeError):
        write_atomically(path, "text", 0o600)  # type: ignore[arg-type]
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_no_device_or_pipe_is_replaced(tmp_path: Path) -> None:
    """A rename would replace /dev/null by a file, for all processes of the host."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="a device or a pipe, name a file"):
        write_atomically(pipe, b"data")
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]
