"""Resharing from and to committees for malicious parties: all pairs, what a deviating member can do with the check and without it, and where keys come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import CheckError, ShareFile, transfer_opened, transfer_stated
from keyquorum._engine import Dealer as CoreDealer
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import EpochError, KeyFileError, ParameterError, PolicyError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.parties.epochs import Record, read_epoch
from keyquorum.parties.jobs import check_alone, run_job
from keyquorum.plans.epochs import reshare, stated
from keyquorum.plans.epochs.counts import agreed_counts
from keyquorum.plans.epochs.orders import examine_epochs
from keyquorum.plans.epochs.origins import SEMI_HONEST, assumed_keys, require_correct
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.plans.epochs.transfer import Transfer
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_key
from keyquorum.serve.client import make_receiver
from keyquorum.serve.daemon import Daemon
from keyquorum.serve.kinds import Own, Service

from tests.commands import command
from tests.long import LONG
from tests.plans.corrupted import Ends, Other, ends_of
from tests.plans.epochs.test_prove import committee_with, proven, with_scheme
from tests.plans.test_own_primes import created
from tests.plans.test_refresh import public_files, refreshed, run, share_bytes, with_keys
from tests.schemes import test_tfhe

from .reshared import has_any, reshared, secrets_of

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
SHAPES = [("ring", 3), ("shamir", 3), ("semi", 2), ("mal-rep-field", 3), ("mal-rep-ring", 3), ("mal-shamir", 3), ("mal-shamir", 5)]


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def record_of(committee: Committee) -> Record:
    folder = committee.party_folder(0)
    return Record.load(folder, read_epoch(folder).name)


# -- pairs -----------------------------------------------------------------------------------------------------------------


def test_the_shapes_have_all_protocols_that_verify() -> None:
    assert {p.name for p in COMMITTEES.values() if p.verifies_products} == {name for name, _ in SHAPES if name.startswith("mal-")}


def walk(shapes: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Shapes in an order in which every pair with one that verifies follows one another once: a closed walk through all such pairs (Hierholzer)."""
    left = {a: [b for b in shapes if a[0].startswith("mal-") or b[0].startswith("mal-")] for a in shapes}
    stack, found = [shapes[0]], list[tuple[str, int]]()
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            found.append(stack.pop())
    return found[::-1]


def test_all_pairs_of_committees(tmp_path: Path) -> None:
    """One key goes through all 40 pairs (without KEYQUORUM_LONG=1 through the 24 of five shapes): secret and public files stay, no old share is left, and each record says that the transfer was checked."""
    shapes = SHAPES if LONG else SHAPES[1:6]
    order = walk(shapes)
    assert len(set(pairwise(order))) == len(order) - 1 == len(shapes) ** 2 - sum(not name.startswith("mal-") for name, _ in shapes) ** 2
    old = with_keys(tmp_path, *order[0], ["lwe53-p16"])
    truth, public = secrets_of(old), public_files(old)
    for number, (protocol, parties) in enumerate(order[1:], 1):
        shares = share_bytes(old)
        new = api.init_after(tmp_path / f"after-{number}", old, protocol=protocol, parties=parties)
        reshared(old, new)
        assert (secrets_of(new), public_files(new)) == (truth, public), (old.protocol, protocol)
        assert not has_any(old.folder, shares) and not has_any(new.folder, shares)
        assert record_of(new).checks == ("transfer check",)
        old = new
    assert all(finding.ok for finding in (*examine_keys(old, range(old.size)), *examine_epochs(old, range(old.size))))


RING_SHAPES = [("semi2k", 2), ("mal-rep-ring", 3), ("mal-rep-field", 3)]


def test_keys_of_rings_and_bits(tmp_path: Path) -> None:
    """LWE modulo 2^64 and AES, all pairs of three committees; then a refresh, which needs the origins of shares."""
    order = [*walk(RING_SHAPES), RING_SHAPES[1]]
    old = with_keys(tmp_path, *order[0], ["lwe64-p2", "prf-aes128"])
    truth = {key: (secrets_of(old, key), public_files(old, key)) for key in ("key", "key1")}
    for number, (protocol, parties) in enumerate(order[1:], 1):
        new = api.init_after(tmp_path / f"after-{number}", old, protocol=protocol, parties=parties)
        reshared(old, new)
        assert {key: (secrets_of(new, key), public_files(new, key)) for key in truth} == truth, (old.protocol, protocol)
        old = new
    assert refreshed(old)["epoch"] == len(order) and secrets_of(old) == truth["key"][0]


