"""Keys of SEAL with MACs: they work in stock SEAL, and what a corrupted party does is found. Each attack also runs without the check that finds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.domains import Field, Ring, Sharing
from keyquorum.parties import PartyContext
from keyquorum.plans.keygen import keygen_job
from keyquorum.programs.signatures import sum_inputs
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.budget import NOISE_BITS
from keyquorum.schemes.seal.keygen import SealRequest, generate
from keyquorum.sharing.numbers import lift_tests, proven
from keyquorum.sharing.numbers.lift import MERSENNE
from keyquorum.sharing.numbers.lift_tests import PIECE, LiftedDomain, LiftTests, mask_width, pieces_of
from keyquorum.sharing.numbers.proven import ProvenNumbers
from keyquorum.sharing.shares import Run

from tests.fhe.dealer import tiny
from tests.long import LONG

from .corrupted import Change, Ends, check_the_toss_burns_the_key, ends_of, nothing
from .distributions import chi_square_p, uniform
from .quorum import WEAK, Seal, reconstruct, secret_of

CORRUPT = 1
PROTOCOL, RING_PROTOCOL = "mascot", "spdz2k"
BOUND = 1 << NOISE_BITS
N = 256


def _request(scheme: str = "bfv", primes: int = 1) -> SealRequest:
    return SealRequest(tiny(scheme, primes, N), primes > 1, (), "cbd", WEAK)  # type: ignore[arg-type]


def _run(job: Callable[[PartyContext], Any], change: Change = nothing) -> Ends:
    """See :func:`ends_of`. ``change``: of the corrupted party."""
    return ends_of(api.in_process_committee(2, PROTOCOL), job, {CORRUPT: change})


def _key(context: PartyContext) -> KeyMaterial:
    return generate(context, _request())


@pytest.mark.parametrize(("parties", "scheme"), [(2, "bgv"), *([(2, "bfv"), (3, "ckks")] if LONG else [])])
def test_keys_work_in_seal(parties: int, scheme: str) -> None:
    """SEAL multiplies, relinearises and decrypts with the secret that the shares determine modulo every prime alike."""
    members = api.in_process_committee(parties, PROTOCOL)
    material = api.keygen_in_process(members, _request(scheme, 2))
    assert len({m.info.transcript for m in material}) == 1 and all(m.public == material[0].public for m in material)
    s = Seal(material[0], secret_of(members, material))
    assert s.decryptor is not None
    values = np.arange(N // 2) % 20 - 10
    rows = np.tile(values, 2 if scheme != "ckks" else 1)
    plain = s.encoder.encode(rows.astype(float), 2.0**20) if scheme == "ckks" else s.encoder.encode(rows)
    product = s.evaluator.relinearize(s.evaluator.square(s.encryptor.encrypt(plain)), s.relin)
    got = np.asarray(s.encoder.decode(s.decryptor.decrypt(product))).reshape(-1)
    assert np.abs(got - rows.reshape(-1) ** 2).max() < 0.5


def _another_mask(program: str, domain: str, options: dict[str, Any]) -> None:
    """The mask of one coefficient of the secret is another one modulo the last prime."""
    if program == "lift_close" and domain == f"F_{_request().parameters.coeff_modulus[-1]}":
        options["private"] = options["private"].copy()
        options["private"][7] += 1


def test_another_mask_in_one_domain() -> None:
    """The tests of lifted values find it, before anything is computed with the value."""
    _run(_key, _another_mask).found("values that were lifted to F_")


def test_another_mask_is_not_found_without_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """MACs do not find it, and all parties have a key, the secret of which is another one modulo one prime."""
    monkeypatch.setattr(LiftTests, "_judge", lambda *_: None)
    ends = _run(_key, _another_mask)
    assert all(isinstance(end, KeyMaterial) for end in ends), ends
    primes = _request().parameters.coeff_modulus
    found = [reconstruct(PROTOCOL, 1, [end.shares[j].words[:, :N] for end in ends], q) for j, q in enumerate(primes)]
    assert np.flatnonzero(found[0] - found[-1]).tolist() == [7]


def _no_trit(program: str, domain: str, options: dict[str, Any]) -> None:
    """A coefficient of the secret that is both 1 and 2, and one that is 5."""
    if program == "trit_inputs":
        options["private"] = options["private"].copy()
        options["private"][[3, N + 3]] = 1
        options["private"][9] = 5


def test_inputs_that_are_no_trits() -> None:
    _run(_key, _no_trit).found(f"party {CORRUPT} gave no trits")


def test_inputs_that_are_no_trits_are_not_found_without_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """All parties have shares of a secret with a coefficient that is no trit."""
    monkeypatch.setattr(proven, "_judge_trits", lambda opened: None)
    secret = _secret(_run(_checked_secret, _no_trit))
    assert np.abs(secret[9]) > 1 and np.abs(np.delete(secret, [3, 9])).max() == 1


def _checked_secret(context: PartyContext) -> Any:
    with ProvenNumbers(Run(context)).ternary(N) as made:
        return made.file.words.copy()


def _secret(ends: list[Any]) -> Any:
    return reconstruct(PROTOCOL, len(ends) - 1, ends, MERSENNE)


def test_distribution_of_the_secret() -> None:
    """Uniform in {-1, 0, 1}, also if the corrupted party gives zeros: false alarm 10^-6 a case."""

    def zeros(program: str, domain: str, options: dict[str, Any]) -> None:
        if program == "trit_inputs":
            options["private"] = np.zeros_like(options["private"])

    for change in (nothing, zeros):
        secret = _secret(_run(_checked_secret, change))
        assert chi_square_p(secret, uniform(range(-1, 2))) > 1e-6


def _cells(values: Any, cells: int) -> Any:
    """The index of the cell of [0, 2^61 - 1) in which each value is, of so many of the same size, a power of two."""
    return values // (MERSENNE // cells + 1)


def test_masks_of_the_proof_of_trits(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are uniform in [0, 2^61 - 1), independent of the trits and of each other, and fresh in each call. False alarm: 10^-6 a case."""
    size = 1 << 15
    bounds: list[tuple[int, int]] = []
    draw = proven.uniform_below

    def drawn(count: int, bound: int) -> Any:
        bounds.append((count, bound))
        return draw(count, bound)

    monkeypatch.setattr(proven, "uniform_below", drawn)
    calls = [proven._proven_trits(size).reshape(7, size) for _ in range(2)]
    assert bounds == [(size, MERSENNE)] * 4
    for u, v, x, y, *products in calls:
        trits = u + 2 * v
        assert set(trits.tolist()) == {0, 1, 2} and np.array_equal(products, [x * u, y * v, x * v])
        assert chi_square_p(trits, uniform(range(3))) > 1e-6
        for mask in (x, y):
            assert mask.min() >= 0 and 0.999 * MERSENNE < mask.max() < MERSENNE
            assert chi_square_p(_cells(mask, 64), uniform(range(64))) > 1e-6
            assert chi_square_p(mask % 64, uniform(range(64))) > 1e-6
            assert chi_square_p(16 * trits + _cells(mask, 16), uniform(range(48))) > 1e-6
        assert chi_square_p(8 * _cells(x, 8) + _cells(y, 8), uniform(range(64))) > 1e-6
        assert chi_square_p(_cells((x - y) % MERSENNE, 64), uniform(range(64))) > 1e-6
    masks = np.concatenate([call[2:4].reshape(-1) for call in calls])
    assert np.unique(masks).size == masks.size  # two are the same with 2^-28
    first, second = calls
    assert chi_square_p(_cells((first[2:4] - second[2:4]).reshape(-1) % MERSENNE, 64), uniform(range(64))) > 1e-6


