"""What key generation states that it needs bounds what it takes, and is not far above it; it comes in pieces, and is refused early."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.errors import ResourceError
from keyquorum.model.needs import Needs, available_memory, require_memory
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.sharing.numbers import lift

from tests.fhe.dealer import tiny

from .quorum import WEAK, committee, make_key, secret_of


@pytest.mark.parametrize(
    ("protocol", "parties", "distribution"),
    [("semi", 2, "cbd"), ("semi", 2, "gaussian"), ("semi", 4, "cbd"), ("rep-field", 3, "cbd"), ("shamir", 3, "cbd"), ("mascot", 2, "cbd")],
)
def test_stated_memory_bounds_the_measured_peak(tmp_path: Path, protocol: str, parties: int, distribution: str) -> None:
    """Every party's peak resident set, a process each, correlated randomness included; stated is at most three times as much."""
    members = api.init(tmp_path / "committee", parties, protocol)
    parameters = "ckks-4096-mac" if members.authenticated else "ckks-4096"
    result = api.keygen(members, "key", parameters, error_law=distribution)
    stated = api.keygen_needs(members, parameters, error_law=distribution)
    peaks = [report.peak_memory for report in result.reports]
    assert len(peaks) == parties
    assert max(peaks) <= stated.memory <= 3 * min(peaks)
    files = sum(f.stat().st_size for f in members.key_folder(0, "key").iterdir())
    assert stated.disk <= files <= 1.1 * stated.disk + 20_000, "headers, metadata, checksums besides"


@pytest.mark.parametrize(("parties", "gigabytes"), [(2, 1), (4, 12), (16, 16)])
def test_large_keys_fit_on_one_host(parties: int, gigabytes: int) -> None:
    """N = 16384, 9 primes, Gaussian error, all parties of `semi` on one host."""
    parameters = api.load_parameters("ckks-16384-bench")
    needs = api.keygen_needs(api.in_process_committee(parties, "semi"), parameters, error_law="gaussian")
    assert parties * needs.memory < gigabytes * 1e9


def test_memory_grows_with_the_key_alone() -> None:
    """A further Galois key adds what it takes itself: samples, masks, and its words at every prime."""
    parameters, members = api.load_parameters("ckks-16384-bench"), api.in_process_committee(4, "semi")
    elements = api.galois_elements(parameters, range(1, 33))
    stated = [api.keygen_needs(members, parameters, True, elements[:k]).memory for k in (8, 16, 24, 32)]
    per_key = np.diff(stated) / 8
    digits = len(parameters.coeff_modulus) - 1
    words = digits * parameters.ring_degree * len(parameters.coeff_modulus) * 8
    assert (per_key < 8 * words).all() and np.ptp(per_key) < per_key.min() / 2


@pytest.mark.parametrize("backend", ["rep-field", "semi-2"])
def test_values_are_lifted_in_pieces(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """Pieces that do not divide the vector: the shares modulo all primes are still those of one secret, of a key that works."""
    monkeypatch.setattr(lift, "LIFTED", 2 * 1000)
    members = committee(backend)
    material = make_key(members, SealRequest(tiny("ckks"), policy=WEAK), f"pieces {backend}".encode())
    trits = secret_of(members, material).coefficients
    assert set(np.unique(trits).tolist()) == {-1, 0, 1}
    whole = tiny("ckks").ring_degree * (1 + 1 + 2)
    assert whole % 1000, "the last piece is a shorter one"


def test_too_little_memory_is_refused_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = Needs(memory=3 * 10**9, disk=0)
    require_memory(needs, 4, available=12 * 10**9)
    with pytest.raises(ResourceError, match=r"12\.00 GB of memory for 4 parties on this host, 11\.00 GB are available: ask") as caught:
        require_memory(needs, 4, available=11 * 10**9)
    assert "\n" not in str(caught.value)
    members = api.init(tmp_path / "committee", 3, "rep-field")
    monkeypatch.setattr("keyquorum.model.needs.available_memory", lambda: 10**6)
    with pytest.raises(ResourceError, match="for 3 parties"):
        api.keygen(members, "key", "ckks-4096")
    assert not members.key_folder(0, "key").exists()


def test_available_memory(tmp_path: Path) -> None:
    """The lesser of what the kernel and the container's group allow; a group without limit, or no group, counts for nothing."""
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    assert available_memory(meminfo, group) is None
    meminfo.write_text("MemTotal:  2000 kB\nMemAvailable:     1000 kB\n")
    assert available_memory(meminfo, group) == 1_024_000
    group.mkdir()
    (group / "memory.current").write_text("300000\n")
    for limit, wanted in (("max", 1_024_000), ("800000", 500_000), ("9000000", 1_024_000)):
        (group / "memory.max").write_text(limit + "\n")
        assert available_memory(meminfo, group) == wanted
