"""Jobs, parameter sets, addresses and sessions of served parties, audit logs, locks, deployments, and outputs of programs."""

from __future__ import annotations

import re

from keyquorum.deploy.compose import FILE as COMPOSE
from keyquorum.model.committee import place_text
from keyquorum.model.errors import AuditError, CommitteeError
from keyquorum.model.inspected import Candidate, Kind, Report, openness, require
from keyquorum.model.plain import Json, is_count, json_loads
from keyquorum.parties.audit.chain import HEAD, read_head
from keyquorum.parties.audit.verify import fingerprint_beside, verify
from keyquorum.parties.jobs import job_kinds, read_job
from keyquorum.parties.traces import TEMPORARY
from keyquorum.schemes import load_parameters, scheme_of, schemes
from keyquorum.serve.limits import NAME as LIMITS
from keyquorum.serve.limits import read_limits
from keyquorum.serve.sessions import NAME as SESSIONS
from keyquorum.serve.sessions import has_cut_offs, read_sessions

_OUTPUT = re.compile(r"Binary-Output-P\d+-\d+")
_EMPTY_LOCKS = ("decryptions.lock", "approved.lock", "pool.lock")
"""Files that name no holder."""


def _job(candidate: Candidate) -> Report:
    job = read_job(candidate.path)
    lines = [f"job for keyquorum party: {job['kind']}" + (f", key {job['key']}" if "key" in job else "")]
    if isinstance(job.get("sha256"), list):
        lines += [f"ciphertext sha256 {digest}" for digest in job["sha256"]]
    if "receiver" in job:
        lines.append(f"party {job['receiver']} gets the result")
    return Report(lines, details={"job": job["kind"], "key": job.get("key")})


def _parameters(candidate: Candidate) -> Report:
    set_ = load_parameters(candidate.path, warn=False)
    lines = [f"parameter set {set_.name}: {scheme_of(set_).texts.file(set_)}"]
    return Report(lines, details={"parameters": set_.name, "scheme": set_.scheme})


def _is_parameters(candidate: Candidate) -> bool:
    fields = {"scheme", *(field for scheme in schemes() for field in scheme.file_fields)}
    return candidate.toml is not None and bool(fields & set(candidate.toml))


def _place(candidate: Candidate) -> Report:
    again = "start keyquorum serve of this party again, which writes it"
    require(candidate.has("host", "port", "metrics"), candidate.path, again)
    host, port, metrics = (candidate.json[name] for name in ("host", "port", "metrics"))
    require(isinstance(host, str) and is_count(port) and is_count(metrics), candidate.path, again)
    lines, details = [f"where a party serves: {place_text(host, port)}, metrics at port {metrics}"], {"host": host, "port": port, "metrics": metrics}
    if candidate.has("live_host", "live"):
        live_host, live = candidate.json["live_host"], candidate.json["live"]
        require(isinstance(live_host, str) and is_count(live), candidate.path, again)
        lines.append(f"it answers the other parties at {place_text(live_host, live)}")
        details = {**details, "live_host": live_host, "live": live}
    return Report(lines, details=details)


def _sessions(candidate: Candidate) -> Report:
    broken, failed = read_sessions(candidate.path)
    what = "challenges of MAC checks that were cut off" if has_cut_offs(candidate.path) else "sessions of a served party that broke off"
    lines = [f"{what}: {broken:,}"]
    lines += [f"a check failed, and the party does not serve while this file is here: {failed}"] if failed else []
    return Report(lines, details={"broken": broken, "failed": failed})


def _limits(candidate: Candidate) -> Report:
    found = read_limits(candidate.path)
    lines = [f"limits of receivers at a served party: {', '.join(map(str, found.all)) or 'none'}"]
    lines += [f"{name}: {', '.join(map(str, own)) or 'none'}" for name, own in found.receivers.items()]
    return Report(lines, details={"all": [*map(str, found.all)], "receivers": {name: [*map(str, own)] for name, own in found.receivers.items()}})