def test_ciphertexts_are_decrypted_by_each_committee(tmp_path: Path) -> None:
    """The commands, each party a process: from malicious parties to semi-honest ones, and to malicious ones again with an origin that is accepted."""
    old = tmp_path / "old"
    api.init(old, 3, "mal-rep-field")
    api.keygen(old, "key", created("bfv", 1024, [36, 37], 12289, "none"), relin=False)
    api.encrypt(old, "key", np.arange(100), tmp_path / "0.ct")
    for number, (protocol, options) in enumerate([("rep-field", []), ("mal-shamir", ["--accept-origin", "semi-honest"])]):
        new = tmp_path / f"new-{number}"
        assert command(tmp_path, "init", new, "--after", old, "--protocol", protocol).returncode == 0
        done = command(tmp_path, "reshare", old, new, *options)
        assert done.returncode == 0, done.stderr
        assert ("for parties that follow the protocol, and this stays in their origin" in done.stderr) == (protocol == "rep-field"), done.stderr
        [output] = api.decrypt(new, "key", [tmp_path / "0.ct"], 1, [tmp_path / f"out-{number}"]).outputs
        assert api.decode(new, "key", output)[:100].tolist() == list(range(100))
        old = new
    shown = command(tmp_path, "inspect", old / "party-0" / "epochs" / f"{read_epoch(old / 'party-0').name}.json").stdout
    assert "checked: transfer check" in shown and "key key: correct: assumed, unless keyquorum epoch prove has tested its shares since" in shown


def test_keys_without_a_verified_plan_do_not_go_to_malicious_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TFHE_SETS, test_tfhe.TINY.name, test_tfhe.TINY)
    old = with_keys(tmp_path, "rep-field", 3, [test_tfhe.TINY.name])
    new = api.init_after(tmp_path / "new", old, protocol="mal-rep-ring")
    with pytest.raises(ParameterError, match=r"key key: mal-rep-ring is for malicious parties, and has no plan for keys of tfhe"):
        reshared(old, new)


# -- attacks ---------------------------------------------------------------------------------------------------------------


def attacked(old: Committee, new: Committee, session: Callable[[Any], Any] = lambda raw: raw, **options: Any) -> Ends:
    """A resharing in which somebody deviates."""
    between, job = bridge(old, new), api.reshare_job(old, new, None, SEMI_HONEST)
    for party in range(between.size):
        check_alone(between, party, job)
    return ends_of(between, lambda context: run_job(context, job), session=session, patience=30, **options)  # type: ignore[arg-type]


def lying_dealer(liar: int) -> Any:
    """Adds 1 to the first element of every vector that a dealer passes on, but not to masks, and deals that as if it were its share."""

    class Lies:
        def __init__(self, old: Any, new: Any, dealers: Sequence[int], party: int, name: bytes) -> None:
            self.core, self.lies = CoreDealer(old, new, dealers, party, name), party == liar

        def seeds(self, receiver: int) -> bytearray:
            return self.core.seeds(receiver)

        def dealt(self, domain: str, label: bytes, shares: bytes) -> list[bytearray]:
            if self.lies and not label.startswith(reshare.MASKS):
                first = int.from_bytes(shares[:8], "little")
                shares = (first ^ 1).to_bytes(8, "little") + shares[8:]
            return self.core.dealt(domain, label, shares)

    return Lies


PAIRS = [(("mal-rep-field", 3), ("mal-shamir", 5)), (("mal-shamir", 5), ("mal-rep-ring", 3)), (("mal-shamir", 3), ("semi", 2))]


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
@pytest.mark.parametrize(("shape", "to"), PAIRS, ids=str)
def test_a_dealer_that_passes_on_another_summand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[str, int], to: tuple[str, int], ablated: bool
) -> None:
    """Nothing is passed on, the old committee goes on, and the next resharing works. Without the check the new committee has another key."""
    old = with_keys(tmp_path, *shape, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol=to[0], parties=to[1])
    truth, shares = secrets_of(old), share_bytes(old)
    monkeypatch.setattr(reshare, "Dealer", lying_dealer(1))
    if ablated:
        monkeypatch.setattr(Transfer, "_judge", lambda *given: None)
        assert not any(isinstance(end, Exception) for end in attacked(old, new))
        assert secrets_of(new) != truth
        return
    attacked(old, new).found("the shares that new got are not of the secret that committee has", EpochError)
    assert secrets_of(old) == truth and share_bytes(old) == shares
    assert not list(new.folder.glob("party-*/keys/key/shares-*/share-*.kqs")), "new shares are erased"
    assert all(finding.ok for finding in examine_epochs(old, range(old.size)))
    monkeypatch.undo()
    reshared(old, new)
    assert secrets_of(new) == truth


