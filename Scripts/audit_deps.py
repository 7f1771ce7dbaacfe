"""Known vulnerabilities and licences of the dependencies: crates by cargo-deny, Python packages of this environment by pip-audit.

Prints one line for each check: ``ok``, ``found`` with details, or ``not checked`` with the reason, for instance an unreachable database.
Exit codes: 0 if every check was made and found nothing, 1 if one found something, 3 if none found anything and some were not made.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOUND, UNCHECKED = 1, 3
SECONDS = 600
PROBE = "numpy"
"""The package that is checked first: an index without an answer for it has none for the others."""
OWN = "keyquorum"
Verdict = tuple[str, str]
"""``ok``, ``found`` or ``not checked``, and the details."""


def _run(command: Sequence[str | Path], folder: Path = ROOT) -> tuple[int, str, str]:
    """Exit code and both outputs; a tool that cannot run or does not end in time counts as failed."""
    try:
        done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, "", str(error)
    return done.returncode, done.stdout, done.stderr


def reason(text: str) -> str:
    """The line of an output with the reason of a failure: the last one that looks like an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    informative = [line for line in lines if "error" in line.lower() or "fatal" in line.lower() or "resolve" in line.lower()]
    return (informative or lines or ["no reason given"])[-1]


def crates_rules(deny: Path) -> Verdict:
    """Licences, registries and bans, which need no network."""
    code, out, errors = _run([deny, "--locked", "check", "licenses", "bans", "sources"], ROOT / "Source")
    wanted = all(f"{what} ok" in out + errors for what in ("licenses", "bans", "sources"))
    if code == 0 and wanted:
        return "ok", ""
    return ("found", f"\n{out}{errors}") if "FAILED" in out + errors else ("not checked", reason(errors))


def crates_advisories(deny: Path) -> Verdict:
    """RustSec's advisories for Cargo.lock, from a database that is fetched first."""
    code, _, errors = _run([deny, "--locked", "fetch", "db"], ROOT / "Source")
    if code:
        return "not checked", f"the database of RustSec cannot be fetched: {reason(errors)}"
    code, out, errors = _run([deny, "--locked", "check", "advisories"], ROOT / "Source")
    if code == 0 and "advisories ok" in out + errors:
        return "ok", ""
    return ("found", f"\n{out}{errors}") if "advisories FAILED" in out + errors else ("not checked", reason(errors))


def packages_advisories(audit: Path) -> Verdict:
    """PyPI's advisories for the packages of this environment. pip-audit exits with 0 even if it got no answer for any package."""
    given = [audit, "--format", "json", "--progress-spinner", "off"]
    probe = ROOT / "build" / "audit-deps" / "probe.txt"
    probe.parent.mkdir(parents=True, exist_ok=True)
    probe.write_text(f"{PROBE}=={metadata.version(PROBE)}\n")
    for more in (["--no-deps", "--disable-pip", "-r", probe], ["--path", sysconfig.get_path("platlib")]):
        _, out, errors = _run([*given, *more])
        try:
            packages: list[dict[str, Any]] = json.loads(out)["dependencies"]
        except (ValueError, KeyError, TypeError):
            return "not checked", f"the index of PyPI cannot be asked: {reason(errors)}"
        bad = [f"{p['name']} {p['version']}: {', '.join(v['id'] for v in p['vulns'])}" for p in packages if p.get("vulns")]
        if bad:
            return "found", "; ".join(bad)
        skipped = [p for p in packages if "skip_reason" in p and p["name"] != OWN]
        if skipped or not packages:
            why = skipped[0]["skip_reason"] if skipped else "no packages were found"
            return "not checked", f"{len(skipped)} of {len(packages)} packages without an answer of the index: {why}"
    return "ok", f"{len(packages)} packages"


def main(words: Sequence[str] | None = None) -> int:
    """Makes all checks; see the module for output and exit codes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cargo-deny", type=Path, required=True, help="the tool")
    parser.add_argument("--pip-audit", type=Path, required=True, help="the tool")
    tools = parser.parse_args(words)
    checks = {
        "crates, licences and sources": crates_rules(tools.cargo_deny.absolute()),
        "crates, advisories": crates_advisories(tools.cargo_deny.absolute()),
        "Python packages, advisories": packages_advisories(tools.pip_audit.absolute()),
    }
    for name, (verdict, details) in checks.items():
        print(f"{name}: {verdict}" + (f": {details}" if details else ""))
    verdicts = [verdict for verdict, _ in checks.values()]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("ok", "found", "not checked"))
    print(f"audit-deps: {counts}")
    return FOUND if "found" in verdicts else UNCHECKED if "not checked" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
