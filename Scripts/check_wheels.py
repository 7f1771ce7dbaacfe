"""Checks the results of make wheel: tags, contents, and the demo from an empty environment.

    Scripts/check_wheels.py FOLDER [--most SECONDS]

FOLDER has one wheel and one source distribution. Each is installed into an empty virtual environment and runs keyquorum demo, which may
take --most seconds (20). Other work on the machine makes the demo slower, so the fastest of up to three runs counts. CPU time and load of the machine
are printed with it."""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

WHEEL = re.compile(r"keyquorum-[0-9.]+-cp3\d+-abi3-(manylinux_\d+_\d+_\w+|macosx_\w+)\.whl")
NEEDED = (
    "py.typed",
    "_engine.pyi",
    "fhe/params/bfv-8192.toml",
    "_share/Programs/Source/sample_cbd.mpc",
    "_share/Programs/Library/conversions.py",
    "_share/params/published/ours/sources.toml",
)
IN_SOURCE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "Source/Cargo.lock",
    "Source/python/src/lib.rs",
    *(f"harness/keyquorum/{name}" for name in NEEDED[2:]),
)


RUNS = 3
"""Most runs of the demo."""


class WheelError(Exception):
    """A distribution is not fit for users."""


def check_wheel(wheel: Path) -> str:
    """The platform tag of a wheel. Raises WheelError if its name, contents or symbols do not agree with the tag."""
    match = WHEEL.fullmatch(wheel.name)
    if match is None:
        raise WheelError(f"{wheel.name}: neither abi3 nor of a manylinux or macOS platform")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    missing = [name for name in NEEDED if f"keyquorum/{name}" not in names]
    if missing:
        raise WheelError(f"{wheel.name}: {missing[0]} is missing")
    foreign = [name for name in names if not name.startswith(("keyquorum/", "keyquorum-", "keyquorum.libs/"))]
    if foreign:
        raise WheelError(f"{wheel.name}: {foreign[0]} is no part of the package")
    if "keyquorum/_engine.abi3.so" not in names:
        raise WheelError(f"{wheel.name}: no extension with the stable ABI")
    if match[1].startswith("manylinux"):
        shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True, check=False)
        found = re.search(r'platform tag: "(\w+)"', " ".join((shown.stdout + shown.stderr).split()))
        if found is None or found[1] != match[1]:
            raise WheelError(f"{wheel.name}: auditwheel finds {found[1] if found else shown.stderr.strip() or 'no tag'}")
    return match[1]


def check_source(source: Path) -> int:
    """The number of files of a source distribution. Raises WheelError if it lacks a file that a build needs, or has links."""
    with tarfile.open(source) as archive:
        members = archive.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    missing = [name for name in IN_SOURCE if name not in names]
    if missing:
        raise WheelError(f"{source.name}: {missing[0]} is missing")
    links = [member.name for member in members if not (member.isfile() or member.isdir())]
    if links:
        raise WheelError(f"{source.name}: {links[0]} is a link")
    return len(members)


def demo(archive: Path, most: float) -> float:
    """Installs a distribution into an empty environment and runs the demo outside of the checkout. Returns its seconds. Raises WheelError."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    with tempfile.TemporaryDirectory(prefix="keyquorum-wheel-") as folder:
        venv.create(Path(folder) / "venv", with_pip=True)
        python = Path(folder) / "venv" / "bin" / "python"
        installed = subprocess.run([python, "-m", "pip", "install", "-q", str(archive.resolve())], cwd=folder, env=environment, check=False)
        if installed.returncode != 0:
            raise WheelError(f"{archive.name}: it cannot be installed, see above")
        for _ in range(RUNS):
            before, start = _cpu(), time.monotonic()
            done = subprocess.run([python.parent / "keyquorum", "demo"], cwd=folder, env=environment, capture_output=True, text=True, check=False)
            seconds, cpu, load = time.monotonic() - start, _cpu() - before, os.getloadavg()[0]
            if done.returncode != 0 or "demo: ok" not in done.stdout:
                raise WheelError(f"{archive.name}: the demo failed: {done.stderr.strip() or done.stdout.strip()}")
            print(f"demo from {archive.name}: seconds={seconds:.1f} cpu={cpu:.1f} load={load:.1f}", flush=True)
            if seconds <= most:
                return seconds
    raise WheelError(f"{archive.name}: the demo took {seconds:.1f} s ({cpu:.1f} s of CPU, load {load:.1f}), more than {most:g} s")


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def one(folder: Path, pattern: str) -> Path:
    """The only file of a pattern. Raises WheelError."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise WheelError(f"{folder}: {len(found)} files {pattern}, not one")
    return found[0]


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=float, default=20.0)
    chosen = parser.parse_args()
    try:
        wheel, source = one(chosen.folder, "*.whl"), one(chosen.folder, "*.tar.gz")
        print(f"wheel: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB, {check_wheel(wheel)}")
        print(f"sdist: {source.name}, {source.stat().st_size / 1e6:.1f} MB, {check_source(source)} files")
        for archive in (wheel, source):
            print(f"check: ok {archive.name} demo={demo(archive, chosen.most):.1f} s", flush=True)
    except WheelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
