"""Resharing from and to committees with MACs: pairs, decryption by each committee, what a deviating member can do with the checks and without them, and what is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum import _engine, api
from keyquorum._engine import CheckError
from keyquorum._engine import Dealer as CoreDealer
from keyquorum.dsl import ShareVector
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import BurnedKeyError, EpochError, ParameterError
from keyquorum.parties import PartyContext, mac_key, run_in_process
from keyquorum.parties.jobs import check_alone, run_job
from keyquorum.plans.epochs import macs, reshare
from keyquorum.plans.epochs.macs import MacGroup
from keyquorum.plans.epochs.orders import examine_epochs
from keyquorum.plans.epochs.origins import BURNED, assumed_keys
from keyquorum.plans.epochs.prove import proofs_run
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.plans.epochs.transfer import Transfer
from keyquorum.plans.examine import examine_keys
from keyquorum.programs import Segment
from keyquorum.programs.signatures import aes_blocks, sum_inputs
from keyquorum.schemes import scheme_of
from keyquorum.schemes.holding import Holding, holding_of, shares_in
from keyquorum.schemes.key_folder import load_held_key, load_key, load_shares
from keyquorum.schemes.prf.key import sharing_of
from keyquorum.sharing.shares import Run, Shares

from tests.plans.corrupted import Ends, ends_of
from tests.plans.epochs.test_transfer import attacked, record_of, states_another
from tests.plans.test_own_primes import created, small
from tests.plans.test_refresh import public_files, share_bytes, with_keys
from tests.schemes import test_tfhe

from .reshared import has_any, reshared, secrets_of

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
CKKS: Any = replace(api.load_parameters("ckks-4096-mac"), name="toy-ckks", ring_degree=1024, security="none")
"""Its primes, of 36 bits and more, as MACs need them."""
AES = "prf-aes128"


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def secrets(committee: Committee, key: str = "key") -> list[list[int]]:
    """The secret vectors that all parties' shares give together; with MACs from the values, after a look at the MACs."""
    if not committee.authenticated:
        return secrets_of(committee, key)
    info = load_key(committee.key_folder(0, key))
    held, found = holding_of(committee.key_folder(0, key), info), []
    shares = [load_shares(committee.key_folder(party, key), info, party) for party in range(committee.size)]
    for index, vector in enumerate(held.vectors):
        columns = [_elements(share[index]) for share in shares]
        alpha = sum(_number(share[index].mac_key) for share in shares)
        domain = Domain.parse(vector.domain)
        wide = domain.modulus if domain.prime else 1 << 128
        values, tags = (sum(column[part] for column in columns) for part in (0, 1))
        assert (domain.prime is None) or not ((values * alpha - tags) % wide).any(), "MACs"
        found.append([int(v) % domain.modulus for v in values])
    return found


def _elements(share: ShareVector) -> list[Any]:
    words, width = share.words.astype(object), share.element_words
    return [sum(part[place::width] << (64 * place) for place in range(width)) for part in words]


def _number(words: Any) -> int:
    return sum(int(word) << (64 * place) for place, word in enumerate(words))


def truths(committee: Committee, keys: Sequence[str] = ("key",)) -> dict[str, Any]:
    return {key: (secrets(committee, key), public_files(committee, key)) for key in keys}


# -- pairs -----------------------------------------------------------------------------------------------------------------

HOPS = [
    ("rep-field", 3, [("mascot", 2), ("rep-field", 3), ("mascot", 3), ("mascot", 2), ("mal-shamir", 3), ("spdz2k", 2), ("mal-rep-field", 3), ("mascot", 2), ("semi", 2)], CKKS),
    ("ring", 3, [("spdz2k", 2), ("ring", 3), ("spdz2k", 3), ("mal-rep-ring", 3), ("spdz2k", 2), ("mascot", 2), ("semi2k", 2)], "lwe64-p2"),
    ("rep-field", 3, [("spdz2k", 2), ("mal-rep-ring", 3), ("mascot", 3), ("spdz2k", 3), ("semi2k", 2), ("mascot", 2), ("ring", 3), ("spdz2k", 2), ("mal-rep-field", 3), ("mascot", 2), ("semi", 2)], "prf-aes128"),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "parties", "hops", "name"), HOPS, ids=["ckks", "lwe", "aes"])
