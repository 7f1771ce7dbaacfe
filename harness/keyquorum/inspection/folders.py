"""Committees, parties and pools."""

from __future__ import annotations

from pathlib import Path

from keyquorum.model.committee import BASE_OT, OPENINGS, Committee
from keyquorum.model.errors import CommitteeError, PoolError
from keyquorum.model.inspected import Candidate, Kind, Report, openness, require
from keyquorum.parties import mac_key
from keyquorum.plans.pool_list import read_pool
from keyquorum.plans.pool_store import last_claim, pool_status
from keyquorum.plans.pools import pools_folder
from keyquorum.schemes.key_folder import METADATA, holds_a_key

from .private import burned_line, check_identity, check_share_file

DROP = "keyquorum pool drop, and fill again"


def _committee_lines(committee: Committee) -> list[str]:
    lines = [f"committee {committee.name}: {committee.protocol} ({committee.capabilities.summary}), t = {committee.threshold}"]
    if committee.openings != "direct":
        lines.append(f"openings: {committee.openings} ({OPENINGS[committee.openings]})")
    lines.append(f"base OT: {committee.base_ot} ({BASE_OT[committee.base_ot]})")
    if not committee.lpn:
        lines.append("without learning parity with noise")
    for party in committee.parties:
        here = "here" if party.index in committee.local_parties() else "elsewhere"
        lines.append(f"party {party.index} ({here}) {party.place} {party.fingerprint or 'fingerprint missing'}")
    return lines


def _details(committee: Committee) -> dict[str, object]:
    return {"name": committee.name, "protocol": committee.protocol, "parties": committee.size, "threshold": committee.threshold}


def _committee(candidate: Candidate) -> Report:
    committee = Committee.load(candidate.path)
    lines = _committee_lines(committee)
    for party in committee.local_parties():
        check_identity(committee.identity_path(party))
        lines += _party_lines(committee, party)
    return Report(lines, "identities against committee.toml", _details(committee))


def _party_lines(committee: Committee, party: int) -> list[str]:
    folder, key = committee.party_folder(party), mac_key.kept(committee, party)
    lines = [] if key is None else [burned_line(key, party)]
    lines += [f"party {party} has key {path.name}" for path in sorted((folder / "keys").glob("*")) if holds_a_key(path)]
    for path in sorted(p for p in pools_folder(committee, party).glob("*") if (p / "pool.json").exists()):
        made, used = pool_status(path)
        lines.append(f"party {party} has pool {path.name}: {max(0, made - used):,} items left of {made:,}")
    return lines


def _committee_file(candidate: Candidate) -> Report:
    committee = Committee.load(candidate.path.parent)
    return Report(["the committee file:", *_committee_lines(committee)], details=_details(committee))


def _party(candidate: Candidate) -> Report:
    path = candidate.path
    fingerprint = check_identity(path / "identity.pem")
    lines = [f"folder of one party, {path.name}, certificate {fingerprint}"]
    root, number = path.absolute().parent, path.absolute().name.removeprefix("party-")
    if (root / "committee.toml").is_file() and number.isdigit():
        lines += _party_lines(Committee.load(root), int(number))
    return Report(lines, "identity against committee.toml", {"fingerprint": fingerprint})


def _pool_folder(candidate: Candidate) -> Report:
    path = candidate.path
    used, pool = _used(path), read_pool(path)
    assert pool is not None
    made = pool.chunks.items
    for chunk, first in pool.chunks.there():
        file = path / f"chunk-{chunk.id}.kqs"
        if not file.exists():
            if first + chunk.count > used:
                raise PoolError(f"{file}: missing: keyquorum pool drop at every party, and fill again")
            continue
        header = check_share_file(file)
        require(header["key_id"] == chunk.id and header["length"] == chunk.count, file, DROP)
    lines = [f"pool {path.name}, of party {pool.kind.get('party')}: {max(0, made - used):,} items left of {made:,}", f"id {pool.id}"]
    return Report(lines, "journal, and sha256 of its share files", {"made": made, "used": used, "id": pool.id})


def _pool(candidate: Candidate) -> Report:
    pool = read_pool(candidate.path.parent)
    assert pool is not None
    chunks = pool.chunks
    lines = [f"list of a pool's items: {chunks.items:,} items in {chunks.number} chunks, {pool.kind.get('variant', '')}", f"id {pool.id}"]
    return Report([*lines, *openness(candidate.path)], details={"made": chunks.items, "id": pool.id})


def _used(folder: Path) -> int:
    """Items of a pool that are used or given up, from its journal. Raises PoolError if the journal is missing or damaged."""
    path, pool = folder / "cursor.journal", read_pool(folder)
    if pool is None:
        raise PoolError(f"{path}: a journal without pool.json beside it, which its checksums hang on: {DROP}")
    claim = last_claim(path, pool.id, pool.chunks.items)
    if claim is None:
        raise PoolError(f"{path}: missing or damaged, so what was used is not known: {DROP}")
    if not path.read_bytes().endswith(b"\n"):
        raise PoolError(f"{path}: its last line is torn: the next use of the pool gives up what it may have claimed, {claim.used:,} items in all")
    return claim.used


def _journal(candidate: Candidate) -> Report:
    used = _used(candidate.path.parent)
    return Report([f"journal of a pool: {used:,} items are used or given up", *openness(candidate.path)], "checksum of every line", {"used": used})


def _is_party(candidate: Candidate) -> bool:
    return candidate.holds("identity.pem")


def refuse_folder(path: Path) -> None:
    """Raises CommitteeError for a folder of no known kind."""
    raise CommitteeError(f"{path}: neither a committee (committee.toml) nor a party, a key ({METADATA}), or a pool (pool.json)")


KINDS = (
    Kind("committee folder", lambda c: c.holds("committee.toml"), _committee, ("parties/setup", "deploy/compose")),
    Kind("committee file", lambda c: c.named("committee.toml"), _committee_file, ("model/committee", "deploy/compose")),
    Kind("pool folder", lambda c: c.holds("pool.json"), _pool_folder, ("plans/pool_store",)),
    Kind("list of a pool", lambda c: c.named("pool.json"), _pool, ("plans/pool_store", "plans/pool_list")),
    Kind("journal of a pool", lambda c: c.named("cursor.journal"), _journal, ("plans/pool_store",)),
    Kind("party folder", _is_party, _party, ("parties/setup",)),
)
