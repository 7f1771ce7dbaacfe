"""Jobs by name: what a party process can be asked to run. Plans register theirs, so that this floor knows none of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from keyquorum.model.errors import KeyQuorumError

from .context import PartyContext

JOBS = {
    "keygen": "keyquorum.plans.keygen:keygen_job",
    "decrypt": "keyquorum.plans.decrypt:decrypt_job",
    "program": "keyquorum.plans.program:program_job",
}
FIELDS: dict[str, dict[str, type]] = {
    "keygen": {
        "key": str,
        "parameters": dict,
        "relin": bool,
        "galois_elements": list,
        "error_law": str,
        "policy": dict,
    },
    "decrypt": {"key": str, "receiver": int, "rounding": str, "sha256": list, "local": dict},
    "program": {"request": dict, "local": dict},
}
"""What a job of each kind must have; the plans check the values."""


def run_job(context: PartyContext, job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job given as plain data, with the key ``kind``."""
    name = job.get("kind")
    if not isinstance(name, str) or name not in JOBS:
        raise KeyQuorumError(f"unknown job {name!r}: choose one of {', '.join(JOBS)}")
    for field, kind in FIELDS[name].items():
        if type(job.get(field)) is not kind:
            raise KeyQuorumError(
                f"the {name} job has no {field!r}, or not as a {kind.__name__}: write the job file again"
            )
    module, function = JOBS[name].split(":")
    run: Callable[[PartyContext, dict[str, Any]], dict[str, Any]] = getattr(import_module(module), function)
    return run(context, job)