def test_arrays_that_held_trits_are_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the proof draws, and its private input, also if the run fails."""
    kept: list[Any] = []

    def keeping(draw: Callable[..., Any]) -> Callable[..., Any]:
        def one(*arguments: Any) -> Any:
            kept.append(draw(*arguments))
            return kept[-1]

        return one

    for name in ("uniform_trits", "uniform_below", "_proven_trits"):
        monkeypatch.setattr(proven, name, keeping(getattr(proven, name)))

    def run(*_: Any, private: Any, **options: Any) -> None:
        assert private.any()
        raise RuntimeError("gone")

    committee = SimpleNamespace(threshold=1, size=2, field_protocol=PROTOCOL, share_parts=2)
    context: Any = SimpleNamespace(committee=committee, backend=SimpleNamespace(run=run), seed=None)
    with pytest.raises(RuntimeError, match="gone"):
        ProvenNumbers(Run(context)).ternary(N)
    assert len(kept) == 4 and not any(array.any() for array in kept)


def _wrong_body(program: str, domain: str, options: dict[str, Any]) -> None:
    if program == "rlwe_public_key":
        options["shares"].words[0, 0] ^= np.uint64(1)


def test_a_wrong_body() -> None:
    """A corrupted party that computes a public key with another share of the secret: the check of MACs."""
    _run(_key, _wrong_body).found("MAC check")


# The tests of lifted values alone, of a toy.

VALUES = 40
OTHER = (1 << 36) - 5
DOMAINS = [Sharing(PROTOCOL, Field(MERSENNE)), Sharing(PROTOCOL, Field(OTHER)), Sharing(RING_PROTOCOL, Ring(50))]


def _tested(change: Callable[[int, Any], None] = lambda at, x: None, guesses: int = 0) -> Ends:
    """The values 0 .. VALUES - 1, in three domains, the third of which has the first 16. The corrupted party, whose summands they are, may ``change`` them in each domain. For tests that it
    expects to have entry 0 in their subset (bits of ``guesses``) it takes what it changed off its mask."""
    pieces = pieces_of(VALUES, 16)

    def job(context: PartyContext) -> None:
        tests = LiftTests(context, pieces, MERSENNE, BOUND)
        masks = tests._masks.copy()
        for at, sharing in enumerate(DOMAINS):
            count, cuts = (16, 1) if at == 2 else (VALUES, 2)
            x = np.arange(count, dtype=np.int64)
            if context.party == CORRUPT:
                change(at, x)
                guessed = [guesses >> i & 1 for i in range(lift_tests.TESTS)]
                tests._masks[: lift_tests.TESTS] = masks[: lift_tests.TESTS] - np.array(guessed) * (x[0] - 0)
            else:
                x[:] = 0
            shares = Run(context).over(sharing).shares()
            shares.run(sum_inputs(contributors=2, size=count), x)
            tests.input_masks(LiftedDomain(shares, cuts))
        tests.run()

    return _run(job)


def test_equal_values_pass() -> None:
    assert _tested() == [None, None]


@pytest.mark.parametrize("at", [1, 2])
def test_values_that_differ_in_one_domain(at: int) -> None:
    """By 1, and by zero divisors modulo 2^50. The last value is in no subset of the third domain."""

    def change(where: int, x: Any) -> None:
        if where == at:
            x[5] += 1 << (49 if at == 2 else 0)

    _tested(change).found(f"values that were lifted to {DOMAINS[at][1]}")


def test_one_test_passes_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is tight: who guesses the subsets passes. With one test a wrong value passes with 1/2: never or always in 16 runs with less than 10^-4."""
    monkeypatch.setattr(lift_tests, "TESTS", 1)

    def change(where: int, x: Any) -> None:
        if where == 1:
            x[0] += 1

    passed = sum(_tested(change, guess & 1) == [None, None] for guess in range(16))
    assert 1 <= passed <= 15


@pytest.mark.parametrize(("parties", "modulus"), [(2, MERSENNE), (3, MERSENNE), (16, MERSENNE), (5, 1 << 61)])
def test_sums_stay_in_their_range(parties: int, modulus: int) -> None:
    """What an honest run opens is below the range, and the range leaves room for one value."""
    width = mask_width(parties, modulus, BOUND)
    most = parties * (width - lift_tests.TERMS) + 2 * BOUND * PIECE
    assert most < parties * width + 2 * BOUND * PIECE <= modulus - BOUND
    assert pieces_of(PIECE + 20, 5)[0].length == 5 and [p.length for p in pieces_of(2 * PIECE, PIECE)] == [PIECE, PIECE]


@pytest.mark.parametrize("ablated", [False, True])
def test_who_breaks_off_after_the_toss_burns_the_key(tmp_path: Path, ablated: bool) -> None:
    """Otherwise it could try again until it likes the subsets. Without the note the honest party's MAC key is still there."""
    members = api.init(tmp_path / "c", 2, PROTOCOL)
    job = api.keygen_job("k", _request().parameters, relin=False, policy=WEAK)
    check_the_toss_burns_the_key(members, lambda context: keygen_job(context, job), CORRUPT, ablated)
