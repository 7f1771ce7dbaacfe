"""Jobs that a party process can run, by kind. Plans and benchmarks define them (:func:`party_job`), so this folder imports neither."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from keyquorum.model.bridge import bridge_of, is_bridge_job
from keyquorum.model.committee import Committee, require_semi_honest
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.links import check_link
from keyquorum.model.plain import Json, is_count, json_loads, read_text
from keyquorum.model.subset import ABSENT, parties_of, present_of

from .context import PartyContext

PACKAGES = {"": "keyquorum.plans", "sweep": "keyquorum.sweep"}
"""Packages that have jobs, by the prefix of the kind: ``sweep:decrypt`` is in the second one. Each has ``JOBS``, a table of names and modules."""
Run = Callable[[PartyContext, Json], Json]
Check = Callable[[Committee, int, Json], None]


@dataclass(frozen=True)
class Job:
    """A kind of job. ``fields``: names and types of its fields (plans check the values). ``more_fields``: further fields, which depend on the values
    of the first. ``optional``: fields that a job may have; others are refused. ``check``: refuses a job by local checks, before the party connects to the others. ``subsets``: whether some parties can run it
    without the others, those under :data:`SUBSET`. ``verified``: whether it is argued and tested against malicious parties of a committee that verifies
    products, or refuses by itself what is not; all others refuse such a committee."""

    run: Run
    fields: Mapping[str, type]
    check: Check | None
    more_fields: Callable[[Json], Mapping[str, type]]
    subsets: bool
    verified: bool
    optional: Mapping[str, type]


SUBSET = "subset"
"""Field of a job: numbers of the parties that run it without the others (missing, or null: all)."""
COMMON: Mapping[str, type] = {"kind": str, "backend": str, "local": dict}
"""Fields that any job may have, besides :data:`SUBSET` and ``link``, which has a check of its own."""
_defined: dict[str, Job] = {}


def add_package(prefix: str, package: str) -> None:
    """Lets this process, and the parties that it starts, run the jobs of a package outside of :mod:`keyquorum`, whose kinds begin with ``prefix:``. The
    program that starts the parties calls this; a job cannot name a package. Raises KeyQuorumError where another package has the prefix."""
    if PACKAGES.setdefault(prefix, package) != package:
        raise KeyQuorumError(f"jobs {prefix}: are of {PACKAGES[prefix]} in this process: choose another prefix for {package}")


def party_job(
    kind: str, fields: Mapping[str, type], check: Check | None = None,
    more_fields: Callable[[Json], Mapping[str, type]] = lambda job: {}, subsets: bool = False, verified: bool = False,
    optional: Mapping[str, type] | None = None,
) -> Callable[[Run], Run]:  # fmt: skip
    """A decorator that makes a function a job of this kind, see :class:`Job`. The package's ``JOBS`` names the module."""

    def define(run: Run) -> Run:
        _defined[kind] = Job(run, fields, check, more_fields, subsets, verified, {**COMMON, **(optional or {})})
        return run

    return define


def job_kinds(of: str = "") -> list[str]:
    """The kinds of jobs of a package (default: plans)."""
    return [f"{of}:{name}" if of else name for name in import_module(PACKAGES[of]).JOBS]


def find_job(kind: object) -> Job:
    """The job of a kind, whose module is imported. Raises KeyQuorumError for an unknown kind."""
    of, _, _ = kind.rpartition(":") if isinstance(kind, str) else ("", "", "")
    if not isinstance(kind, str) or of not in PACKAGES or kind not in job_kinds(of):
        raise KeyQuorumError(f"unknown job {kind!r}: choose one of {', '.join(job_kinds())}")
    if kind not in _defined:
        package = import_module(PACKAGES[of])
        import_module(f"{package.__name__}.{package.JOBS[kind.rpartition(':')[2]]}")
    return _defined[kind]


SHOWN = 100
"""Characters of a value that are sent to other parties for the comparison of jobs."""
MOST_ENTRIES = 400


