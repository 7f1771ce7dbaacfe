"""The bridge to TFHE-rs, a program of its own (Source/tfhe): where it is, and what it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.resources import resource_folder

BRIDGE = "keyquorum-tfhe"
VARIABLE = "KEYQUORUM_TFHE"
"""Environment variable with the path of the bridge."""
BUILT = ("build/tfhe/release", "Source/tfhe/target/release")
"""Folders of a checkout in which cargo leaves the bridge."""


def bridge() -> Path:
    """The bridge: named by the environment, built in this checkout, or on the path. Raises KeyQuorumError where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise KeyQuorumError(f"{VARIABLE} names {named}, which is no program: name {BRIDGE} with it, or unset it")
        return Path(named)
    root = resource_folder("Programs").resolve().parent
    for folder in BUILT:
        if os.access(root / folder / BRIDGE, os.X_OK):
            return root / folder / BRIDGE
    found = shutil.which(BRIDGE)
    if found is None:
        raise KeyQuorumError(
            f"{BRIDGE}, the bridge to TFHE-rs, is not built: run make tfhe-bridge in a checkout (TFHE-rs's licence grants no patent rights), or name "
            f"it with {VARIABLE}"
        )
    return Path(found)


def run_bridge(arguments: list[str]) -> list[str]:
    """The lines that the bridge prints. Raises KeyQuorumError with its error."""
    try:
        ended = subprocess.run([str(bridge()), *arguments], capture_output=True, text=True, errors="replace", check=False)
    except ValueError:  # a zero byte, or a surrogate
        raise KeyQuorumError(f"an argument of {BRIDGE} has characters that no program takes: write it anew") from None
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        raise KeyQuorumError(said[-1].removeprefix("error: ") if said else f"{BRIDGE} ended with code {ended.returncode}: run it again")
    return ended.stdout.splitlines()
