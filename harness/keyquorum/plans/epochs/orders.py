"""What an operator asks and orders about epochs at the parties of a host: status, history, commit, give-up, erasure. Nothing here needs a session: parties elsewhere are heard by files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.epoch import BACK, DECIDED, Stage, Who
from keyquorum.model.errors import EpochError, KeyQuorumError, PoolError
from keyquorum.model.plain import Json
from keyquorum.parties.doctor import Finding
from keyquorum.parties.epochs import JOURNAL, Change, Epoch, Record, read_epoch
from keyquorum.parties.epochs.audited import unaudited
from keyquorum.parties.epochs.erasure import is_another_key, unerased
from keyquorum.parties.epochs.exchange import hear_all, show_all
from keyquorum.parties.epochs.lines import read_journal
from keyquorum.parties.epochs.record import standbys
from keyquorum.plans.epochs.alone import orders_alone
from keyquorum.plans.epochs.origins import origin_lines
from keyquorum.plans.pools import drop_pools, old_pools
from keyquorum.schemes.key_folder import holds_a_key


def _number(committee: Committee, who: Who) -> str:
    """A participant for people: its number in this committee, or the start of its fingerprint."""
    return next((f"party {p.index}" for p in committee.parties if p.fingerprint == who), who[:16])


def _lines(committee: Committee, party: int) -> list[Json]:
    return read_journal(committee.party_folder(party) / JOURNAL, committee.parties[party].fingerprint)


def status(committee: Committee, party: int) -> Json:
    """The epoch of a party of this host: ``number``, ``epoch``, ``keys`` (of every key the epoch's name, empty where key generation left it), ``unfinished`` (None, or stage and what is missing),
    ``unerased`` (files with shares of other epochs, and ages in seconds), ``old_pools`` (folders of pools of other epochs), ``backups_before`` (when this party had erased the shares of the epoch
    before: backups of before hold them, and must be gone; empty until then), ``moved_to`` (the committee to which the keys were passed on; empty if they are here), ``missing`` (numbers of parties that were absent when this epoch was made, and have no shares), ``untested`` (those without which shares were recovered and tested), ``recovered`` (those whose shares may be others than before since), ``went_back`` (epochs from which it went back, and to which it may come forward), ``contradictions`` (a line for each
    party that signed what excludes each other), ``standbys`` (committees that may hold the keys as well: ``committee``, ``digest``, ``epoch``). Raises EpochError."""
    folder = committee.party_folder(party)
    here, changes = read_epoch(folder), Change.recent(committee, party)
    unfinished = None
    keep = {here.name, *(change.record.name for change in changes if change.standing.stage == Stage.GONE_BACK)}
    for change in changes:
        if change.standing.stage not in DECIDED:
            missing = sorted(_number(committee, who) for who in change.missing())
            unfinished = {"epoch": change.record.name, "stage": change.standing.stage.value, "votes_missing": missing}
            keep.add(change.record.name)
    folders = [path for path in sorted((folder / "keys").glob("*")) if holds_a_key(path)]
    names = [path.name for path in folders if not is_another_key(path, here.keys.get(path.name, {}))]
    keys = {name: here.keys[name]["sharing"] if name in here.keys else "" for name in names}
    old = [each for name in names for each in unerased(folder, {name: here.keys.get(name, {})}, frozenset(keep if keys[name] else {*keep, ""}))]
    mine = [line for line in _lines(committee, party) if line["own"] and line["epoch"] == here.name]
    erased = [line["date"] for line in mine if line["said"]["kind"] == Stage.ERASED]
    return {
        "party": party, "number": here.number, "epoch": here.name, "keys": keys, "unfinished": unfinished,
        "unerased": [{"file": str(each.path), "age": round(each.age)} for each in old], "old_pools": [str(path) for path in old_pools(committee, party, keep)],
        "backups_before": erased[-1] if erased else "", "moved_to": _moved_to(committee, folder, here), "missing": list(here.missing), "untested": list(here.untested), "recovered": list(here.recovered),
        "went_back": [change.record.name for change in changes if change.standing.stage == Stage.GONE_BACK and not change.settled],
        "contradictions": [line for change in changes for line in change.contradictions()],
        "standbys": [{"committee": each.new["name"], "digest": each.new["digest"], "epoch": each.name} for each in standbys(folder)],
    }  # fmt: skip


def _moved_to(committee: Committee, folder: Path, here: Epoch) -> str:
    record = Record.load(folder, here.name) if here.number else None
    return "" if record is None or record.new["digest"] == committee.digest.hex() else str(record.new["name"])


def status_lines(found: Json) -> Iterator[str]:
    """A status for people."""
    who = f"party {found['party']}"
    yield f"{who}: epoch {found['number']}" + (f", {found['epoch']}" if found["epoch"] else ", as key generation left it")
    if found["moved_to"]:
        yield f"{who}: moved: the committee {found['moved_to']} holds the keys since"
    for name, sharing in found["keys"].items() if not found["moved_to"] else ():
        yield f"{who}: key {name}: " + (f"shares of epoch {sharing}" if sharing else "shares as key generation left them")
    for each in found["standbys"]:
        yield f"{who}: STANDBY: the committee {each['committee']} ({each['digest'][:16]}) may hold the keys as well, from epoch {each['epoch']}: they fall if either does"
    if found["unfinished"] is not None:
        change = found["unfinished"]
        missing = ", ".join(change["votes_missing"]) or "none"
        yield f"{who}: UNFINISHED change to epoch {change['epoch']}: {change['stage']}; votes missing here: {missing}: keyquorum epoch commit"
    for number in found["missing"]:
        yield f"{who}: ABSENT: party {number} has no shares of this epoch, and its old ones count as stolen: keyquorum recover"
    if found["untested"]:
        numbers = ",".join(map(str, found["untested"]))
        yield f"{who}: UNTESTED: what parties {numbers} hold was not tested when shares of others were recovered: keyquorum refresh-shares --absent {numbers}, then recover them"
    if found["recovered"]:
        numbers = ",".join(map(str, found["recovered"]))
        yield f"{who}: RECOVERED: shares of parties {numbers} may be others than before: keyquorum refresh-shares; until then no backup or older folder of them may come back"
    for name in found["went_back"]:
        yield f"{who}: WENT BACK from epoch {name}, and keeps these shares: keyquorum epoch commit with the statements of all parties, before keyquorum refresh-shares"
    for line in found["contradictions"]:
        yield f"{who}: CORRUPT: {line}"
    for each in found["unerased"]:
        yield f"{who}: NOT ERASED: {each['file']}, {each['age'] / 3600:.1f} h old: keyquorum epoch erase"
    for pool in found["old_pools"]:
        yield f"{who}: NOT ERASED: the pool {pool} is of another epoch: keyquorum epoch erase"
    if found["backups_before"]:
        yield f"{who}: backups of before {found['backups_before']} hold shares of an earlier epoch: they must be gone"


def history(committee: Committee, party: int) -> list[Json]:
    """The lines of a party's journal of epochs, the oldest first: ``date``, ``epoch``, ``who``, ``state``. Raises EpochError."""
    found = []
    for line in _lines(committee, party):
        who = f"party {party}" if line["own"] else _number(committee, str(line["said"].get("who", "")))
        found.append({"party": party, "date": line["date"], "epoch": line["epoch"], "who": who, "state": line["said"]["kind"]})
    return found


def _open(committee: Committee) -> list[Change]:
    """The recent changes of every party of this host, repaired. Those that ended can be shown to others, too."""
    found = []
    for party in committee.local_parties():
        Change.unfinished(committee, party)
        found += Change.recent(committee, party)
    if not found:
        raise EpochError(f"{committee.folder}: no change of an epoch at the parties of this host: keyquorum epoch history has what there was")
    return found


def _hear(committee: Committee, changes: Sequence[Change], files: Sequence[Path]) -> list[EpochError]:
    """Brings statements of files, and of the parties of this host, to all of them (a party that refused one may be in a later change by now); returns what was wrong with them, since one bad statement must not keep others from being heard."""
    brought = [(str(path), path.read_bytes()) for path in files]
    errors = [error for where, data in brought for error in hear_all(changes, data, where)]
    here = [party for party in committee.parties if party.index in committee.local_parties()]
    for change in changes:
        others = [
            Change(committee, party.index, change.record)
            for party in here
            if party.fingerprint in change.record.roles.everybody | change.record.roles.absent
        ]
        errors += [error for other in others for error in hear_all([change], other.show(), "a party of this host")]
    return errors


def _carry_out(
    committee: Committee, files: Sequence[Path], output: Path | None, step: Callable[[Change], object] = lambda change: None
) -> list[Json]:
    changes, refused = _open(committee), list[tuple[Change, EpochError]]()
    shown = [*(change for party in committee.local_parties() for change in Change.passed_on(committee, party)), *changes]
    errors = _hear(committee, shown, files)
    for change in changes:
        change.advance()
        try:
            step(change)
        except EpochError as error:
            refused.append((change, error))
    errors += _hear(committee, changes, ())
    found = []
    for change in changes:
        stage = change.advance()
        found.append({"party": _number(committee, change.me), "epoch": change.record.name, "stage": stage.value})
    errors += _hear(committee, changes, ())
    if output is not None:
        write_atomically(output, show_all(shown))
    errors += [error for change, error in refused if change.standing.stage not in DECIDED]  # else it ended all the same
    if errors:
        raise errors[0]
    return found


def commit(committee: Committee, files: Sequence[Path] = (), output: Path | None = None) -> list[Json]:
    """Goes on with the changes of this host's parties as far as the rules allow. ``files``: statements of parties elsewhere, as ``output`` has them. Raises EpochError for wrong statements, after all others were heard and
    what follows from them was done; a contradiction is told once, and is in :func:`status` afterwards. Raises CommitteeError or PoolError beside a job, a daemon or a user of pools.

    A party that did not vote refuses: its process has ended, and with it what makes the new shares."""

    def step(change: Change) -> None:
        if change.standing.stage == Stage.WAITING and change.is_new:
            change.refuse()

    with orders_alone(committee, "epoch commit"):
        return _carry_out(committee, files, output, step)


def _named(committee: Committee, lost: Sequence[int | str]) -> frozenset[Who]:
    """Parties of the committee by number, and participants of open changes by 16 digits or more of their fingerprints, as :func:`status` shows those of another committee."""
    known = {who for change in _open(committee) for who in change.record.roles.everybody}
    found = set[Who]()
    for each in lost:
        if isinstance(each, int):
            found.add(committee.parties[committee.index_of(each)].fingerprint)
            continue
        meant = [who for who in known if len(each) >= 16 and who.startswith(each)]
        if len(meant) != 1:
            raise EpochError(f"--lost {each}: give the number of a party, or 16 digits or more of the fingerprint of a member of the other committee")
        found.update(meant)
    return frozenset(found)


def give_up(committee: Committee, lost: Sequence[int | str], files: Sequence[Path] = (), output: Path | None = None) -> list[Json]:
    """Freezes the parties of this host, since ``lost`` never return; once more when more are lost. When all others are frozen, the change is given up. Raises EpochError where the rules forbid it,
    and what :func:`commit` raises."""
    named = _named(committee, lost)

    def step(change: Change) -> None:
        frozen = change.standing.stage == Stage.FROZEN and not named <= change.standing.lost
        if change.me not in named and (frozen or change.standing.stage in (Stage.WAITING, Stage.VOTED)):
            change.give_up(named)

    with orders_alone(committee, "epoch give-up"):
        return _carry_out(committee, files, output, step)


def erase(committee: Committee, files: Sequence[Path] = ()) -> list[Json]:
    """Erases the old shares of the parties of this host, and drops their pools, after all new members have committed. Raises EpochError before, and what
    :func:`commit` raises, after it has erased what can be."""
    with orders_alone(committee, "epoch erase"):
        return _erase(committee, files)


def _erase(committee: Committee, files: Sequence[Path]) -> list[Json]:
    changes = _open(committee)
    errors: list[KeyQuorumError] = [*_hear(committee, changes, files)]
    for change in changes:
        change.advance()
    errors += _hear(committee, changes, ())
    ended = [change for change in changes if change.standing.stage not in BACK]
    found = []
    for change in ended or changes:
        party = next(p.index for p in committee.parties if p.fingerprint == change.me)
        try:
            change.check_erasable()
            drop_pools(committee, party, leaves=change.leaves)
            found.append({"party": _number(committee, change.me), "epoch": change.record.name, "bytes": change.erase()})
        except (EpochError, PoolError) as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return found


def examine_epochs(committee: Committee, parties: Sequence[int]) -> Iterator[Finding]:
    """For ``keyquorum doctor``: the epoch of every party, unfinished changes, and shares that are not erased."""
    seen: dict[str, int] = {}
    for party in parties:
        try:
            found = status(committee, party)
        except (KeyQuorumError, OSError) as error:
            yield Finding(False, f"party {party}: {error}")
            continue
        first, *rest = status_lines(found)
        yield Finding(True, first)
        good = [line for line in rest if "moved:" in line or "STANDBY" in line]
        yield from (Finding(True, line) for line in (*good, *origin_lines(committee, party)))
        yield from (
            Finding(False, line)
            for line in rest
            if any(word in line for word in ("UNFINISHED", "ABSENT", "UNTESTED", "RECOVERED", "WENT BACK", "NOT ERASED", "CORRUPT"))
        )
        if without := unaudited(committee.party_folder(party)):
            yield Finding(
                False,
                f"party {party}: {without} states of its epochs have no line in its audit log: make room or see its mode, then keyquorum epoch commit",
            )
        other = seen.setdefault(found["epoch"], party)
        if len(seen) > 1 and other == party:
            yield Finding(
                False,
                f"party {party}: its epoch is not that of party {next(iter(seen.values()))}: it was restored or missed a change: keyquorum epoch commit, or keyquorum recover if it was absent",
            )
