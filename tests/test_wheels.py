"""The check of make wheel finds errors in a wheel or a source distribution. make wheel itself takes minutes and is no test."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_wheels", ROOT / "Scripts" / "check_wheels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel(check: ModuleType, folder: Path, name: str, without: str = "", more: str = "") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for each in (*check.NEEDED, "_engine.abi3.so"):
            if each != without:
                archive.writestr(f"keyquorum/{each}", "")
        if more:
            archive.writestr(more, "")
    return path


def source(check: ModuleType, folder: Path, without: str = "", link: bool = False) -> Path:
    path = folder / "keyquorum-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for each in check.IN_SOURCE:
            if each != without:
                archive.addfile(tarfile.TarInfo(f"keyquorum-0.1.0/{each}"), io.BytesIO())
        if link:
            made = tarfile.TarInfo("keyquorum-0.1.0/link")
            made.type, made.linkname = tarfile.SYMTYPE, "/elsewhere"
            archive.addfile(made)
    return path


def tagged(monkeypatch: pytest.MonkeyPatch, tag: str) -> None:
    """As if auditwheel found this tag."""
    said = f'is consistent\nwith the following platform\ntag: "{tag}".'
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, said, ""))


def test_a_wheel(check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "keyquorum-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl"
    tagged(monkeypatch, "manylinux_2_34_x86_64")
    assert check.check_wheel(wheel(check, tmp_path, name)) == "manylinux_2_34_x86_64"
    for without in (*check.NEEDED, "_engine.abi3.so"):
        with pytest.raises(check.WheelError, match=r"is missing|no extension with the stable ABI"):
            check.check_wheel(wheel(check, tmp_path, name, without))
    with pytest.raises(check.WheelError, match=r"bench/runner\.py is no part of the package"):
        check.check_wheel(wheel(check, tmp_path, name, more="bench/runner.py"))
    for other in ("keyquorum-0.1.0-cp311-abi3-linux_x86_64.whl", "keyquorum-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl"):
        with pytest.raises(check.WheelError, match="neither abi3 nor of a manylinux"):
            check.check_wheel(wheel(check, tmp_path, other))
    tagged(monkeypatch, "manylinux_2_38_x86_64")
    with pytest.raises(check.WheelError, match="auditwheel finds manylinux_2_38_x86_64"):
        check.check_wheel(wheel(check, tmp_path, name))


def test_a_source_distribution(check: ModuleType, tmp_path: Path) -> None:
    assert check.check_source(source(check, tmp_path)) == len(check.IN_SOURCE)
    for without in check.IN_SOURCE:
        with pytest.raises(check.WheelError, match="is missing"):
            check.check_source(source(check, tmp_path, without))
    with pytest.raises(check.WheelError, match="is a link"):
        check.check_source(source(check, tmp_path, link=True))


def test_what_is_looked_for_is_in_the_checkout(check: ModuleType) -> None:
    """And a folder without distributions is refused in one line."""
    assert all((ROOT / "harness" / "keyquorum" / name).exists() for name in check.NEEDED)
    assert all((ROOT / name).exists() for name in check.IN_SOURCE)


def test_a_folder_without_distributions(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "Scripts" / "check_wheels.py", tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr == f"error: {tmp_path}: 0 files *.whl, not one\n"


def test_a_demo_that_fails_or_takes_too_long(check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is empty, so files that are not in the archive are missing. pip and the demo are fakes."""
    calls: list[list[str]] = []

    def play(words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        calls.append([str(word) for word in words])
        assert "PYTHONPATH" not in options["env"]  # type: ignore[operator]
        failed = calls[-1][-1] == "demo" and broken
        return subprocess.CompletedProcess(words, int(failed), "" if failed else "demo: ok", "error: it broke" if failed else "")

    monkeypatch.setattr(check.venv, "create", lambda *a, **k: None)
    monkeypatch.setattr(check.subprocess, "run", play)
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    broken = False
    archive = wheel(check, tmp_path, "keyquorum-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl")
    assert check.demo(archive, 20.0) < 20
    assert calls[0][-1] == str(archive) and calls[1][-1] == "demo"
    with pytest.raises(check.WheelError, match=r"the demo took .* more than 0 s"):
        check.demo(archive, 0.0)
    assert [words[-1] for words in calls].count("demo") == 1 + check.RUNS
    broken = True
    with pytest.raises(check.WheelError, match="the demo failed: error: it broke"):
        check.demo(archive, 20.0)