def test_the_secret_and_the_public_files_stay(tmp_path: Path, protocol: str, parties: int, hops: list[tuple[str, int]], name: str) -> None:
    """One key goes along: no old share is left, and everything that a committee has fits together."""
    old = with_keys(tmp_path, protocol, parties, [name])
    truth = truths(old)
    for number, (other, size) in enumerate(hops):
        shares = share_bytes(old)
        new = api.init_after(tmp_path / f"after-{number}", old, protocol=other, parties=size)
        reshared(old, new)
        assert truths(new) == truth, (old.protocol, other)
        assert not has_any(old.folder, shares) and not has_any(new.folder, shares)
        assert all(finding.ok for finding in (*examine_keys(new, range(new.size)), *examine_epochs(new, range(new.size)))), other
        assert record_of(new).checks == (("transfer check",) if old.malicious or new.malicious else ())
        old = new


@pytest.mark.parametrize(
    ("protocol", "parties", "hops"),
    [("rep-field", 3, [("mascot", 2), ("rep-field", 3)]), ("mal-rep-field", 3, [("mascot", 2), ("mal-shamir", 3), ("spdz2k", 2)]), ("mascot", 2, [("mal-rep-field", 3)])],
)  # fmt: skip
def test_ckks_is_decrypted_by_each_committee(tmp_path: Path, protocol: str, parties: int, hops: list[tuple[str, int]]) -> None:
    old = tmp_path / "old"
    api.init(old, parties, protocol)
    api.keygen(old, "key", CKKS, relin=False)
    values = np.linspace(-1, 1, 100)
    api.encrypt(old, "key", values, tmp_path / "0.ct")
    public = public_files(Committee.load(old))
    del public["decryptions.json"]
    for number, (other, size) in enumerate(hops):
        new = tmp_path / f"new-{number}"
        api.init_after(new, Committee.load(old), protocol=other, parties=size)
        api.reshare(old, new, accept_origin="semi-honest")
        found = public_files(Committee.load(new))
        assert json.loads(found.pop("decryptions.json"))["used"] == number, "the count goes along"
        assert found == public
        [output] = api.decrypt(new, "key", [tmp_path / "0.ct"], 1, [tmp_path / f"out-{number}"]).outputs
        assert np.allclose(api.decode(new, "key", output)[:100], values, atol=0.01)
        old = new


def test_lwe_is_decrypted_by_each_committee(tmp_path: Path) -> None:
    old = tmp_path / "old"
    api.init(old, 3, "ring")
    api.keygen(old, "key", "lwe64-p2")
    api.encrypt(old, "key", [0, 1, 1, 0, 1], tmp_path / "0.ct")
    for number, (other, size) in enumerate([("spdz2k", 2), ("ring", 3), ("mal-rep-ring", 3), ("spdz2k", 2)]):
        new = tmp_path / f"new-{number}"
        api.init_after(new, Committee.load(old), protocol=other, parties=size)
        api.reshare(old, new, accept_origin="semi-honest")
        api.pool_fill(new, "lwe64-p2", "round_ltz_circuit", 5)
        [output] = api.decrypt(new, "key", [tmp_path / "0.ct"], 0, [tmp_path / f"out-{number}"]).outputs
        assert json.loads(output.read_text()) == [0, 1, 1, 0, 1]
        old = new


