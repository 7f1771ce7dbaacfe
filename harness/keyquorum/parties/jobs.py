"""Jobs by name: what a party process can be asked to run. Plans register theirs, so that this floor knows none of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.links import check_link
from keyquorum.model.plain import json_loads

from .context import PartyContext

JOBS = {
    "keygen": "keyquorum.plans.keygen:keygen_job",
    "lwe_keygen": "keyquorum.plans.lwe_keys:lwe_keygen_job",
    "pool_fill": "keyquorum.plans.pool_jobs:pool_fill_job",
    "lwe_decrypt": "keyquorum.plans.pool_jobs:lwe_decrypt_job",
    "decrypt": "keyquorum.plans.decrypt:decrypt_job",
    "program": "keyquorum.plans.program:program_job",
    "bench_decrypt": "keyquorum.bench.decrypt:bench_decrypt_job",
    "exchanges": "keyquorum.bench.exchanges:exchanges_job",
    "parity": "keyquorum.bench.parity.embedded:parity_job",
    "dishonest": "keyquorum.bench.dishonest:dishonest_job",
    "paper004": "keyquorum.bench.paper004:paper004_job",
    "bench": "keyquorum.bench.sweep.party:bench_job",
}
FIELDS: dict[str, dict[str, type]] = {
    "keygen": {
        "key": str,
        "parameters": dict,
        "relin": bool,
        "galois_elements": list,
        "error_law": str,
        "policy": dict,
        "backend": str,
        "local": dict,
    },
    "lwe_keygen": {"key": str, "parameters": str},
    "pool_fill": {"parameters": str, "rounding": str, "width": int, "levels": int, "count": int, "chunk": int},
    "lwe_decrypt": {
        "key": str, "receiver": int, "sha256": str, "parameters": str, "rounding": str, "width": int, "levels": int, "local": dict,
    },
    "decrypt": {"key": str, "receiver": int, "rounding": str, "sha256": list, "backend": str, "local": dict},
    "program": {"request": dict, "local": dict},
    "bench_decrypt": {"parameters": str, "rounding": str, "width": int, "levels": int, "items": int, "single": bool},
    "exchanges": {"runs": int},
    "parity": {"protocol": str, "repeats": int, "row": int},
    "dishonest": {"row": int, "repeats": int},
    "bench": {"suite": str, "name": str, "protocol": str, "batch": int, "warm_up": int, "repeats": int},
    "paper004": {"row": int, "quick": bool, "repeats": int},
}
"""What a job of each kind must have; the plans check the values."""


def backend_of(job: dict[str, Any]) -> tuple[str, str | None]:
    """The backend that a job names, and under ``local`` the checkout of MP-SPDZ on this host (None: MP_SPDZ_HOME)."""
    local = job.get("local", {})
    name, mp_spdz = job.get("backend", "embedded"), local.get("mp_spdz") if isinstance(local, dict) else None
    if type(name) is not str or not (mp_spdz is None or type(mp_spdz) is str):
        raise KeyQuorumError("the job's backend, or mp_spdz under local, is no text: write the job file again")
    return name, mp_spdz


def link_of(job: dict[str, Any]) -> str:
    """The simulated links that a job names; empty for real ones."""
    spec = job.get("link")
    if spec is None:
        return ""
    if type(spec) is not str:
        raise KeyQuorumError("the job's link is no text: write the job file again")
    check_link(spec)
    return spec


def local_path(job: dict[str, Any], name: str) -> Path:
    """A path of this host that a job names under ``local``."""
    path = job["local"].get(name)
    if not isinstance(path, str) or not path.isprintable():
        raise KeyQuorumError(f"the {job['kind']} job has no path {name!r} under local: write the job file again")
    return Path(path)


def read_job(path: Path) -> dict[str, Any]:
    """A job file, as plain data that nobody has checked yet."""
    try:
        job = json_loads(path.read_text())
        if not isinstance(job, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise ParameterError(f"{path}: not a job file ({error}): write one with keyquorum keygen --job or decrypt --job") from None
    return job


def check_job(job: dict[str, Any]) -> str:
    """Refuses a job of an unknown kind, or without a field that its kind has; returns the kind."""
    name = job.get("kind")
    if not isinstance(name, str) or name not in JOBS:
        raise KeyQuorumError(f"unknown job {name!r}: choose one of {', '.join(JOBS)}")
    for field, kind in FIELDS[name].items():
        if type(job.get(field)) is not kind:
            raise KeyQuorumError(
                f"the {name} job has no {field!r}, or not as a {kind.__name__}: write the job file again"
            )
    return name


def run_job(context: PartyContext, job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job given as plain data, with the key ``kind``."""
    module, function = JOBS[check_job(job)].split(":")
    run: Callable[[PartyContext, dict[str, Any]], dict[str, Any]] = getattr(import_module(module), function)
    return run(context, job)
