"""Jobs by name: what a party process can be asked to run. Plans register theirs, so that this floor knows none of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.links import check_link

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