def block_of(committee: Committee) -> bytes:
    """AES of a block of zeros under the key, opened to all parties."""
    call = aes_blocks(size=1, direction="encrypt", destination="all", blocks=Segment(1408, 128), keys=Segment(0, 1408))

    def job(context: PartyContext) -> Any:
        folder = committee.key_folder(context.party, "key")
        (share,) = load_shares(folder, load_key(folder), context.party)
        if committee.authenticated:
            mac_key.use(context.session, committee.mac_key_path(context.party))
        with Run(context).over(sharing_of(committee)).shares(share) as shares:
            shares.run(sum_inputs(contributors=1, size=128), np.zeros(128, dtype=np.int64))
            return shares.run(call)

    first, *others = run_in_process(committee, job, timeout=60)
    assert all(np.array_equal(first, other) for other in others)
    return np.packbits((first & 1).astype(np.uint8), bitorder="little").tobytes()


@pytest.mark.parametrize(
    ("protocol", "parties", "hops"), [("rep-field", 3, [("spdz2k", 2), ("mal-rep-ring", 3)]), ("mascot", 2, [("semi", 2), ("mascot", 2)])]
)
def test_aes_is_computed_by_each_committee(tmp_path: Path, protocol: str, parties: int, hops: list[tuple[str, int]]) -> None:
    old = with_keys(tmp_path, protocol, parties, [AES])
    key = np.packbits(np.array(secrets(old)[0][:128], dtype=np.uint8), bitorder="little").tobytes()
    wanted = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(bytes(16))
    for number, (other, size) in enumerate(hops):
        new = api.init_after(tmp_path / f"new-{number}", old, protocol=other, parties=size)
        reshared(old, new)
        assert block_of(new) == wanted
        old = new


# -- attacks ---------------------------------------------------------------------------------------------------------------


def lying_dealer(liar: int, in_domain: str = "") -> Any:
    """Adds 1 to the first element of the vectors that a dealer passes on (``in_domain``: of this domain alone), but not to masks."""

    class Lies:
        def __init__(self, old: Any, new: Any, dealers: Sequence[int], party: int, name: bytes) -> None:
            self.core, self.lies = CoreDealer(old, new, dealers, party, name), party == liar

        def seeds(self, receiver: int) -> bytearray:
            return self.core.seeds(receiver)

        def dealt(self, domain: str, label: bytes, shares: bytes) -> list[bytearray]:
            if self.lies and not label.startswith(reshare.MASKS) and in_domain in ("", domain):
                first = (int.from_bytes(shares[:8], "little") + 1) % Domain.parse(domain).modulus
                shares = first.to_bytes(8, "little") + shares[8:]
            return self.core.dealt(domain, label, shares)

    return Lies


def another_summand(liar: int) -> Callable[..., None]:
    """A new member adds 1 to the first element that it gives to be authenticated."""
    honest = MacGroup.authenticate

    def authenticate(self: MacGroup, domain: Domain, dealt: Domain, label: bytes, summands: bytes) -> None:
        if self._number == liar:
            first = (int.from_bytes(summands[:8], "little") + 1) % dealt.modulus
            summands = first.to_bytes(8, "little") + summands[8:]
        honest(self, domain, dealt, label, summands)

    return authenticate


def other_share(liar: int, added: int) -> Callable[..., bytes]:
    """A member opens combinations as if the value of its share of the first element were another one; its MAC stays."""
    honest = MacGroup.opened

    def opened(self: MacGroup, toss: bytes, domain: str, label: bytes) -> bytes:
        words = self._files[label].file.words
        if self._number == liar:
            words[0, 0] = (int(words[0, 0]) + added) % Domain.parse(domain).modulus
        said = honest(self, toss, domain, label)
        if self._number == liar:
            words[0, 0] = (int(words[0, 0]) - added) % Domain.parse(domain).modulus
        return said

    return opened


def refused(old: Committee, new: Committee, truth: dict[str, Any], said: str, kind: type[Exception], **options: Any) -> None:
    """Nothing is passed on, and the old committee goes on."""
    shares = share_bytes(old)
    attacked(old, new, **options).found(said, kind)
    assert share_bytes(old) == shares and truths(old) == truth
    assert not list(new.folder.glob("party-*/keys/key/shares-*/share-*.kqs")), "new shares are erased, or were not written"
    assert all(finding.ok for finding in examine_epochs(old, range(old.size)))


