"""lisss_share: every subset reconstructs, at the cost stated; and what fewer parties see does not depend on the secret."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from keyquorum.model.errors import ProgramError

from tests.protocols import EMULATE_RING, REPLICATED_FIELD, REPLICATED_RING, SEMI_FIELD_3, SEMI_RING, SEMI_RING_4, SHAMIR_3, SHAMIR_5, Backend

from .running import run

RNG = np.random.default_rng(24)
BITS_5, REPLICATED_BITS = Backend("semi2k", 5, "Z2^1", 4), Backend("ring", 3, "Z2^1", 1)
BACKENDS = [REPLICATED_RING, REPLICATED_FIELD, REPLICATED_BITS, SHAMIR_3, SHAMIR_5, SEMI_RING, SEMI_RING_4, SEMI_FIELD_3, BITS_5]


def subset_shares(
    backend: Backend, members: int, first: int, count: int, secret: np.ndarray, inputs: np.ndarray | None = None
) -> dict[tuple[int, ...], list[np.ndarray]]:
    """The shares of a run, of each member of each subset. ``inputs``: a row for each summand, subset after subset (default: random)."""
    parties, size = backend.parties, len(secret)
    subsets = list(combinations(range(parties), members))[first : first + count]
    rows = iter(RNG.integers(0, min(backend.modulus, 1 << 62), (count * (members - 1), size)) if inputs is None else inputs)
    chosen = {subset: [next(rows) for _ in subset[:-1]] for subset in subsets}
    private = {p: np.concatenate([np.zeros(0, np.int64), *(chosen[s][s.index(p)] for s in subsets if p in s[:-1])]) for p in range(parties)}
    arguments = {"parties": parties, "members": members, "size": size, "first": first, "count": count, "at": 3}
    shares = np.concatenate([RNG.integers(0, 2, 3), secret, RNG.integers(0, 2, 2)])
    out = run("lisss_share", arguments, backend, private=private, shares=shares)
    assert not len(out.shares) and not len(out.public)
    opened = {p: list(out.personal[p].reshape(-1, size)) for p in range(parties)}
    made = {subset: [*chosen[subset], opened[subset[-1]].pop(0)] for subset in subsets}
    assert not any(opened.values())
    return made


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_every_subset_reconstructs(backend: Backend) -> None:
    secret = RNG.integers(0, 2, 20) if backend.modulus == 2 else RNG.integers(0, 2**40, 20)
    for members in range(2, backend.parties + 1):
        whole = comb(backend.parties, members)
        for first, count in {(0, whole), (whole // 2, whole - whole // 2)}:
            made = subset_shares(backend, members, first, count, secret)
            assert len(made) == count
            for shares in made.values():
                total = [int(sum(int(v) for v in column)) % backend.modulus for column in zip(*shares, strict=True)]
                assert total == secret.tolist()


@pytest.mark.parametrize(("parties", "members", "bits"), [(2, 2, 1), (3, 2, 1), (3, 3, 1), (4, 3, 1), (3, 2, 2), (3, 3, 2), (4, 3, 2)])
def test_fewer_parties_get_the_same_for_every_secret(parties: int, members: int, bits: int) -> None:
    """Exhaustive: entry j of the vectors has the j-th choice of all inputs. What any members - 1 parties get has one distribution for all secrets. With
    the first summand of every subset left out it has not."""
    backend = Backend("semi2k", parties, f"Z2^{bits}", parties - 1)
    summands = comb(parties, members) * (members - 1)
    choices = np.array(list(product(range(1 << bits), repeat=summands)))
    made = [subset_shares(backend, members, 0, comb(parties, members), np.full(len(choices), secret), choices.T) for secret in range(1 << bits)]
    fixed = np.where(np.arange(summands)[:, None] % (members - 1) == 0, 0, choices.T)
    weak = [subset_shares(backend, members, 0, comb(parties, members), np.full(len(choices), secret), fixed) for secret in (0, 1)]

    def view(shares: dict[tuple[int, ...], list[np.ndarray]], corrupt: tuple[int, ...]) -> Counter[tuple[int, ...]]:
        seen = [share & (1 << bits) - 1 for subset, own in shares.items() for party, share in zip(subset, own, strict=True) if party in corrupt]
        return Counter(map(tuple, np.stack(seen, axis=1).tolist()))

    coalitions = list(combinations(range(parties), members - 1))
    assert all(view(made[0], corrupt) == view(other, corrupt) for corrupt in coalitions for other in made[1:])
    assert any(view(weak[0], corrupt) != view(weak[1], corrupt) for corrupt in coalitions)


def test_what_is_opened_is_uniform() -> None:
    """The last member's share, of a secret that is zero: chi squared of bytes, above 400 with probability 10^-8."""
    bits = np.concatenate([shares[-1] for shares in subset_shares(REPLICATED_BITS, 2, 0, 3, np.zeros(1 << 15, np.int64)).values()]) & 1
    counts = np.bincount(np.packbits(bits.astype(np.uint8)), minlength=256)
    expected = len(bits) / 8 / 256
    assert ((counts - expected) ** 2 / expected).sum() < 400


@pytest.mark.parametrize(("members", "count", "message"), [(4, 1, "not so many subsets"), (2, 4, "not so many subsets"), (1, 1, "members must be")])
def test_refused_arguments(members: int, count: int, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run("lisss_share", {"parties": 3, "members": members, "size": 1, "first": 0, "count": count}, EMULATE_RING, shares=[1], check_costs=False)
