"""Resharings among parties of a test, each a thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.plain import Json
from keyquorum.parties import PartyContext, RunReport, run_in_process
from keyquorum.parties.jobs import check_alone, run_job
from keyquorum.plans.epochs.origins import SEMI_HONEST
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_key, load_shares

from tests.plans.test_refresh import opened

Done = tuple[Json, RunReport]


def reshared(old: Committee, new: Committee, dealers: Sequence[int] | None = None, timeout: float = 60.0, keep_old: bool = False) -> list[Done]:
    """Passes all keys on, whatever their origin; the result and the cost at each party, old members first."""
    between = bridge(old, new, dealers)
    job = api.reshare_job(old, new, dealers, SEMI_HONEST, keep_old)
    for party in range(between.size):
        check_alone(between, party, job)

    def party(context: PartyContext) -> Done:
        return run_job(context, job), context.report

    done = cast(list[Done], run_in_process(between, party, timeout=timeout))
    assert len({result["name"] for result, _ in done}) == 1
    return done


def secrets_of(committee: Committee, key: str = "key") -> list[list[int]]:
    """The secret vectors that all parties' shares give together, also over long primes."""
    place = committee.key_folder(0, key)
    held = [load_shares(committee.key_folder(party, key), load_key(place), party) for party in range(committee.size)]
    found = []
    for index, vector in enumerate(holding_of(place, load_key(place)).vectors):
        words = [np.array(shares[index].words) for shares in held]
        if Domain.parse(vector.domain).bits > 64 and Domain.parse(vector.domain).prime is not None:
            words = [_wide(each) for each in words]
        found.append(opened(committee, words, vector.domain))
    return found


def _wide(words: np.ndarray) -> np.ndarray:
    low, high = words[:, 0::2].astype(object), words[:, 1::2].astype(object)
    return cast(np.ndarray, low + (high << 64))


def has_any(folder: Path, shares: Sequence[bytes]) -> bool:
    """Whether one of these is below a folder."""
    whole = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return any(share in whole for share in shares)