UNFIT = "the shares that new got are not of the secret that committee has"


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
@pytest.mark.parametrize(
    ("shape", "to", "name"),
    [
        (("mal-rep-field", 3), ("mascot", 2), CKKS), (("mascot", 2), ("mal-shamir", 3), CKKS), (("spdz2k", 2), ("ring", 3), "lwe64-p2"), (("mal-rep-ring", 3), ("spdz2k", 2), "lwe64-p2"),
        (("mal-rep-ring", 3), ("spdz2k", 2), AES), (("spdz2k", 2), ("mal-rep-ring", 3), AES),
    ],
    ids=lambda case: getattr(case, "name", str(case)),
)  # fmt: skip
def test_a_dealer_that_passes_on_another_summand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[str, int], to: tuple[str, int], name: str, ablated: bool
) -> None:
    """Without the comparison the new committee has another key. With it no MAC key is burned, and the next try works."""
    old = with_keys(tmp_path, *shape, [name])
    new = api.init_after(tmp_path / "new", old, protocol=to[0], parties=to[1])
    truth = truths(old)
    monkeypatch.setattr(reshare, "Dealer", lying_dealer(1))
    if ablated:
        monkeypatch.setattr(Transfer, "_judge", lambda *given: None)
        assert not any(isinstance(end, Exception) for end in attacked(old, new))
        assert secrets(new) != truth["key"][0]
        return
    refused(old, new, truth, UNFIT, EpochError)
    monkeypatch.undo()
    reshared(old, new)
    assert truths(new) == truth


def test_a_shift_modulo_one_prime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the last of three primes."""
    old = with_keys(tmp_path, "mal-rep-field", 3, [CKKS])
    new, truth = api.init_after(tmp_path / "new", old, protocol="mascot", parties=2), truths(old)
    last = load_key(old.key_folder(0, "key")).secrets[-1].domain
    monkeypatch.setattr(reshare, "Dealer", lying_dealer(0, last))
    refused(old, new, truth, f"key key over {last}: {UNFIT}", EpochError)


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
@pytest.mark.parametrize("name", ["lwe64-p2", AES])
def test_a_new_member_that_gives_another_summand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, ablated: bool) -> None:
    """It gets proper MACs, of another key. Of AES it gives another bit, which is a bit."""
    old = with_keys(tmp_path, "mal-rep-ring", 3, [name])
    new, truth = api.init_after(tmp_path / "new", old, protocol="spdz2k", parties=2), truths(old)
    monkeypatch.setattr(MacGroup, "authenticate", another_summand(1))
    if ablated:
        monkeypatch.setattr(Transfer, "_judge", lambda *given: None)
        assert not any(isinstance(end, Exception) for end in attacked(old, new))
        assert secrets(new) != truth["key"][0]
        return
    refused(old, new, truth, UNFIT, EpochError)


def bits_of(secret: list[list[int]], value: int) -> int:
    """A place where the secret has this bit."""
    return secret[0].index(value)


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("added", [2, 3])
def test_a_new_member_that_gives_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: int, bit: int, ablated: bool) -> None:
    """An even error passes the transfer check, which sees the lowest bits. Without the test of bits the committee stores numbers that are not bits, which programs do not expect. With it the member is
    named, whatever the bit of the secret is: the test says nothing of others' summands."""
    old = with_keys(tmp_path, "mal-rep-ring", 3, [AES])
    new, truth = api.init_after(tmp_path / "new", old, protocol="spdz2k", parties=2), truths(old)
    place, honest = bits_of(truth["key"][0], bit), MacGroup._authenticate_bits

    def authenticate(self: MacGroup, shares: Any, given: Any, rows: int) -> None:
        if self._number == 1:
            given = given.copy()
            given[place] = (int(given[place]) + added + (1 << 63)) % (1 << 64) - (1 << 63)
        honest(self, shares, given, rows)

    monkeypatch.setattr(MacGroup, "_authenticate_bits", authenticate)
    if not ablated:
        refused(old, new, truth, "party 1 of new gave something else than the bits that it got", CheckError)
        return
    monkeypatch.setattr(macs, "_judge_bits", lambda *_: None)
    if added % 2:
        refused(old, new, truth, UNFIT, EpochError)
        return
    assert not any(isinstance(end, Exception) for end in attacked(old, new))
    (found,), (wanted,) = secrets(new), truth["key"][0]
    assert found[place] not in (0, 1) and [v % 2 for v in found] == wanted


