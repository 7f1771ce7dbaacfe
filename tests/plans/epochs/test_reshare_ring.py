"""Keys of BFV and BGV on their way to committees with MACs, which make shares of the secret modulo 2^64: pairs, decryption, deviations with and without the tests that find them, what an abort tells, and the budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import ShareFile
from keyquorum.fhe.parameters import list_parameter_sets, load
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import BurnedKeyError, ParameterError, PolicyError
from keyquorum.parties import mac_key
from keyquorum.plans.epochs.macs import MacGroup
from keyquorum.plans.epochs.origins import assumed_keys
from keyquorum.plans.epochs.prove import proofs_run, set_proofs, shown_to_fit
from keyquorum.plans.epochs.tries import MOST_TRIES
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_held_key, load_key
from keyquorum.schemes.seal import ring_secret
from keyquorum.schemes.seal.ring import decrypts_in_ring
from keyquorum.schemes.seal.ring_secret import TRIT_BITS, check_ring_secret, leaked, opened_in
from keyquorum.schemes.seal.scheme import LEAST_MAC_BITS
from keyquorum.sharing.numbers import kind_of, lift
from keyquorum.sharing.numbers.lift_tests import LiftTests

from tests.plans.corrupted import Change, deviating
from tests.plans.epochs.test_reshare_macs import secrets
from tests.plans.epochs.test_transfer import attacked, record_of
from tests.plans.test_own_primes import created, small
from tests.plans.test_refresh import public_files, with_keys

from .reshared import reshared

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
RING = "Z2^64"


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def primes_of(committee: Committee) -> tuple[int, ...]:
    primes: tuple[int, ...] = load_key(committee.key_folder(0, "key")).parameters.coeff_modulus
    return primes


def centred(residues: Sequence[int], q: int) -> list[int]:
    return [r - q if r > q // 2 else r for r in residues]


def check_one_secret(committee: Committee, truth: list[list[int]]) -> None:
    """The shares modulo each prime are of the secret, and those modulo 2^64 of the same integers."""
    *fields, ring = secrets(committee)
    assert fields == truth
    assert ring == [s % 2**64 for s in centred(truth[0], primes_of(committee)[0])] and len(set(ring)) == 3


# -- pairs -----------------------------------------------------------------------------------------------------------------

CHAINS = [
    ("bfv", [("shamir", 3), ("mascot", 2), ("rep-field", 3), ("spdz2k", 2), ("mal-rep-field", 3), ("mascot", 3), ("mal-shamir", 5), ("spdz2k", 2), ("mascot", 2), ("shamir", 3)]),
    ("bgv", [("ring", 3), ("spdz2k", 2), ("semi", 2), ("mascot", 2), ("semi2k", 3), ("spdz2k", 3), ("mal-rep-ring", 3), ("mascot", 2), ("mal-rep-field", 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("scheme", "shapes"), CHAINS, ids=["bfv", "bgv"])
def test_the_secret_stays_and_its_ring_vector_is_made_anew(tmp_path: Path, scheme: Any, shapes: list[tuple[str, int]]) -> None:
    old = with_keys(tmp_path, *shapes[0], [small(scheme)])  # type: ignore[list-item]
    truth, public, made = secrets(old), public_files(old), 0
    for number, (protocol, parties) in enumerate(shapes[1:]):
        new = api.init_after(tmp_path / f"new-{number}", old, protocol=protocol, parties=parties)
        reshared(old, new)
        info = load_held_key(new.key_folder(0, "key"))
        assert info.ring_secret == new.authenticated  # type: ignore[attr-defined]
        made += new.authenticated and not old.authenticated
        assert {proofs_run(new.key_folder(party, "key"), info) for party in range(new.size)} == {made}, "each try is counted"
        if new.authenticated:
            check_one_secret(new, truth)
        else:
            assert secrets(new) == truth
        found = public_files(new)
        found.pop("proofs.json", None)
        assert found == public, (old.protocol, protocol)
        old = new
    assert made >= 3


@pytest.mark.parametrize(
    ("scheme", "shapes"),
    [("bfv", [("mal-shamir", 3), ("mascot", 2), ("rep-field", 3)]), ("bgv", [("rep-field", 3), ("spdz2k", 2), ("mal-rep-ring", 3)])],
)
def test_ciphertexts_are_decrypted_by_each_committee(tmp_path: Path, scheme: Any, shapes: list[tuple[str, int]]) -> None:
    old = tmp_path / "0"
    api.init(old, shapes[0][1], shapes[0][0])
    api.keygen(old, "key", created(scheme, 1024, [36, 37], 12289, "none"), relin=False)
    api.encrypt(old, "key", np.arange(1024), tmp_path / "0.ct")
    for number, (protocol, parties) in enumerate(shapes[1:], 1):
        new = tmp_path / str(number)
        api.init_after(new, Committee.load(old), protocol=protocol, parties=parties)
        api.reshare(old, new, accept_origin="semi-honest" if shapes[0][0] == "rep-field" else None)
        [output] = api.decrypt(new, "key", [tmp_path / "0.ct"], 1, [tmp_path / f"out-{number}"]).outputs
        assert api.decode(new, "key", output).tolist() == list(range(1024))
        old = new


# -- attacks ---------------------------------------------------------------------------------------------------------------


def changing(liar: int, change: Change) -> Callable[[MacGroup], None]:
    """A new member that changes what it gives to programs of its committee."""
    honest = MacGroup.open

    def opened(self: MacGroup) -> None:
        honest(self)
        assert self._context is not None
        if self._number == liar:
            self._context = deviating(self._context, change)

    return opened


def added(program: str, domain: str, place: int = 0) -> Change:
    """Adds 1 to what a party inputs to the first run of a program over a domain."""
    done: list[bool] = []

    def change(name: str, where: str, options: dict[str, Any]) -> None:
        if name == program and where == domain and not done:
            done.append(True)
            options["private"] = options["private"].copy()
            options["private"][place] += 1

    return change


@pytest.mark.parametrize("ablated", [False, True], ids=["tested", "ablated"])
def test_a_member_that_shifts_the_ring_vector_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """It inputs another mask modulo 2^64. MACs do not find it: without the tests of lifted values the committee has another secret there, with which it decrypts."""
    old = with_keys(tmp_path, "mal-rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    new, truth = api.init_after(tmp_path / "new", old, protocol="mascot", parties=2), {"key": (secrets(old), public_files(old))}
    monkeypatch.setattr(MacGroup, "open", changing(1, added("lift_close", RING)))
    if ablated:
        monkeypatch.setattr(LiftTests, "_judge", lambda *_: None)
        assert not any(isinstance(end, Exception) for end in attacked(old, new))
        *fields, ring = secrets(new)
        assert fields == truth["key"][0] and ring[1:] == [s % 2**64 for s in centred(fields[0], primes_of(new)[0])[1:]]
        assert (ring[0] - centred(fields[0], primes_of(new)[0])[0]) % 2**64 == 2**64 - 1
        return
    counted = [proofs_run(old.key_folder(party, "key"), load_key(old.key_folder(party, "key"))) for party in range(3)]
    attacked(old, new).found("values that were lifted to Z2^64 are others there")
    assert secrets(old) == truth["key"][0] and counted == [0, 0, 0]
    assert [proofs_run(old.key_folder(party, "key"), load_key(old.key_folder(party, "key"))) for party in range(3)] == [1, 1, 1], "the try counts"
    assert not list(new.folder.glob("party-*/keys/key/shares-*/share-*.kqs"))
    with pytest.raises(BurnedKeyError):
        mac_key.check(new.mac_key_path(0))


def test_another_mask_modulo_one_of_the_first_primes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """c is not short then, whatever the secret is."""
    old = with_keys(tmp_path, "mal-rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    new = api.init_after(tmp_path / "new", old, protocol="spdz2k", parties=2)
    monkeypatch.setattr(MacGroup, "open", changing(0, added("lift_open", f"F_{primes_of(old)[1]}")))
    attacked(old, new).found("not the same short integers modulo all primes")


def shift_stored(committee: Committee, party: int, index: int, entries: Sequence[int]) -> None:
    """Adds 1 to entries of the summand of a party in a vector of an additive committee, on its disk: it deals that and states it."""
    folder = committee.key_folder(party, "key")
    held = holding_of(folder, load_key(folder))
    path, header, modulus = (
        held.folder(folder) / f"share-{index}.kqs",
        held.share_header(party, index),
        Domain.parse(held.vectors[index].domain).modulus,
    )
    words = np.frombuffer(ShareFile.read(str(path), header), dtype="<u8").copy()
    for entry in entries:
        words[entry] = (int(words[entry]) + 1) % modulus
    ShareFile.write(str(path), header, words.tobytes())


def one_of_each(secret: Sequence[int], q: int) -> list[int]:
    """Places of a -1, a 0 and a 1."""
    return [centred(secret, q).index(value) for value in (-1, 0, 1)]


@pytest.mark.parametrize("place", range(3), ids=["-1", "0", "1"])
@pytest.mark.parametrize("everywhere", [False, True], ids=["one prime", "all primes"])
def test_no_abort_depends_on_the_secret(tmp_path: Path, place: int, everywhere: bool) -> None:
    """An old member that may not deviate does: it adds 1 to an entry of the secret, deals this and states it. Whatever the entry was, the new members find a shift modulo one prime, and do not see one modulo all: it makes
    another short secret, which is assumed and not known to be right. A test by products would pass or fail with the entry: 0 + 1 is a trit, and 1 + 1 is not."""
    old = with_keys(tmp_path, "semi", 2, [small("bfv")])  # type: ignore[list-item]
    truth = secrets(old)
    entry = one_of_each(truth[0], primes_of(old)[0])[place]
    for index in range(2 if everywhere else 1):
        shift_stored(old, 0, index, [entry])
    new = api.init_after(tmp_path / "new", old, protocol="mascot", parties=2)
    if everywhere:
        reshared(old, new)
        *_, ring = secrets(new)
        assert (ring[entry] - centred(truth[0], primes_of(new)[0])[entry]) % 2**64 == 1
        assert record_of(new).keys["key"]["flags"] == ["ring_secret"] and assumed_keys(new, 0) == ["key"]
    else:
        attacked(old, new).found("not the same short integers modulo all primes")


# -- what is opened --------------------------------------------------------------------------------------------------------


def test_what_is_opened_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without masks c is the secret."""
    old = with_keys(tmp_path, "mal-rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    seen: list[list[int]] = []
    honest = lift.integers_of

    def noted(residues: Any, moduli: Sequence[int]) -> list[int]:
        seen.append(honest(residues, moduli))
        return seen[-1]

    monkeypatch.setattr(lift, "integers_of", noted)
    for ablated in (False, True):
        if ablated:
            monkeypatch.setattr(lift, "lift_masks", lambda size, bits: np.zeros(size, dtype=np.int64))
        seen.clear()
        (tmp_path / str(ablated)).mkdir()
        attacked_last(old, tmp_path / str(ablated))
        assert (max(seen[0]) <= 3) == ablated


def attacked_last(old: Committee, tmp_path: Path) -> None:
    """A resharing that ends after c was opened: the old committee goes on."""
    new = api.init_after(tmp_path / "attacked", old, protocol="mascot", parties=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MacGroup, "open", changing(1, added("lift_close", RING)))
        attacked(old, new).found("values that were lifted to Z2^64 are others there")


@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.parametrize("name", list_parameter_sets())
def test_masked_values_do_not_wrap(name: str, parties: int) -> None:
    """For all sets that committees with MACs decrypt in a ring: c is below the product of the primes in which it is opened, and its words have 63 bits."""
    parameters: Any = load(name, warn=False)
    committee = api.in_process_committee(parties, "mascot")
    if parameters.scheme not in ("bfv", "bgv") or not hasattr(parameters, "coeff_modulus") or not decrypts_in_ring(parameters):
        return
    primes, bits = parameters.coeff_modulus, kind_of(committee).mask_bits(committee)
    most = parties * 2**bits + 2 ** (TRIT_BITS + 1)
    assert most <= min(math.prod(primes[: opened_in(primes)]) // 2, 2**63)
    assert min(q.bit_length() for q in primes) >= LEAST_MAC_BITS


def test_all_tries_are_in_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries and tests of shares of a key are together no more than those that tests of shares alone are budgeted for, and some of these are kept back; more are refused before anything is sent, and so is a key whose primes are too short for masks."""
    old = with_keys(tmp_path, "mal-rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    folder, info = old.key_folder(0, "key"), load_key(old.key_folder(0, "key"))
    new = api.init_after(tmp_path / "new", old, protocol="mascot", parties=2)
    assert 0 < leaked(info, new) < 2**-46  # type: ignore[arg-type]
    for runs in (16, MOST_TRIES):
        for party in range(3):
            set_proofs(old.key_folder(party, "key"), info, runs, fits=True)
        with pytest.raises(PolicyError, match=f"its shares were tested {runs} times, .* 4 of 16 tests are kept back for recoveries"):
            reshared(old, new)
    for party in range(3):
        set_proofs(old.key_folder(party, "key"), info, MOST_TRIES - 1, fits=True)
    attacked_last(old, tmp_path)
    assert proofs_run(folder, info) == MOST_TRIES and shown_to_fit(folder, info), "what a test has shown stays"
    for changed in ({"protocol": "none"}, {"parties": 1 << 40}, {"threshold": 1 << 40}):  # what other members send
        with pytest.raises(ParameterError, match="which no committee is: make a new key"):
            check_ring_secret(replace(info, **changed), new)  # type: ignore[arg-type]
    monkeypatch.setattr(ring_secret, "LIFT_BITS", 40)
    with pytest.raises(ParameterError, match=r"is 2\^-.* away from independent of it, above what 2\^-40 leaves"):
        check_ring_secret(info, new)  # type: ignore[arg-type]
