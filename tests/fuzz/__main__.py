"""``python -m tests.fuzz``: every target for some seconds, those of Rust too; or one target, or one input again."""

from __future__ import annotations

import argparse
import os
import re
import resource
import secrets
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .driver import FOLDER, MEMORY_CAP, Failed, run, try_input
from .targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
SEED = "1"
RUST: dict[str, tuple[list[str], str]] = {
    **{name: (["-p", "keyquorum-net", "--lib"], f"fuzz::{test}") for name, test in (
        ("frames", "streams_of_frames"), ("hello", "hellos"), ("identity", "identities"), ("fingerprint", "fingerprints"),
    )},
    **{name: (["-p", "keyquorum-mpc", "--test", "fuzz"], test) for name, test in (
        ("share-file", "share_files"), ("elements", "encoded_elements"), ("domain", "names_of_domains"),
    )},
    **{name: (["-p", "keyquorum-ot", "--test", "fuzz"], test) for name, test in (("ot-base", "points_of_base_ot"), ("ot-base-ml-kem", "messages_of_base_ot_from_ml_kem"), ("ot-prfs", "punctured_prfs"))},
}  # fmt: skip
"""Packages and tests of the Rust targets."""
_LINE = re.compile(r"fuzz: target=(\S+) .*?inputs=(\d+) .*?crashes=(\d+)")


def _rust(name: str, seconds: int, seed: str, replay: str = "") -> subprocess.CompletedProcess[str]:
    """One Rust target. Cargo builds before the clock runs."""
    where, test = RUST[name]
    command = ["cargo", "test", "--release", "--locked", "-q", *where, test, "--", "--exact", "--nocapture"]
    more = {"KEYQUORUM_FUZZ_INPUT": replay} if replay else {"KEYQUORUM_FUZZ_SECONDS": str(seconds), "KEYQUORUM_FUZZ_SEED": seed}
    environment = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_DEBUG": "0", "KEYQUORUM_FUZZ_FOLDER": str(FOLDER)}
    return subprocess.run(command, cwd=ROOT / "Source", text=True, capture_output=True, env={**environment, **os.environ, **more})


def _python(name: str, seconds: int, seed: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", "--here", name, "--seconds", str(seconds), "--seed", seed]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True)


def _here(name: str, seconds: int, seed: str) -> int:
    """One Python target in this process, which may not grow far."""
    target = TARGETS[name]
    target.corpus()  # what it imports does not count
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 8 * MEMORY_CAP, resource.RLIM_INFINITY))
    report = run(target, seed, seconds=seconds)
    print(report.line())
    if report.crash:
        print(f"{name}: {report.crash}", file=sys.stderr)
    return 1 if report.crash else 0


def _replay(path: Path) -> int:
    """Gives one saved input to the target that its name starts with."""
    name = path.name.rpartition("-")[0]
    if name in RUST:
        done = _rust(name, 0, "", str(path.resolve()))
        print(done.stdout.strip() or done.stderr.strip())
        return done.returncode
    if name not in TARGETS:
        print(f"{path}: no target is called {name!r}: choose one of {', '.join([*RUST, *TARGETS])}, then a dash", file=sys.stderr)
        return 2
    TARGETS[name].corpus()
    try:
        print(f"{path}: {'accepted' if try_input(TARGETS[name], path.read_bytes()) else 'refused'}")
    except Failed as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Runs what is asked for; the last line is a summary. Returns 1 if an input failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--seconds", type=int, default=20, help="a target")
    parser.add_argument("--seed", default=os.environ.get("SEED", SEED), help="a number, or fresh")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--input", type=Path, help="a saved input, alone")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    seed = str(secrets.randbits(32)) if options.seed == "fresh" else options.seed
    if options.input:
        return _replay(options.input)
    if options.here:
        return _here(options.here, options.seconds, seed)
    names = options.targets or [*RUST, *TARGETS]
    unknown = [name for name in names if name not in RUST and name not in TARGETS]
    if unknown:
        parser.error(f"unknown target {unknown[0]}: choose from {', '.join([*RUST, *TARGETS])}")

    def one(name: str) -> tuple[int, int]:
        done = (_rust if name in RUST else _python)(name, options.seconds, seed)
        found = [m for m in _LINE.finditer(done.stdout) if m[1] == name]
        lines = [line for line in done.stdout.splitlines() if f"target={name} " in line]
        print("\n".join(lines) or f"fuzz: target={name} crashes=1 (it ended without a report)", flush=True)
        failed = done.returncode != 0 or not found
        if failed:
            print(done.stderr.strip()[-2000:] or done.stdout[-2000:], file=sys.stderr, flush=True)
        return sum(int(m[2]) for m in found), int(failed)

    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(one, names))
    crashes = sum(failed for _, failed in results)
    print(f"fuzz: {'FAILED' if crashes else 'ok'} targets={len(names)} inputs={sum(n for n, _ in results)} crashes={crashes}")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