@pytest.mark.parametrize("masked", [True, False])
def test_only_the_lowest_bits_of_combinations_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, masked: bool) -> None:
    """The bits above are masked: without that the number of ones in a random half of the key is opened."""
    old, seen, honest = with_keys(tmp_path, "mal-rep-ring", 3, [AES]), list[int](), Shares.run

    def run(self: Shares, call: Any, *given: Any, **options: Any) -> Any:
        words = honest(self, call, *given, **options)
        seen.extend(int(word) % (1 << 64) for word in words if call.program == "lift_test")
        return words

    monkeypatch.setattr(Shares, "run", run)
    if not masked:
        monkeypatch.setattr(macs, "_uniform", lambda domain, count: np.zeros(count, dtype=np.int64))
    reshared(old, api.init_after(tmp_path / "new", old, protocol="spdz2k", parties=2))
    assert len(seen) == 2 * 48 and (max(seen) < 1408 + 2) == (not masked)


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
@pytest.mark.parametrize(("shape", "to"), [(("mal-rep-field", 3), ("mascot", 2)), (("mal-rep-field", 3), ("spdz2k", 2))], ids=str)
def test_a_new_member_that_hides_it_by_a_forged_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[str, int], to: tuple[str, int], ablated: bool
) -> None:
    """It gives another summand, and opens the combinations as if it had not: the check of MACs fails, and burns the key of the new committee, which has nothing to lose. Without that check it has another key."""
    old = with_keys(tmp_path, *shape, [CKKS])
    new, truth = api.init_after(tmp_path / "new", old, protocol=to[0], parties=to[1]), truths(old)
    monkeypatch.setattr(MacGroup, "authenticate", another_summand(1))
    monkeypatch.setattr(MacGroup, "opened", other_share(1, -1))
    if ablated:
        assert not any(isinstance(end, Exception) for end in attacked(old, new, omitted=["ElementMacs"]))
        assert secrets(new) != truth["key"][0]
        return
    refused(old, new, truth, "MAC", CheckError)
    with pytest.raises(BurnedKeyError):
        mac_key.check(new.mac_key_path(0))
    with pytest.raises(BurnedKeyError, match="burned"):
        reshared(old, new)


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
def test_an_old_member_that_hides_it_by_a_forged_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """It deals another summand and opens accordingly. The check of the old committee's MACs fails, and its key is burned, as by every failed check."""
    old = with_keys(tmp_path, "mascot", 2, [CKKS])
    new, truth = api.init_after(tmp_path / "new", old, protocol="mal-rep-field", parties=3), truths(old)
    monkeypatch.setattr(reshare, "Dealer", lying_dealer(1))
    monkeypatch.setattr(MacGroup, "opened", other_share(1, 1))
    if ablated:
        assert not any(isinstance(end, Exception) for end in attacked(old, new, omitted=["ElementMacs"]))
        assert secrets(new) != truth["key"][0]
        return
    attacked(old, new).found("MAC", CheckError)
    with pytest.raises(BurnedKeyError):
        mac_key.check(old.mac_key_path(0))
    assert not list(new.folder.glob("party-*/keys/key/shares-*/share-*.kqs"))


def test_an_old_member_that_states_another_opening(tmp_path: Path) -> None:
    old = with_keys(tmp_path, "spdz2k", 2, ["lwe64-p2"])
    new, truth = api.init_after(tmp_path / "new", old, protocol="mal-rep-ring", parties=3), truths(old)
    said = "party 0 of committee and party 1 of committee state that they opened different values"
    refused(old, new, truth, said, EpochError, session=states_another(1))


