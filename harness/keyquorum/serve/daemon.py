"""One party of a served committee: it has its key shares and its pool, keeps the session open, and serves batch by batch.

What is served depends on the key (:mod:`.kinds`): decryptions, or evaluations of a function of the key.

A cycle: party 0 sends a plan, with the requests that it would serve, or the items to make, or nothing (a heartbeat). While items are made there are cycles too (:mod:`.filling`). All members
broadcast which of these requests they have and admit. The requests that all have are one batch. Every member answers its receiver with its own shares
of the results. When the session breaks, the requests of the running batch are refused, and the parties connect again. Items that may have
been used are given up when the parties next agree on the state of the pool.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict

import keyquorum
from keyquorum._engine import CheckError, EngineError, Session, StoreError, UsageError
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, place_text, write_atomically
from keyquorum.model.errors import (
    EpochError,
    KeyInUseError,
    KeyQuorumError,
    MovedError,
    ParameterError,
    PartyError,
    PolicyError,
    PoolLost,
    PoolTooSmall,
    PoolUnwritable,
)
from keyquorum.model.plain import Json
from keyquorum.parties import mac_key
from keyquorum.parties.audit.chain import Signer
from keyquorum.parties.audit.log import NAME as AUDIT_LOG
from keyquorum.parties.audit.log import AuditLog
from keyquorum.parties.context import PartyContext
from keyquorum.parties.queue import job_lock
from keyquorum.parties.traces import forbid_core_dumps, sweep
from keyquorum.parties.worker import collect_garbage_less, open_session, reason_of
from keyquorum.plans.epochs.origins import require_correct
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool, parties_option, pool_name
from keyquorum.sharing.group import RoundingGroup

from .admission import Receivers
from .connection import Connection, EpochChanging, NotConnected
from .filling import Filling, agreed_pool
from .kinds import Own, ServedKind, Service, open_kind
from .kinds.base import DEFAULTS, Asked
from .lending import Lending, Lent
from .limits import NAME as LIMITS
from .limits import Meter, read_limits
from .listener import Listener
from .mac_gauges import mac_key_gauges
from .metrics import Metrics
from .moved import MovedParty
from .plan import PLAN_LIMIT, Plan, read_plan
from .requests import Answer, Request, Requests
from .sessions import BrokenSessions, record_of
from .signals import Signals
from .snapshot import Snapshot, SnapshotCollector

LONGEST_PATIENCE = 86400.0
UNBOUNDED = 1 << 62
"""Items that are left where nothing is taken from a pool."""
CONNECT_SECONDS = 5.0
"""Longest wait for the other parties of a session."""
LEAVE_SECONDS = 2.0
"""How long a member that wants to lend its shares leaves it to party 0 to end the session, at whom a job waits as well. After that it breaks off, perhaps in the batch of another member."""
LOOK_SECONDS = 0.5
"""Pause between two looks at the lock while a member waits for a plan: party 0 may be frozen, or send none."""
TICK = 0.5
"""Seconds after which party 0 sends a heartbeat."""
DEFERRED_SECONDS = 2.0
"""Seconds for which a request that a member lacks is proposed again."""
FIRST_SECONDS, PAUSE = 0.1, 0.02
"""Longest wait of a batch for requests that are proposed for the first time, of receivers without a deferred one; and the time to the next proposal
where there are deferred requests alone."""
REFUSED, HERE, MISSING = range(3)
"""What a member says of a proposed request."""


class Daemon:
    """One party. ``prepare``: is called once no other process serves for the party, before the key is loaded."""

    def __init__(
        self, committee: Committee, party: int, service: Service, own: Own = DEFAULTS, log: Callable[[str], None] = lambda line: None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        mac_key.check_party(committee, party)
        sweep(committee.party_folder(party))
        self.committee, self.party, self.service, self._log = committee, party, service, log
        self._number = committee.number_of(party)
        """Of this party, for people and files: a subset numbers its members from 0."""
        self._audit_path = own.audit or committee.party_folder(party) / AUDIT_LOG
        self.lending = Lending(committee, party, service.key, log)
        self._waits_for = ""
        self.connection = Connection(lambda index: self.committee.number_of(index))
        self._running: list[str] = []
        """Keys of the requests of the batch that runs."""
        self._record: BrokenSessions | None = None
        """Of sessions that broke off, where every session is another try for who cheats; with MACs of challenges that were cut off."""
        self._plan = _over()
        """The next plan, or the last one. Its session is in use while it is waited for."""
        self._busy = False
        """Whether the session does more than to wait for a plan."""
        self._pool_lost = False
        """Whether the last session ended since this party's pool cannot be used."""
        self._deferred: dict[str, float] = {}
        """Requests that a member lacked when they were last proposed, with the time of the first proposal."""
        receivers = Receivers(committee.identity_path(party), committee.party_folder(party) / "receivers", log)
        self.lending.begin()
        try:
            self._record = record_of(committee, party)
            prepare()
            self._open(receivers, own)
        except BaseException:
            self.lending.release()
            raise

    def _open(self, receivers: Receivers, own: Own) -> None:
        """Loads the key, opens the ports and writes the addresses that receivers read. The caller holds the lock on serving for this party."""
        committee, party, service = self.committee, self.party, self.service
        self.served_key: ServedKind = self._opened_kind()
        self._accept_assumed = own.accept_assumed
        self._say_origin()
        self._most = (service.batch or self.served_key.batch) * self.served_key.unit
        if not (0 <= service.chunk <= 1 << 20 and service.keep >= 0 and service.batch >= 0):
            raise ParameterError(
                f"keep {service.keep}, chunk {service.chunk}, batch {service.batch}: none negative, and chunks of 1 to 2^20 items, or 0"
            )
        if not 0 < service.patience <= LONGEST_PATIENCE:
            raise ParameterError(f"a patience of {service.patience:g} s: choose more than 0 and at most {LONGEST_PATIENCE:g}")
        if service.keep and self.served_key.variant is None:
            raise ParameterError(f"key {service.key} takes nothing from a pool this way: leave out --keep, or name another --method")
        if 0 < service.keep < self.served_key.unit:
            raise ParameterError(
                f"a pool of {service.keep} items serves no request, a ciphertext takes {self.served_key.unit}: keep at least so many"
            )
        self._stop = threading.Event()
        self.requests = Requests(service.patience, self._admit)
        self._receivers, self._meter = receivers, Meter(read_limits(committee.party_folder(party) / LIMITS))
        self.metrics = Metrics(own.ports[1], own.metrics_host, self._not_ready)
        variant = self.served_key.variant
        item_bytes = 1 if variant is None else 8 * sum(section.rows * section.words for section in variant.sections)
        self._filling = Filling(service, self._log, self.metrics, item_bytes)
        self.audit = AuditLog(
            self._audit_path,
            self._audited(),
            self._log,
            Signer(committee.identity_path(party)),
        )
        self.listener = Listener(receivers, own.host, own.ports[0], self.served_key, self.requests, self.metrics.request, self.audit)
        labels = {"party": str(self._number), "key": service.key, "key_id": self.served_key.key_id, "version": keyquorum.__version__}
        self.metrics.registry.register(SnapshotCollector(self.snapshot, labels))
        key = mac_key.kept(committee, party)
        if key is not None:
            mac_key_gauges(self.metrics.registry, key)
            self._log(f"{mac_key.state(key)}; {mac_key.WARNING}")
        addresses = {"host": own.host, "port": self.listener.port, "metrics": self.metrics.port, **self._other_addresses()}
        write_atomically(committee.party_folder(party) / "serve.json", json.dumps(addresses).encode() + b"\n")

    def _say_origin(self) -> None:
        """Logs what the committees before this one promise for the key. Raises KeyFileError for a key that is not served so."""
        origin = require_correct(self.committee.whole, self._number, self.service.key, self._accept_assumed)
        if origin:
            self._log(origin)

    def _audited(self) -> Json:
        """Fields of every line of the audit log."""
        return {"party": self._number, "key_id": self.served_key.key_id, **self.served_key.audited}

    def _reopen(self) -> None:
        """Loads the shares again, after the lock was lent: the party may be in another epoch. Raises MovedError if the key was passed on, and EpochError for another key."""
        kind, before = self._opened_kind(), self.served_key
        if kind.key_id != before.key_id:
            kind.close()
            raise EpochError(f"key {self.service.key} is another one now: start keyquorum serve again")
        self.served_key = kind
        before.close()
        self._say_origin()
        self.listener.serves(kind)
        self.audit.describe(self._audited())
        self.lending.stale = False
        self._log("serves again" + (f", in epoch {kind.epoch}" if kind.epoch != before.epoch else ""))

    def _opened_kind(self) -> ServedKind:
        """What is served, with this party's shares. A daemon that serves with parties that change has others for each session."""
        return open_kind(self.committee, self.party, self.service)

    def _other_addresses(self) -> Json:
        """What ``serve.json`` has besides."""
        return {}

    def _job(self) -> Json:
        """All on which the parties of a session agree, beside the committee."""
        return {"kind": "serve", **asdict(self.service), "key_id": self.served_key.key_id, **self.served_key.compared}

    def _interrupted(self, reason: str) -> PartyError:
        """The answer to the requests of a batch that was interrupted."""
        return PartyError(f"the batch was interrupted ({reason}): send the request again")

    def _answer(self, body: bytes) -> Answer:
        """An answer of this party."""
        return Answer(body)

    def _admit(self, asked: Asked) -> None:
        """Refuses a request when it comes. Raises KeyQuorumError."""
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
        self.served_key.admit(asked)
        receiver = _receiver(asked[0])
        self._meter.take(receiver, self._receivers.name(receiver), asked[1].count, self.requests.waiting_of(receiver))

    def stop(self) -> None:
        """Makes the daemon end after the batch that runs. Requests that wait, or come, are refused. From any thread."""
        self.requests.close(self._stopping(), list(self._running))
        self._stop.set()

    def snapshot(self) -> Snapshot:
        """The state that the metrics show. From any thread."""
        away, now, ages = self.connection.away(), time.time(), self.requests.ages()
        others = (self.committee.number_of(index) for index in range(self.committee.size) if index != self.party)
        receivers, skipped = self._receivers.counts
        return Snapshot(
            {party: max(0.0, now - away.get(party, now)) for party in others}, len(ages), max(ages, default=0.0), self.audit.writable, receivers, skipped,
            None if self._record is None else self._record.count, self.served_key.left(),
        )  # fmt: skip

    def _not_ready(self) -> str:
        """Why no request is answered now; empty while they are."""
        if self._stop.is_set():
            return str(self._stopping())
        if not self.connection.connected:
            return str(self._refusal() or "the parties are not connected yet")
        return "" if self.audit.writable else "the audit log cannot be written"

    def _stopping(self) -> NotConnected:
        return NotConnected(f"party {self._number} is stopping: send the request again when it is back")

    def reload(self) -> None:
        """Reads the receivers and their limits again. What cannot be read stays as it is, with a line in the log. From any thread."""
        try:
            self._meter.replace(read_limits(self.committee.party_folder(self.party) / LIMITS))
            self._receivers.reload()
        except (KeyQuorumError, OSError) as error:
            self._log(f"not reloaded: {error}")
        else:
            self._log(f"reloaded the limits and {self._receivers.counts[0]} receivers")

    def run(self) -> None:
        """Serves until stopped. Connects again, with a line in the log, when a party is gone, broke the protocol, or was started with other options
        or another key, or while the disk takes nothing. Raises errors that do not pass: an epoch that is not of the loaded shares, a pool that is not safe to use (where none is kept, else it is made anew), or a damaged file. Where products are verified also a failed check, and the last session that may
        break off (:data:`.MOST_SESSIONS`): every session is another try for who cheats. The party does not start again then until its operator removes the record."""
        try:
            while not self._stop.is_set():
                try:
                    self.lending.lend(self._stop, self.served_key.close, self._refuse_waiting)
                    if self._stop.is_set():
                        break
                    if self.lending.stale:
                        self._reopen()
                    self._session()
                except (StoreError, UsageError):
                    raise
                except (EngineError, PartyError, OSError, PoolLost, PoolUnwritable) as error:
                    self._pool_lost = isinstance(error, PoolLost)
                    if self._pool_lost and not self.service.keep:
                        raise
                    if self._record is not None and self._record.ends(error):
                        self._log(
                            f"stopped: {error}: find out which party cheats, or breaks off, and remove {self._record.path} before you start again"
                        )
                        raise
                    if self._stop.is_set():
                        break
                    self._log(f"not connected: {error}; connecting again")
                    self.connection.down(str(error))
                    self._refuse_waiting()
                    self._stop.wait(0.2)
        finally:
            self.requests.close(self._stopping())
            self.listener.close()
            self.metrics.close()
            self.audit.close()
            self.served_key.close()
            # A receiver must not take a port that another program may get next for that of the party. A killed party leaves the file behind.
            with suppress(OSError):
                (self.committee.party_folder(self.party) / "serve.json").unlink()
            if self._record is not None:
                self._record.close()
            self.lending.release()

    def _connect(self, job: Json) -> Session | None:
        """A session, connected while no other job runs at this party; None if one does, or if the daemon was stopped."""
        lock = job_lock(self.committee, self.party, f"the connecting of keyquorum serve, key {self.service.key}")
        if self.committee.party_folder(self.party).is_dir() and not lock.take():
            holder = lock.holder()
            if holder != self._waits_for:
                self._waits_for = holder
                self._log(f"not connected: waits for {holder}")
            self.connection.down(f"party {self._number} waits for {holder}")
            return None
        self._waits_for = ""
        try:
            self.served_key.require_epoch()
            self.connection.begins()
            return open_session(self.committee, self.party, job, CONNECT_SECONDS, self._message_seconds(), self._while_connecting)
        finally:
            lock.release()

    def _message_seconds(self) -> float:
        """Longest wait for a message of another party."""
        return max(20.0, self.service.patience)

    def _while_connecting(self, missing: list[int]) -> None:
        """Is called several times a second with the parties that are not connected yet. Ends the set-up when the party is stopped."""
        if self._stop.is_set():
            raise PartyError(f"party {self._number} was stopped")
        self.lending.require()
        self.connection.misses(missing)
        self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        """Answers the requests that wait, while the parties are not connected: late ones, and all of them once it is known that they cannot be served."""
        refusal = self._refusal()
        if refusal is None:
            self.requests.wait(0)
        else:
            self.requests.refuse_all(refusal)

    def _refusal(self) -> NotConnected | None:
        """Why requests are refused now."""
        if self.lending.lent:
            return EpochChanging(f"party {self._number} changes its shares: send the request again")
        return self.connection.refusal()

    # -- one session --------------------------------------------------------------------------------------------------

    def _session(self) -> None:
        """Connects and serves until the session breaks (EngineError), or the daemon is stopped."""
        mac_key.check_party(self.committee, self.party)
        if self._record is not None:
            self._record.claim()
        session = self._connect(self._job())
        if session is None:
            self._refuse_waiting()
            self._stop.wait(0.2)
            return
        self._busy = True
        context = PartyContext(session, self.committee)
        pool: Pool | None = None
        running, self._plan = list[str](), _over()
        self._running = running
        try:
            self._use_mac_key(session)
            self.served_key.begin(context)
            group = pool_group(context)
            context.backend.open_kept(*self.served_key.sharing, self.committee.threshold)  # all parties take part here, later only those that round
            variant = self.served_key.variant
            if group.member and variant is not None:
                pool = agreed_pool(context, group, variant, self._pool_lost if self.service.keep else None, self._log, self.served_key.epoch)
                self._pool_lost = False
            self.requests.left = self._left(pool)
            self.metrics.connected.set(1)
            self.connection.up()
            self._log("connected to all parties")
            while not self._stop.is_set():
                self._cycle(context, group, pool, running)
        except BaseException as error:
            self._note(error)
            reason = f"party {self._number} is stopping" if isinstance(error, KeyboardInterrupt) else str(error)
            lost = self._interrupted(reason)
            for key in running:
                self.requests.answer(key, lost)
            told = reason_of(self._number, error)
            self._plan.add_done_callback(lambda _: session.abort(told))
            raise
        finally:
            self.requests.left = None
            self.metrics.connected.set(0)
            if pool is not None:
                pool.close()
            self._plan.add_done_callback(lambda _: session.close())

    def _note(self, error: BaseException) -> None:
        """Keeps the count of a session that broke off, and marks a failed check. A session that this party ends while it waits for a plan, or that party 0 ends by its plan, ends well: nothing was begun in it that has not ended."""
        if self._record is None:
            return
        if isinstance(error, CheckError):
            self._record.fail(str(error))
        elif self._busy or not (self._stop.is_set() or isinstance(error, KeyboardInterrupt | Lent) or self.lending.wanted()):
            self._record.broke_off(str(error))

    def _use_mac_key(self, session: Session) -> None:
        """Sets the MAC key of a session, which has it until it ends. Raises PartyError while another job of the party has it."""
        try:
            mac_key.use_kept(session, self.committee, self.party)
        except KeyInUseError as error:
            raise PartyError(str(error)) from None

    def _propose(self, pool: Pool | None, filling: bool) -> Plan:
        """The next plan of party 0: as many requests as the pool and a batch allow, in their order. It fills the pool if there is no request that is proposed for the
        first time, and if one needs more items than there are: a receiver that asks some parties alone, or often, must not keep the pool from being filled.
        ``filling``: whether items are being made meanwhile; then it neither waits nor has more made."""
        left, size, short = self._left(pool), 0, 0
        reach, due = self._filling.reach(left), pool is not None and not filling and self._filling.due(left)
        chosen: list[tuple[str, str]] = []
        refused: list[tuple[str, int, int]] = []
        waiting = self.requests.wait(0.0 if due or filling else TICK)
        again = [request for request in waiting if request.key in self._deferred]
        if again and len(again) == len(waiting) and not filling:
            time.sleep(PAUSE)
        for request in sorted(waiting, key=lambda request: request.key in self._deferred):
            count = request.parsed.count
            if count > reach:
                refused.append((request.key, count, left))
            elif count > left:
                short = min(short or count, count - left)
            elif size + count <= left and (not chosen or size + count <= self._most):
                chosen.append((request.key, request.parsed.digest))
                size += count
        first = any(key not in self._deferred for key, _ in chosen)
        items = self._filling.chunk_items(short) if due and (short or not first) else 0
        before = time.monotonic() - DEFERRED_SECONDS
        return Plan(items, chosen, refused, [key for key, _ in chosen if self._deferred.get(key, before) < before], self._filling.slice_items)

    def _left(self, pool: Pool | None) -> int:
        """Items that may be served: those of the pool, or any number where nothing is taken from one."""
        if self.served_key.variant is None:
            return UNBOUNDED
        return 0 if pool is None else pool.left

    def _cycle(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, running: list[str], filling: bool = False) -> None:
        """See the module. ``filling``: whether this is a cycle while items are made."""
        self._busy = filling
        if self.party:
            self.lending.require(LEAVE_SECONDS)
        plan = self._planned(context.session, pool, filling)
        if plan.ends:
            context.session.all_gather(b"")  # all members have ended their last batch
            raise Lent(f"party {self.committee.number_of(0)} changes its shares")
        self._busy, self._filling.slice = filling or bool(plan.fill or plan.decrypt), plan.slice
        if group.member:  # the other parties get no requests
            self._refused(plan)
        wanted = plan.decrypt
        if wanted:
            running[:] = [key for key, _ in wanted]
            self._batch(context, group, pool, self._common(context, group, plan))
            running.clear()
        if plan.fill and pool is not None:
            self._filling.run(pool, plan.fill, lambda: self._cycle(context, group, pool, running, True))
        self.requests.left = self._left(pool)
        self.metrics.items.set(0 if pool is None else pool.left)

    def _refused(self, plan: Plan) -> None:
        """Refuses the requests for which the pool is too small."""
        for key, count, left in plan.refuse:
            self.requests.refuse(key, self._too_small(count, left))

    def _planned(self, session: Session, pool: Pool | None, filling: bool) -> Plan:
        """The plan of this cycle: party 0 makes it and sends it to the others."""
        if self.party == 0:
            plan = Plan(0, [], [], ends=True) if self.lending.wanted() else self._propose(pool, filling)
            data = plan.to_bytes()
            for other in range(1, session.parties):
                session.send(other, data)
            return plan
        plan = read_plan(self._received(session), self._filling.most)
        self.requests.wait(0)  # late ones are answered
        if plan.fill and pool is not None and (filling or pool.left >= self.service.keep + self._filling.most):
            raise PartyError(f"party 0 would fill a pool that has {pool.left:,} items, --keep is {self.service.keep:,}: see what runs there")
        return plan

    def _received(self, session: Session) -> bytes:
        """The next message of party 0. Raises :class:`.Lent` if a job wants the lock meanwhile: the session ends when the message has come, or comes too late."""
        self._plan = plan = Future[bytes]()

        def receive() -> None:
            try:
                plan.set_result(session.recv(0, PLAN_LIMIT))
            except BaseException as error:
                plan.set_exception(error)

        threading.Thread(target=receive, daemon=True).start()
        while not wait([plan], LOOK_SECONDS).done:
            self.lending.require(LEAVE_SECONDS)
        return plan.result()

    def _too_small(self, count: int, left: int) -> KeyQuorumError:
        cure = f"{self.served_key.fill_command}{parties_option(self.committee)}, or serve with a larger --keep"
        if self._filling.trouble:
            cure = f"which cannot grow: {self._filling.trouble}"
        return PoolTooSmall(f"{self._pool_name}: needs {count:,} items, has {left:,}: fill the pool ({cure})")

    def _common(self, context: PartyContext, group: RoundingGroup, plan: Plan) -> list[Request | str]:
        """The requests that every member has (their keys, at a party that does not round). Those that a member refuses are refused at all. One that a
        member lacks waits for the next cycles, or is refused if this was the last: a receiver that asks some parties alone must not delay others."""
        until, late = time.monotonic() + FIRST_SECONDS, {_receiver(key) for key in self._deferred}
        have: list[Request | None] = []
        said = bytearray()
        for key, digest in plan.decrypt:
            patience = 0.0 if _receiver(key) in late else max(0.0, until - time.monotonic())
            request = self.requests.get(key, patience) if group.member else None
            same = request is not None and request.parsed.digest == digest
            said.append(HERE if same or not group.member else MISSING if request is None else REFUSED)
            have.append(request if same else None)
        refused: list[KeyQuorumError | None] = [None] * len(have)
        if group.member:
            refused = self.served_key.vouch(context, [None if h is None else h.asked for h in have])
        for i, error in enumerate(refused):
            if error is not None:
                said[i] = REFUSED
        rows, now = context.session.all_gather(bytes(said)), time.monotonic()
        self._deferred = {key: since for key, since in self._deferred.items() if since > now - 2 * DEFERRED_SECONDS}
        common: list[Request | str] = []
        for i, (key, _) in enumerate(plan.decrypt):
            states = [row[i] if len(row) == len(plan.decrypt) else REFUSED for row in rows]
            own = refused[i]
            if own is None and REFUSED not in states and MISSING in states and key not in plan.last:
                self._deferred.setdefault(key, now)
                continue
            self._deferred.pop(key, None)
            if own is not None:
                self.requests.answer(key, own)
            elif set(states) != {HERE}:
                other = next(party for party, state in enumerate(states) if state != HERE)
                self.requests.answer(
                    key,
                    PartyError(
                        f"party {self.committee.number_of(other)} has not got this request, or another one, or refuses it: send the same to every party"
                    ),
                )
            else:
                common.append(have[i] or key)
        return common

    def _batch(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: list[Request | str]) -> None:
        if not group.member or not batch:
            return
        requests = [r for r in batch if isinstance(r, Request)]
        start = time.monotonic()
        with self.metrics.seconds.time():
            try:
                answers = self.served_key.run(context, group, pool, [r.asked for r in requests])
            except (PoolTooSmall, PolicyError) as error:  # before anything was computed: all members find the same, or lose the session
                self.metrics.batches.labels("refused").inc()
                for request in requests:
                    self.requests.answer(request.key, error)
                if isinstance(error, PolicyError):
                    raise PartyError(f"party {self._number}: {error}") from None
                return
        for request, answer in zip(requests, answers, strict=True):
            self.requests.answer(request.key, self._answer(answer))
        reached("batch/answered")
        items = sum(self.served_key.items(request.parsed) for request in requests)
        self.metrics.batches.labels("done").inc()
        getattr(self.metrics, self.served_key.counter).inc(items)
        self._log(f"{len(requests)} requests, {items} items, {1e3 * (time.monotonic() - start):.1f} ms")

    @property
    def _pool_name(self) -> str:
        variant = self.served_key.variant
        return "" if variant is None else pool_name(self.committee, variant)