def job_entries(job: Json) -> list[tuple[str, str]]:
    """Everything that the parties of a job must agree on, by name: all but the party's own paths. Long values, and the whole job, are represented by
    their hashes."""
    common = {name: value for name, value in job.items() if name not in ("kind", "local")}
    flat: list[tuple[str, object]] = [("kind", job.get("kind"))]
    for name, value in common.items():
        flat += [(f"{name}.{inner}", v) for inner, v in value.items()] if isinstance(value, dict) else [(name, value)]
    entries = [(name, _shown(value)) for name, value in flat if name.isprintable() and "=" not in name and len(name) <= SHOWN]
    digest = hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()[:32]
    return [*entries[:MOST_ENTRIES], ("digest of the job", digest)]


def _shown(value: object) -> str:
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value, sort_keys=True)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}... (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"


def backend_of(job: Json) -> tuple[str, str | None]:
    """The backend that a job names, and under ``local`` the checkout of MP-SPDZ on this host (None: MP_SPDZ_HOME)."""
    local = job.get("local", {})
    name, mp_spdz = job.get("backend", "embedded"), local.get("mp_spdz") if isinstance(local, dict) else None
    if type(name) is not str or not (mp_spdz is None or type(mp_spdz) is str):
        raise KeyQuorumError("the job's backend, or mp_spdz under local, is no text: write the job file again")
    return name, mp_spdz


def link_of(job: Json) -> str:
    """The simulated links of a job; empty for real ones. Raises KeyQuorumError."""
    spec = job.get("link")
    if spec is None:
        return ""
    if type(spec) is not str:
        raise KeyQuorumError("the job's link is no text: write the job file again")
    check_link(spec, str(job.get("backend", "embedded")))
    return spec


def local_path(job: Json, name: str) -> Path:
    """A path of this host that a job names under ``local``."""
    path = job["local"].get(name)
    if not isinstance(path, str) or not path.isprintable():
        raise KeyQuorumError(f"the {job['kind']} job has no path {name!r} under local: write the job file again")
    return Path(path)


NAMES = ("ciphertexts", "outputs")
"""Fields under ``local`` with lists of file names, which are relative to the job file."""


def read_job(path: Path) -> Json:
    """The job in a file, checked by :func:`check_job`, with the file names under ``local`` as paths of this host. Raises ParameterError."""
    try:
        job = json_loads(read_text(path))
        if not isinstance(job, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise ParameterError(f"{path}: not a job file ({error}): write one with keyquorum keygen --job or decrypt --job") from None
    try:
        check_job(job)
    except KeyQuorumError as error:
        raise ParameterError(f"{path}: {error}") from None
    return _with_names(job, lambda name: str(Path(str(path)).absolute().parent / name))


def relative_to(job: Json, folder: Path) -> Json:
    """The job with file names under ``local`` relative to the folder of its job file."""
    return _with_names(job, lambda name: os.path.relpath(name, folder))


def _with_names(job: Json, change: Callable[[str], str]) -> Json:
    local = job.get("local")
    if not isinstance(local, dict):
        return job
    changed = {name: [change(p) if _is_path(p) else p for p in local[name]] for name in NAMES if isinstance(local.get(name), list)}
    return {**job, "local": {**local, **changed}}


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def at_this_host(job: Json, ciphertexts: Sequence[Path] = (), output: Sequence[Path] = (), mp_spdz: Path | None = None) -> Json:
    """A job with other paths under ``local``: ciphertexts in their order; a folder for its outputs, or a file for each; the checkout of
    MP-SPDZ. Raises ParameterError if the job has no such files, or another number of them."""
    local = dict(job.get("local", {}))
    if ciphertexts:
        _check_count(job, "ciphertexts", len(ciphertexts))
        local["ciphertexts"] = [str(path.absolute()) for path in ciphertexts]
    if len(output) == 1 and output[0].is_dir():
        if isinstance(local.get("outputs"), list):
            local["outputs"] = [str(output[0].absolute() / Path(name).name) for name in local["outputs"] if _is_path(name)]
    elif output:
        _check_count(job, "outputs", len(output))
        local["outputs"] = [str(path.absolute()) for path in output]
    if mp_spdz is not None:
        local["mp_spdz"] = str(mp_spdz.resolve())
    return {**job, "local": local} if local or "local" in job else job


def _check_count(job: Json, name: str, given: int) -> None:
    named = job["local"].get(name) if isinstance(job.get("local"), dict) else None
    expected = len(job["sha256"]) if job["kind"] == "decrypt" else len(named) if isinstance(named, list) else 0
    if given != expected:
        option = {"ciphertexts": "--ciphertext", "outputs": "--output"}[name]
        cure = f"leave out {option}" if not expected else f"give {option} once for each, in the order of the job"
        raise ParameterError(f"{given} {name} for the {job['kind']} job, which has {expected}: {cure}")


def check_job(job: Json) -> str:
    """The kind of a job. Raises KeyQuorumError if the kind is unknown, or a field of the kind is missing or of another type."""
    kind = job.get("kind")
    found = find_job(kind)
    _check_fields(job, found.fields)
    _check_fields(job, found.more_fields(job))
    members = job.get(SUBSET)
    if members is not None and not (found.subsets and isinstance(members, list) and all(map(is_count, members))):
        raise KeyQuorumError(f"the {kind} job has {SUBSET!r} that is no list of parties, or is run by all parties: write the job file again")
    if job.get(ABSENT) is not None and not (isinstance(job[ABSENT], list) and all(map(is_count, job[ABSENT]))):
        raise KeyQuorumError(f"the {kind} job has {ABSENT!r} that is no list of parties: write the job file again")
    for field in ("key", "sha256"):  # they become names of files, or are shown to other parties
        values = job.get(field, [])
        texts = values if isinstance(values, list) else [values]
        if not all(isinstance(v, str) and v.isprintable() for v in texts):
            raise KeyQuorumError(f"the {kind} job has {field!r} that is no printable text: write the job file again")
    _check_more(job, found)
    return str(kind)


def _check_more(job: Json, found: Job) -> None:
    """Refuses optional fields of other types, and fields that the kind does not have: nobody would obey them. Benchmarks write their own jobs."""
    _check_fields(job, {field: kind for field, kind in found.optional.items() if field in job})
    known = {*found.fields, *found.more_fields(job), *found.optional, SUBSET, "link"}
    unknown = sorted(set(job) - known)
    if unknown and ":" not in job["kind"]:
        raise KeyQuorumError(
            f"the {job['kind']} job has a field {unknown[0][:SHOWN]!r}, which it does not know: write the job file again, with the version of this party"
        )


def runs(committee: Committee, job: Json) -> Committee:
    """The parties that run a job: the whole committee, the subset that the job names, all but those that it names as absent, or those of a job between two committees. Raises ParameterError for a subset that is none, and
    CommitteeError for a committee that is neither."""
    if is_bridge_job(job):
        return bridge_of(committee, job)
    return present_of(committee, job[ABSENT]) if job.get(ABSENT) else parties_of(committee, job.get(SUBSET))


def subset_field(parties: Sequence[int] | None) -> Json:
    """The field of a job that names a subset; nothing for all parties."""
    return {} if parties is None else {SUBSET: sorted(parties)}


def _check_fields(job: Json, fields: Mapping[str, type]) -> None:
    for field, kind in fields.items():
        if type(job.get(field)) is not kind:
            raise KeyQuorumError(f"the {job['kind']} job has no {field!r}, or not as a {kind.__name__}: write the job file again")


def check_alone(committee: Committee, party: int, job: Json) -> None:
    """Refuses a job that this party cannot run, by local checks of its key, share and policy, and of the files of the job."""
    found = _admitted(committee, job)
    if found.check is not None:
        found.check(committee, party, job)


def _admitted(committee: Committee, job: Json) -> Job:
    """The kind of a job, unless the committee's parties may be malicious and the job promises nothing then."""
    kind = check_job(job)
    found = find_job(kind)
    if not found.verified:
        require_semi_honest(committee, f"the job {kind}")
    return found


def run_job(context: PartyContext, job: Json) -> Json:
    """Runs a job given as plain data, with the key ``kind``. Raises ParameterError where the parties are not those of the job."""
    job_of_kind = _admitted(context.committee, job)
    if runs(context.committee.whole, job).digest != context.committee.digest:
        raise ParameterError(f"the {job['kind']} job is for other parties than those that are connected: this is a bug")
    return job_of_kind.run(context, job)