# -- what is refused, and what is known ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "parties", "names", "to", "said"),
    [
        ("rep-field", 3, ["lwe53-p16"], ("mascot", 2), "keys of lwe53-p16 are not held with MACs"),
        ("rep-field", 3, ["tfhe-tiny"], ("spdz2k", 2), "has no plan for keys of tfhe that promises this"),
    ],
)  # fmt: skip
def test_keys_that_committees_with_macs_do_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, parties: int, names: list[str], to: tuple[str, int], said: str
) -> None:
    monkeypatch.setitem(TFHE_SETS, test_tfhe.TINY.name, test_tfhe.TINY)
    sets = [test_tfhe.TINY.name if name == "tfhe-tiny" else name for name in names]
    old = with_keys(tmp_path, protocol, parties, sets)
    new = api.init_after(tmp_path / "new", old, protocol=to[0], parties=to[1])
    with pytest.raises(ParameterError, match=said):
        reshared(old, new)


def test_bfv_leaves_its_ring_vector_behind(tmp_path: Path) -> None:
    """A key of mascot has its secret modulo 2^64 too, with which other committees with MACs decrypt. Those without do not need it."""
    old = tmp_path / "old"
    api.init(old, 2, "mascot")
    api.keygen(old, "key", created("bfv", 1024, [36, 37], 12289, "none"), relin=False)
    assert load_key(Committee.load(old).key_folder(0, "key")).ring_secret  # type: ignore[attr-defined]
    api.encrypt(old, "key", np.arange(100), tmp_path / "0.ct")
    for protocol, parties, vectors in (("spdz2k", 2, 3), ("rep-field", 3, 2)):
        new = tmp_path / protocol
        api.init_after(new, Committee.load(old), protocol=protocol, parties=parties)
        api.reshare(old, new)
        folder = Committee.load(new).key_folder(0, "key")
        assert load_held_key(folder).ring_secret == (vectors == 3) and len(list(shares_in(folder).glob("share-*.kqs"))) == vectors  # type: ignore[attr-defined]
        [output] = api.decrypt(new, "key", [tmp_path / "0.ct"], 1, [tmp_path / f"out-{protocol}"]).outputs
        assert api.decode(new, "key", output)[:100].tolist() == list(range(100))
        old = new


def test_macs_must_accept_an_origin_and_know_what_was_tested(tmp_path: Path) -> None:
    """Of a committee whose parties follow the protocol nothing is known. What one for malicious parties knows goes along, so that decryptions are against malicious parties without a warning."""
    known, assumed = with_keys(tmp_path / "a", "mal-rep-field", 3, [CKKS]), with_keys(tmp_path / "b", "rep-field", 3, [CKKS])
    first = api.init_after(tmp_path / "first", assumed, protocol="mascot", parties=2)
    with pytest.raises(ParameterError, match="give --accept-origin semi-honest"):
        api.reshare_job(assumed, first)
    reshared(assumed, first)
    assert assumed_keys(first, 0) == ["key"] and record_of(first).keys["key"]["flags"] == []
    second = api.init_after(tmp_path / "second", known, protocol="mascot", parties=2)
    with pytest.warns(SecurityWarning, match="a lost one is a lost key"):
        api.reshare_job(known, second)
    reshared(known, second)
    assert assumed_keys(second, 1) == [] and record_of(second).keys["key"]["flags"] == ["lift_tested", "correct"]
    for committee, tested in ((first, False), (second, True)):
        info = load_held_key(committee.key_folder(0, "key"))
        assert any("nothing shows that its secret is the same modulo all primes" in line for line in scheme_of(info).warnings(info)) != tested
    third = api.init_after(tmp_path / "third", second, protocol="mal-shamir", parties=3)
    reshared(second, third)
    assert record_of(third).keys["key"]["flags"] == ["lift_tested", "correct"]