def _audit(candidate: Candidate) -> Report:
    """Counts the lines of a log by result, and verifies their chain and signatures. Raises for a line that is not whole. A new log is empty."""
    path, results, bad = candidate.path, dict.fromkeys(("answered", "refused"), 0), list[int]()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            entry = _entry(line)
            if entry is None:
                bad.append(number)
            elif "event" not in entry:
                results[entry["result"]] += 1
    if bad:
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise AuditError(
            f"{path}: line {bad[0]} is cut off or changed{more}: what it said of a request is lost; keep the file, the party goes on with it"
        )
    found = verify([path], fingerprint_beside(path))
    lines = [f"audit log of a served party: {results['answered']:,} requests answered, {results['refused']:,} refused"]
    lines += [f"not signed yet: the last {found.unsigned:,} lines"] if found.unsigned else []
    return Report([*lines, *openness(path)], "chain of the lines, signatures", details=dict(results))


def _audit_head(candidate: Candidate) -> Report:
    found = read_head(candidate.path.with_suffix(""))
    require(found is not None, candidate.path, "the party writes it again with the next request")
    assert found is not None
    return Report(
        [f"head of an audit log: {found[0].number:,} lines, chain {found[0].chain}", *openness(candidate.path)], details={"lines": found[0].number}
    )


def _entry(line: bytes) -> Json | None:
    """A line of an audit log; None if it is malformed."""
    try:
        entry = json_loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    if not isinstance(entry, dict) or not {"time", "party"} <= set(entry):
        return None
    whole = isinstance(entry.get("event"), str) or ({"receiver", "sha256"} <= set(entry) and entry.get("result") in ("answered", "refused"))
    return entry if whole else None


def _lock(candidate: Candidate) -> Report:
    if candidate.path.name in _EMPTY_LOCKS or candidate.path.stat().st_size == 0:
        require(candidate.path.stat().st_size == 0, candidate.path, "remove it when nothing of KeyQuorum runs")
        return Report(["lock file, which names no holder"])
    require(candidate.has("what", "pid", "host", "since"), candidate.path, "remove it when nothing of KeyQuorum runs")
    said = {name: candidate.json[name] for name in ("what", "pid", "host", "since")}
    return Report([f"lock file; last held by {said['what']} (process {said['pid']} on {said['host']}, since {said['since']})"], details=said)


def _compose(candidate: Candidate) -> Report:
    services = candidate.json.get("services") if isinstance(candidate.json, dict) else None
    if not isinstance(services, dict) or not services:
        raise CommitteeError(f"{candidate.path}: not a Compose file of keyquorum compose, or a damaged one: make the deployment again")
    return Report([f"Compose file of {len(services)} parties: {', '.join(services)}"], details={"services": list(services)})


def _output(candidate: Candidate) -> Report:
    size = candidate.path.stat().st_size
    require(size > 0 and size % 8 == 0, candidate.path, "run the program again")
    return Report([f"output of a program: {size // 8:,} numbers of 64 bits"], details={"count": size // 8})


def _temporary(candidate: Candidate) -> Report:
    return Report(["temporary file of a process that writes, or was killed; it may hold secrets. The party's next start removes it"])


KINDS = (
    Kind(
        "temporary file",
        lambda c: not c.is_folder and TEMPORARY.fullmatch(c.path.name) is not None,
        _temporary,
        ("model/committee", "model/outputs", "serve/wire"),
    ),
    Kind("job", lambda c: c.has("kind") and c.json["kind"] in job_kinds(), _job, ("api",)),
    Kind("parameter set", _is_parameters, _parameters, ("cli/parameters",)),
    Kind("address of a served party", lambda c: c.named("serve.json"), _place, ("serve/daemon", "serve/moved")),
    Kind("record of served sessions", lambda c: c.named(SESSIONS), _sessions, ("serve/sessions",)),
    Kind("limits of receivers", lambda c: c.named(LIMITS), _limits, ()),
    Kind("audit log", lambda c: not c.is_folder and c.path.suffix == ".jsonl", _audit, ("parties/audit/log",)),
    Kind("head of an audit log", lambda c: not c.is_folder and c.path.name.endswith(".jsonl" + HEAD), _audit_head, ("parties/audit/log",)),
    Kind(
        "lock",
        lambda c: not c.is_folder and c.path.suffix in (".lock", ".claim"),
        _lock,
        ("model/locks", "schemes/counts", "schemes/seal/approvals", "plans/pool_store"),
    ),
    Kind("Compose file", lambda c: c.named(COMPOSE), _compose, ("deploy/compose",)),
    Kind(
        "output of a program",
        lambda c: not c.is_folder and _OUTPUT.fullmatch(c.path.name) is not None,
        _output,
        ("dsl/files/program_io", "backends/mpspdz/files"),
    ),
)