def _over() -> Future[bytes]:
    """What nobody waits for."""
    plan = Future[bytes]()
    plan.set_result(b"")
    return plan


def _receiver(key: str) -> str:
    """Who sent a request."""
    return key.partition("/")[0]


def serve(
    committee: Committee,
    party: int,
    service: Service,
    own: Own = DEFAULTS,
    log: Callable[[str], None] = lambda line: None,
    prepare: Callable[[], None] = lambda: None,
) -> None:
    """Runs one party until a signal ends it (:mod:`.signals`), in the main thread."""
    run_daemon(lambda: served(committee, party, service, own, log, lambda: Daemon(committee, party, service, own, log, prepare)), own, log)


def served(
    committee: Committee, party: int, service: Service, own: Own, log: Callable[[str], None], make: Callable[[], Daemon]
) -> Daemon | MovedParty:
    """The daemon that ``make`` makes; of a committee that passed the key on, what answers requests with that. Raises MovedError where nothing shows receivers this yet."""
    try:
        return make()
    except MovedError as error:
        return MovedParty(committee.whole, committee.number_of(party), service, own, log, error)


def run_daemon(make: Callable[[], Daemon | MovedParty], own: Own, log: Callable[[str], None]) -> None:
    """The same with the daemon that ``make`` makes. ``log``: that of the daemon."""
    forbid_core_dumps()
    collect_garbage_less()
    with Signals(own.drain) as signals:
        while True:
            daemon = make()
            address = f"{place_text(own.host, daemon.listener.port)}, metrics at 127.0.0.1:{daemon.metrics.port}"
            log(f"serves key {daemon.service.key} to receivers at {address}, audit log {daemon.audit.path}")
            signals.go(daemon.stop, daemon.reload)
            try:
                with suppress(KeyboardInterrupt):
                    daemon.run()
                return
            except MovedError as error:  # while the party served: from now on it says so
                log(str(error))