def test_the_masks_of_what_is_opened_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks of the old members are uniform: without them combinations of the secret are opened bare."""
    old = with_keys(tmp_path, "spdz2k", 2, ["lwe64-p2"])
    seen: list[bytes] = []
    honest = MacGroup.opened

    def noted(self: MacGroup, toss: bytes, domain: str, label: bytes) -> bytes:
        seen.append(honest(self, toss, domain, label))
        return seen[-1]

    monkeypatch.setattr(MacGroup, "opened", noted)
    new = api.init_after(tmp_path / "new", old, protocol="spdz2k", parties=2)
    monkeypatch.setattr(macs, "_uniform", lambda domain, count: np.zeros(count, dtype=np.int64))
    reshared(old, new)
    small = [int.from_bytes(seen[0][8 * i : 8 * i + 8], "little", signed=True) for i in range(48)]
    assert max(map(abs, small)) < 1 << 12, "sums of trits"
    monkeypatch.undo()


# -- burned MAC keys -------------------------------------------------------------------------------------------------------


def burned(tmp_path: Path, name: Any) -> tuple[Committee, dict[str, Any]]:
    """A committee whose MAC key was burned at one party, and what its key was."""
    old = with_keys(tmp_path, "spdz2k", 2, [name])
    truth = truths(old)
    _engine.burn_mac_key(str(old.mac_key_path(1)), "a test")
    return old, truth


@pytest.mark.parametrize(("name", "to"), [(CKKS, ("mal-rep-field", 3)), ("lwe64-p2", ("spdz2k", 2)), (CKKS, ("semi", 2)), (AES, ("mal-rep-ring", 3))])
def test_keys_leave_a_burned_mac_key_if_this_is_accepted(tmp_path: Path, name: str, to: tuple[str, int]) -> None:
    """Without MACs, so nothing shows that they are right; this stays in their origin."""
    old, truth = burned(tmp_path, name)
    new = api.init_after(tmp_path / "new", old, protocol=to[0], parties=to[1])
    with pytest.raises(BurnedKeyError, match="keyquorum reshare --accept-origin burned passes keys on without MACs"):
        reshared(old, new)
    tested = (
        r"pass the keys on to a committee without MACs and test the shares there .*spdz2k has no such test"
        if new.authenticated
        else "test the shares with keyquorum epoch prove"
    )
    with pytest.warns(SecurityWarning, match=f"before anybody decrypts {tested}.*, or make new keys"):
        job = api.reshare_job(old, new, None, BURNED)
    between = bridge(old, new)
    for party in range(between.size):
        check_alone(between, party, job)
    run_in_process(between, lambda context: run_job(context, job), timeout=60)
    assert truths(new) == truth
    assert record_of(new).keys["key"]["flags"] == [] and assumed_keys(new, 0) == ["key"]
    assert record_of(new).origin[0].endswith("passed on without MACs, as a MAC key was burned, which makes it semi-honest")


def passed_on_burned(old: Committee, new: Committee) -> Ends:
    between, job = bridge(old, new), api.reshare_job(old, new, None, BURNED)
    for party in range(between.size):
        check_alone(between, party, job)
    return ends_of(between, lambda context: run_job(context, job), patience=30)


def another_share(liar: Committee, index: int, added: int, place: int = 0) -> Callable[..., Any]:
    """Party 0 of a committee reads another value of its share of a vector, of which it has no proper MAC: it deals that, and states it."""
    honest = macs.read_vector

    def read(held: Holding, folder: Path, party: int, number: int) -> Any:
        share = honest(held, folder, party, number)
        if folder.is_relative_to(liar.party_folder(0)) and number == index:
            modulus, at = Domain.parse(held.vectors[index].domain).prime or 1 << 64, place * share.element_words
            share.words[0, at] = (int(share.words[0, at]) + added) % modulus
        return share

    return read


@pytest.mark.parametrize("to", ["mascot", "spdz2k"])
@pytest.mark.parametrize("shifted", [None, 0, 2], ids=["honest", "one prime", "modulo 2^64"])
def test_without_macs_the_ring_vector_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, shifted: int | None) -> None:
    """An old member shifts its summand modulo 2^64 alone: nobody takes that from it. Modulo one prime alone: the tests of lifted values find it."""
    old, truth = burned(tmp_path, small("bfv"))
    new = api.init_after(tmp_path / "new", old, protocol=to, parties=2)
    if shifted is not None:
        monkeypatch.setattr(macs, "read_vector", another_share(old, shifted, 1))
    ends = passed_on_burned(old, new)
    if shifted == 0:
        ends.found("not the same short integers modulo all primes")
        return
    assert not any(isinstance(end, Exception) for end in ends), ends
    assert secrets(new) == truth["key"][0] and record_of(new).keys["key"]["flags"] == ["ring_secret"]
    info = load_key(new.key_folder(0, "key"))
    assert {proofs_run(new.key_folder(party, "key"), info) for party in range(2)} == {1}, "a try"


def test_without_macs_bits_are_tested_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old member adds 2 to its share of a bit, and the new committee has the bit all the same."""
    old, truth = burned(tmp_path, AES)
    new = api.init_after(tmp_path / "new", old, protocol="mascot", parties=2)
    monkeypatch.setattr(macs, "read_vector", another_share(old, 0, 2))
    assert not any(isinstance(end, Exception) for end in passed_on_burned(old, new))
    assert truths(new) == truth and set(truth["key"][0][0]) == {0, 1}