def test_a_faulty_dealer_of_a_semi_honest_committee_is_not_seen_if_its_share_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dealer deals must be what it states, so a fault between the two is found. But a dealer that deals and states another share passes: the key is only assumed to be right."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new, truth = api.init_after(tmp_path / "new", old, protocol="mal-rep-field"), secrets_of(old)
    monkeypatch.setattr(reshare, "Dealer", lying_dealer(0))
    attacked(old, new).found("are not of the secret that", EpochError)
    monkeypatch.undo()
    folder = old.key_folder(0, "key")
    held = holding_of(folder, load_key(folder))
    path, header = str(held.folder(folder) / "share-0.kqs"), held.share_header(0, 0)
    words = bytearray(ShareFile.read(path, header))
    words[0] ^= 1
    ShareFile.write(path, header, bytes(words))
    reshared(old, new)
    assert secrets_of(new) != truth and assumed_keys(new, 0) == ["key"]


def changes(at: int, place: int, message: Callable[[bytes], bytes], to: Sequence[int] = ()) -> Callable[[Any], Any]:
    """A proxy of the session of party ``at``, which changes its messages number ``place`` to each of the parties ``to`` (empty: all)."""

    def session(raw: Any) -> Any:
        if raw.party != at:
            return raw
        sent: dict[int, int] = {}

        def send(party: int, data: bytes) -> None:
            sent[party] = sent.get(party, 0) + 1
            raw.send(party, message(data) if sent[party] == place and (not to or party in to) else data)

        return Other(raw, send=send)

    return session


def flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
def test_a_dealer_that_gives_two_holders_different_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """Of the summand without a seed. Without the check the new committee has two keys."""
    old = with_keys(tmp_path, "mal-shamir", 3, ["lwe53-p16"])
    new, truth = api.init_after(tmp_path / "new", old, protocol="mal-rep-field"), secrets_of(old)
    # Messages of dealer 1 to a new member: counts, seeds, masks, shares.
    proxy = changes(1, 4, flipped, to=[5])
    if ablated:
        monkeypatch.setattr(Transfer, "_judge", lambda *given: None)
        assert not any(isinstance(end, Exception) for end in attacked(old, new, proxy))
        with pytest.raises(AssertionError, match="copies of summands"):
            secrets_of(new)
        return
    attacked(old, new, proxy).found("state different values of one summand", EpochError)
    assert secrets_of(old) == truth


