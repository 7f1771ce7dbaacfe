"""Committees whose parties are threads, with folders: they run jobs as parties of several hosts do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import check_alone, run_job


def on_disk(tmp_path: Path, protocol: str, parties: int) -> Committee:
    """A committee with the folders of all its parties."""
    members = replace(api.in_process_committee(parties, protocol), folder=tmp_path / "committee")
    for party in range(parties):
        members.party_folder(party).mkdir(parents=True, mode=0o700)
        members.identity_path(party).touch()  # by which a party is known to be of this host
    return members


def run(members: Committee, job: dict[str, Any]) -> list[dict[str, Any]]:
    """A job among threads, from its text, as a party gets it."""
    job = json.loads(json.dumps(job))
    for party in range(members.size):
        check_alone(members, party, job)
    return run_in_process(members, lambda context: run_job(context, job), timeout=60)