def test_only_macs_are_burned(tmp_path: Path) -> None:
    old, new = api.init(tmp_path / "old", 3, "rep-field"), api.init(tmp_path / "new", 3, "rep-field")
    with pytest.raises(ParameterError, match="--accept-origin burned: old is of rep-field, which has no MAC key: leave it out"):
        api.reshare_job(old, new, None, BURNED)


@pytest.mark.parametrize("apart", [True, False])
def test_members_of_the_other_committee_burn_no_key(tmp_path: Path, apart: bool) -> None:
    """One that opens another toss than it committed to ends the resharing, and no more. In a session whose failed checks burn the keys of its groups it would end the old committee."""
    ready = threading.Barrier(5)
    paths = [tmp_path / f"party-{number}" / "mac.key" for number in range(2)]

    def wire(peer: int, data: bytes) -> list[bytes]:
        return [bytes([data[0] ^ 1]) + data[1:]] if peer < 2 and len(data) == 64 else [data]  # what it opens: its part and the randomness

    def run(session: Any) -> None:
        group = session.subgroup([0, 1], apart=apart) if session.party < 2 else None
        if group is not None:
            mac_key.use(group, paths[session.party])
        ready.wait(20)
        try:
            session.toss(32)
        except Exception as error:
            session.abort(str(error))

    sessions = _engine.tampered_sessions([*[None] * 4, wire], [], 20.0)
    threads = [threading.Thread(target=run, args=(session,), daemon=True) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    burned = [bool(mac_key.state(path).burned) for path in paths]
    assert burned == [not apart] * 2


@pytest.mark.parametrize("apart", [True, False])
def test_a_group_that_ends_gives_its_key_free(tmp_path: Path, apart: bool) -> None:
    """Also after the whole session was aborted from outside: the next try in the same process takes it. That of a group that shares the guard of all is in use until they end."""
    paths = [tmp_path / f"party-{number}" / "mac.key" for number in range(2)]
    kept, errors = list[Any](), list[Exception]()

    def run(session: Any, again: bool) -> None:
        group = session.subgroup([0, 1], apart=apart)
        try:
            mac_key.use(group, paths[session.party])
        except Exception as error:
            errors.append(error)
        kept.append(group)
        if not again:
            group.close()

    for again in (False, True):
        sessions = _engine.tampered_sessions([None, None], [], 20.0)
        kept += sessions
        threads = [threading.Thread(target=run, args=(session, again), daemon=True) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert [type(error).__name__ for error in errors] == ([] if apart else ["KeyInUseError"] * 2)