def stored(committee: Committee, party: int) -> tuple[bytes, str, int]:
    """A party's share of the first vector of the key, its domain and its length."""
    folder = committee.key_folder(party, "key")
    held = holding_of(folder, load_key(folder))
    share = ShareFile.read(str(held.folder(folder) / "share-0.kqs"), held.share_header(party, 0))
    return share, held.vectors[0].domain, held.vectors[0].length


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
def test_a_dealer_whose_points_are_not_of_one_polynomial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """To four members of which one may be malicious. Without the check one of them has a share that fits nobody's."""
    old = with_keys(tmp_path, "mal-rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="mal-shamir", parties=4)
    proxy = changes(1, 4, flipped, to=[6])  # messages as above
    if ablated:
        monkeypatch.setattr(Transfer, "_judge", lambda *given: None)
        assert not any(isinstance(end, Exception) for end in attacked(old, new, proxy))
        held = [stored(new, party) for party in range(4)]
        transfer_opened(("mal-shamir", 3, 1), *held[0][1:], [share for share, *_ in held[:3]])
        with pytest.raises(CheckError, match="is not of one polynomial"):
            transfer_opened(new.shape, *held[0][1:], [share for share, *_ in held])
        return
    attacked(old, new, proxy).found("is not of one polynomial of degree 1 (found at that of member 3)", EpochError)


@pytest.mark.parametrize(
    ("shape", "to", "at", "said"),
    [
        (("mal-rep-field", 3), ("mal-shamir", 3), 2, "what party 0 of committee, party 1 of committee, party 2 of committee state does not fit: members 2 and 0 state different values"),
        (("mal-shamir", 5), ("semi", 2), 4, "is not of one polynomial of degree 2 (found at that of member 4)"),
        (("rep-field", 3), ("mal-rep-ring", 3), 4, "party 2 of new state does not fit: members 1 and 2 state different values"),
        (("mal-rep-ring", 3), ("mal-shamir", 5), 7, "is not of one polynomial of degree 2 (found at that of member 4)"),
    ],
    ids=str,
)  # fmt: skip
def test_a_member_that_states_something_else(tmp_path: Path, shape: tuple[str, int], to: tuple[str, int], at: int, said: str) -> None:
    """An old or a new one, to one honest new member or all: those that see it refuse, so that nobody commits."""
    old = with_keys(tmp_path, *shape, ["lwe53-p16"])
    new, truth = api.init_after(tmp_path / "new", old, protocol=to[0], parties=to[1]), secrets_of(old)
    attacked(old, new, states_another(at)).found(said, EpochError)
    assert secrets_of(old) == truth


def states_another(at: int) -> Callable[[Any], Any]:
    """What party ``at`` sends to all parties after the toss of 32 bytes is something else."""

    def session(raw: Any) -> Any:
        if raw.party != at:
            return raw
        tossed = list[bool]()

        def toss(count: int) -> bytes:
            found: bytes = raw.toss(count)
            if count == 32:
                tossed.append(True)
            return found

        def send(party: int, data: bytes) -> None:
            raw.send(party, flipped(data) if tossed else data)

        return Other(raw, toss=toss, send=send)

    return session


@pytest.mark.parametrize("wrong", [b"", bytes(7), bytes(24), b"\xff" * 16], ids=["none", "short", "long", "not reduced"])
def test_statements_of_other_lengths_are_refused(tmp_path: Path, wrong: bytes) -> None:
    old = with_keys(tmp_path, "mal-rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="mal-shamir")

    def session(raw: Any) -> Any:
        if raw.party != 2:
            return raw
        # Party 2 does not deal: to new members it sends nothing but what it states, and statements at the end.
        return Other(raw, send=lambda party, data: raw.send(party, wrong if party >= 3 and len(data) == 16 else data))

    attacked(old, new, session).found("party 2 of committee stated" if len(wrong) != 16 else "member 2 stated 16 bytes that are not", EpochError)


def test_members_of_a_set_with_different_seeds(tmp_path: Path) -> None:
    """Party 0 sends another seed of a set to one of its members; they compare hashes before anything is dealt."""
    old = with_keys(tmp_path, "mal-shamir", 5, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="mal-shamir", parties=3)

    class Wire:
        begun, changed = False, 0

        def begin(self) -> None:
            self.begun = True

        def __call__(self, to: int, message: bytes) -> list[bytes]:
            if not self.begun or to != 1 or len(message) != 3 * 32:  # of the three sets of 0, 1 and another one
                return [message]
            self.changed += 1
            return [flipped(message)]

    wire = Wire()
    attacked(old, new, wire=wire).found("seed", CheckError)
    assert wire.changed == 1


def test_nobody_tosses_before_all_confirmed(tmp_path: Path) -> None:
    """The toss comes after the confirmation of the new shares, and statements after the toss: each mask is used for one toss."""
    old = with_keys(tmp_path, "mal-rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="mal-shamir")
    events: dict[int, list[str]] = {}

    def session(raw: Any) -> Any:
        mine = events.setdefault(raw.party, [])

        def compare(label: str, digest: bytes) -> None:
            raw.compare(label, digest)
            mine.append(label)

        def toss(count: int) -> bytes:
            mine.append(f"toss {count}")
            found: bytes = raw.toss(count)
            return found

        return Other(raw, compare=compare, toss=toss)

    assert not any(isinstance(end, Exception) for end in attacked(old, new, session))
    for mine in events.values():
        place = mine.index("toss 32")
        assert mine[place - 1 : place + 2] == ["new shares on the disk", "toss 32", "transfer check"] and mine.count("toss 32") == 1


def test_a_known_toss_lets_a_fitting_mask_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ablation of the order: with a toss that the dealer knows when it deals, it chooses the error of a mask so that y is right, and the new committee has another key."""
    old = with_keys(tmp_path, "mal-rep-field", 3, ["lwe53-p16"])
    new, truth = api.init_after(tmp_path / "new", old, protocol="mal-shamir"), secrets_of(old)
    info, known = load_key(old.key_folder(0, "key")), bytes(32)
    [vector], label = info.secrets, f"{info.key_id} key 0".encode()
    first = (1).to_bytes(8, "little") + bytes(8 * vector.length - 8)
    factor = int.from_bytes(transfer_stated(("semi", 2, 1), vector.domain, (known, label), (first, bytes(8))), "little")

    class Fits(lying_dealer(1)):  # type: ignore[misc]
        def dealt(self, domain: str, label: bytes, shares: bytes) -> list[bytearray]:
            error = (-factor if label.startswith(reshare.MASKS) else 1) if self.lies else 0
            word = (int.from_bytes(shares[:8], "little") + error) % Domain.parse(domain).modulus
            dealt: list[bytearray] = self.core.dealt(domain, label, word.to_bytes(8, "little") + shares[8:])
            return dealt

    monkeypatch.setattr(reshare, "Dealer", Fits)
    attacked(old, new).found("are not of the secret that", EpochError)
    ends = attacked(old, new, lambda raw: Other(raw, toss=lambda count: known if count == 32 else raw.toss(count)))
    assert not any(isinstance(end, Exception) for end in ends), list(ends)
    assert secrets_of(new) != truth


# -- what old members say --------------------------------------------------------------------------------------------------


def test_counts_that_others_do_not_confirm_are_refused(tmp_path: Path) -> None:
    """The largest count of a verifying committee is taken if t + 1 members are near it; a semi-honest one is believed."""
    verified, honest = (with_keys(tmp_path / name, name, 3, ["prf-aes128"]) for name in ("mal-rep-field", "rep-field"))
    info = load_key(verified.key_folder(0, "key"))
    said = {party: {"decryptions": 0, "refusals": 1, "proofs": 3, "evaluations": 100} for party in range(3)}
    for what, near, far in (("refusals", 3, 4), ("proofs", 5, 6), ("evaluations", 4196, 4197)):
        assert agreed_counts(verified, info, {**said, 1: {**said[1], what: near}}, {})[what] == near
        with pytest.raises(
            PolicyError, match=f"party 1 of committee reports {far} {what} of key .*, only {said[0][what]} are confirmed by another party"
        ):
            agreed_counts(verified, info, {**said, 1: {**said[1], what: far}}, {})
        assert agreed_counts(honest, info, {**said, 1: {**said[1], what: far}}, {})[what] == far


def files_of(old: Committee, new: Committee, lists: Sequence[Any]) -> Any:
    """What new members get beside a key after old members said that they have these files."""
    between, infos = bridge(old, new), {"key": load_key(old.key_folder(0, "key"))}
    counts = {"decryptions": 0, "refusals": 0, "proofs": 0, "evaluations": 0}
    said = [json.dumps({"key": {"counts": counts, "noted": {}, "recent": [], "beside": files, "assumed": False}}).encode() for files in lists]
    return stated.agreed(between, infos, [*said, *[b""] * new.size])["key"]


def test_public_files_beside_a_key_are_those_of_an_honest_member(tmp_path: Path) -> None:
    """t + 1 members of a verifying committee state the same digest, and nobody another one."""
    verified, honest = (with_keys(tmp_path / name, name, 3, ["lwe53-p16"]) for name in ("mal-rep-field", "rep-field"))
    new = api.init(tmp_path / "new", 3, "mal-shamir")
    name, right, wrong = "round-keys-a.lwe", [5, "00" * 32], [5, "11" * 32]
    for files in ([{name: right}] * 3, [{name: right}, {}, {name: right}]):
        assert files_of(verified, new, files).beside == {name: (5, "00" * 32)}
    assert files_of(verified, new, [{}, {name: right}, {name: right}]).beside == {}
    with pytest.raises(KeyFileError, match=r"key key: 1 members have round-keys-a\.lwe, and 2 must state the same one"):
        files_of(verified, new, [{name: right}, {}, {}])
    assert files_of(honest, new, [{name: right}, {}, {}]).beside == {name: (5, "00" * 32)}
    for old in (verified, honest):
        with pytest.raises(KeyFileError, match=r"party 0 of committee and party 2 of committee have different files round-keys-a\.lwe"):
            files_of(old, new, [{name: right}, {name: right}, {name: wrong}])


@pytest.mark.parametrize(
    "files", [{"key.json": [1, "00" * 32]}, {"round-keys-a.lwe": [1]}, {"../round-keys-a.lwe": [1, "00" * 32]}, {"round-keys-a.lwe": [-1, "00" * 32]}, [], {"round-keys-a.lwe": [1, "00"]}]
)  # fmt: skip
def test_files_beside_a_key_that_are_not_public_ones_are_refused(tmp_path: Path, files: Any) -> None:
    old, new = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"]), api.init(tmp_path / "new", 3, "rep-field")
    with pytest.raises(EpochError, match="party 1 of committee sent something that is not counts and public files of the keys"):
        files_of(old, new, [{}, files, {}])


def test_a_member_alone_does_not_say_that_keys_are_right(tmp_path: Path) -> None:
    old, new = with_keys(tmp_path, "mal-rep-field", 3, ["lwe53-p16"]), api.init(tmp_path / "new", 3, "mal-shamir")
    infos, counts = {"key": load_key(old.key_folder(0, "key"))}, {"decryptions": 0, "refusals": 0, "proofs": 0, "evaluations": 0}
    for assumed, correct in (([False] * 3, True), ([True, False, False], True), ([True, True, False], False)):
        said = [json.dumps({"key": {"counts": counts, "noted": {}, "recent": [], "beside": {}, "assumed": each}}).encode() for each in assumed]
        assert stated.agreed(bridge(old, new), infos, [*said, b"", b"", b""])["key"].correct == correct


def test_a_member_alone_does_not_take_it_from_keys_with_macs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There all must say so, and honest ones say the same: another word ends the resharing. Without the check one liar has the key marked as assumed for ever."""
    old, new = with_keys(tmp_path, "spdz2k", 2, ["lwe64-p2"]), api.init(tmp_path / "new", 3, "mal-shamir")
    infos, counts = {"key": load_key(old.key_folder(0, "key"))}, {"decryptions": 0, "refusals": 0, "proofs": 0, "evaluations": 0}
    said = [json.dumps({"key": {"counts": counts, "noted": {}, "recent": [], "beside": {}, "assumed": each}}).encode() for each in (False, True)]
    with pytest.raises(EpochError, match=r"party 1 of committee says that nothing shows its shares to be right, and party 0 of committee that"):
        stated.agreed(bridge(old, new), infos, [*said, b"", b"", b""])
    monkeypatch.setattr(stated, "_refuse_alone", lambda *_: None)
    assert not stated.agreed(bridge(old, new), infos, [*said, b"", b"", b""])["key"].correct


def test_one_integer_modulo_all_primes_stays_known(tmp_path: Path) -> None:
    """Of a key of CKKS that a committee which verifies products made: after a refresh, and at every later committee that got it right. After a semi-honest one it is not."""
    maker = with_keys(tmp_path, "mal-shamir", 3, [with_scheme("ckks")])
    reshared(maker, first := api.init_after(tmp_path / "first", maker))
    refreshed(first)
    reshared(first, second := api.init_after(tmp_path / "second", first))
    assert [record_of(each).keys["key"]["flags"] for each in (first, second)] == [["lift_tested", "correct"]] * 2
    refreshed(second)
    reshared(second, third := api.init_after(tmp_path / "third", second, protocol="mal-rep-field", parties=3))
    assert record_of(third).keys["key"]["flags"] == ["lift_tested", "correct"]
    reshared(third, fourth := api.init_after(tmp_path / "fourth", third, protocol="rep-field", parties=3))
    reshared(fourth, fifth := api.init_after(tmp_path / "fifth", fourth, protocol="mal-shamir", parties=3))
    assert record_of(fifth).keys["key"]["flags"] == []


# -- origins ---------------------------------------------------------------------------------------------------------------


def test_an_origin_must_be_accepted(tmp_path: Path) -> None:
    """By the API, the command, and at each party by the job."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="mal-rep-field")
    said = r"rep-field, whose parties follow the protocol, and new of mal-rep-field: .* --accept-origin semi-honest"
    with pytest.raises(ParameterError, match=said):
        api.reshare_job(old, new)
    refused = command(tmp_path, "reshare", old.folder, new.folder)
    assert refused.returncode == 1 and "make new keys there, or give --accept-origin semi-honest" in refused.stderr
    with pytest.raises(ParameterError, match="the only origin to accept is semi-honest"):
        api.reshare_job(old, new, None, "any")
    job = api.reshare_job(old, new, None, "semi-honest")
    between = bridge(old, new)
    del job["accept_origin"]
    for party in range(between.size):
        with pytest.raises(ParameterError, match=said):
            check_alone(between, party, job)


def test_less_is_promised_with_a_warning(tmp_path: Path) -> None:
    old = with_keys(tmp_path, "mal-rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="rep-field")
    with pytest.warns(SecurityWarning, match="from now on these keys are for parties that follow the protocol"):
        api.reshare_job(old, new)


def test_keys_are_assumed_to_be_right_until_they_are_tested(tmp_path: Path) -> None:
    """From a semi-honest committee; the next malicious one takes over what this one knows. A key that a committee made itself is not assumed, and a daemon refuses what is."""
    old = committee_with(tmp_path, "rep-field", 3)
    first = api.init_after(tmp_path / "first", old, protocol="mal-rep-field")
    reshared(old, first)
    run(first, api.keygen_job("lwe", "lwe53-p16"))
    assert assumed_keys(first, 1) == ["key"]
    lines = [finding.text for finding in examine_epochs(first, [1])]
    assert any("key key: correct: assumed" in line for line in lines) and not any("key lwe" in line and "assumed" in line for line in lines)
    make_receiver(first, "alice")
    assert require_correct(old, 0, "key", False) == ""
    with pytest.raises(
        KeyFileError,
        match=r"key key: correct: assumed: .*test the shares with keyquorum epoch prove, make a new key, or serve it with --accept-assumed",
    ):
        require_correct(first, 1, "key", False)
    with pytest.raises(KeyFileError, match="correct: assumed"):
        Daemon(first, 1, Service("key"))
    served = command(tmp_path, "serve", first.folder, 0, "key")
    assert served.returncode == 1 and "or serve it with --accept-assumed" in served.stderr
    said = list[str]()
    daemon = Daemon(first, 1, Service("key"), Own(accept_assumed=True), said.append)
    daemon.stop()
    daemon.run()
    assert any("key key: correct: assumed: a committee of semi-honest parties had it before" in line for line in said), said
    refreshed(first)
    assert assumed_keys(first, 0) == ["key"], "a refresh of keys shows nothing"
    second = api.init_after(tmp_path / "second", first, protocol="mal-shamir")
    reshared(first, second)
    assert assumed_keys(second, 2) == ["key"], "the check carries on what the committee before knew"
    proven_lwe = holding_of(second.key_folder(0, "lwe"), load_key(second.key_folder(0, "lwe")))
    assert proven_lwe.flags == ("correct",)
    assert proven(second) == [1] * 3
    assert assumed_keys(second, 0) == [] and require_correct(second, 0, "key", False) == ""
    third = api.init_after(tmp_path / "third", second, protocol="mal-rep-ring")
    reshared(second, third)
    assert assumed_keys(third, 0) == []
    assert record_of(third).origin[0].endswith("semi-honest") and len(record_of(third).origin) == 4
    last = api.init_after(tmp_path / "last", third, protocol="semi", parties=2)
    reshared(third, last)
    assert assumed_keys(last, 0) == []
    after = api.init_after(tmp_path / "after", last, protocol="mal-rep-field", parties=3)
    reshared(last, after)
    assert assumed_keys(after, 0) == ["key", "lwe"]


def test_flags_of_committees_with_macs_do_not_go_along(tmp_path: Path) -> None:
    """A new holding has the flag of this check alone: no test of lifted values is claimed that this committee did not make."""
    old = with_keys(tmp_path, "mal-rep-field", 3, ["lwe53-p16"])
    epoch = reshare.keys_said(old, 0, "pass on")
    assert epoch["key"]["holding"]["flags"] == ["correct"]
    new = api.init_after(tmp_path / "new", old, protocol="mal-shamir")
    reshared(old, new)
    assert record_of(new).keys["key"]["flags"] == ["correct"]
