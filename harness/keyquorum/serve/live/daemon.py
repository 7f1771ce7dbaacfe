"""One party of a served committee of which any t + 1 live parties decrypt.

While no session is open the party follows :func:`.choice.next_step`. A session is one of the t + 1 members of a view, as a subset of the committee has it: its own pool, its own plans, additive shares of the key from
what each member has. The lowest member makes the plans. When the session breaks, its requests are refused at once, and the receivers send them again to all parties (:mod:`.receiver`): so every try has an id of its
own, and what two sets of parties answer is never added up. A party that is in no session, while others serve, refuses requests with the numbers of those.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress

from keyquorum.model.committee import Committee
from keyquorum.model.errors import AuditError, KeyQuorumError, MovedError, ParameterError, PartyError, PoolLost, PoolUnwritable
from keyquorum.model.plain import Json
from keyquorum.model.subset import ANY, numbers_text, subset_of
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import read_epoch
from keyquorum.parties.worker import description
from keyquorum.plans.pools import Pool
from keyquorum.schemes import scheme_of
from keyquorum.schemes.base import Scheme
from keyquorum.schemes.key_folder import load_key
from keyquorum.sharing.group import RoundingGroup

from ..connection import NotConnected, ServedElsewhere
from ..daemon import Daemon
from ..kinds import Own, ServedKind, Service, open_kind
from ..kinds.base import DEFAULTS
from ..lending import Lent
from ..plan import Plan
from ..requests import Answer
from ..snapshot import Snapshot
from .choice import NO_OFFER, Join, Patience, Propose, State, Statement, View, Wait, next_step
from .keeper import Keeper
from .moved import LiveMovedParty
from .options import LiveOwn, check_live
from .presence import Answering, Presence, local_places

MESSAGE_SECONDS = 4.0
"""Longest wait for a message of another member: one that is frozen is lost then."""
STEP = 0.05
"""Pause between two steps without a session."""
SETTLE_SECONDS = 0.5
"""Pause after a session until a party proposes a view: by then it knows who is lost."""
PROPOSAL_SECONDS = 4.0
"""Time after which a proposed view in which nobody serves came to nothing."""
TAKEOVER_SECONDS = 12.0
"""Time for which the lowest live party proposes nothing, after which the next one does as well."""
STALLED_SECONDS = 30.0
"""Time without a step of the party's main work, as on a disk that does not answer, after which it says that it does not serve."""
PROVED_SECONDS = 10.0
"""Time after which members that serve count as well, if they have answered no batch before."""
FIRST_REST, LONGEST_REST = 10.0, 60.0
"""Time for which a party serves no more that could not write its pool: at first, and at most."""
UNUSABLE_SECONDS = 60.0
"""Time for which members are not proposed again whose pool is lost: then an operator may have dropped it, and filled it again."""
AUDIT_SECONDS = 1.0
"""Pause between two tries to write the audit log."""
ON_THIS_HOST = LiveOwn()


class LiveDaemon(Daemon):
    """One party, by its number in the whole committee. See the module, and :class:`.Daemon`."""

    def __init__(
        self, committee: Committee, party: int, service: Service, own: Own = DEFAULTS, log: Callable[[str], None] = lambda line: None, live: LiveOwn = ON_THIS_HOST
    ) -> None:  # fmt: skip
        self.whole, self._needed = committee, check_live(committee)
        if live.places and len(live.places) != committee.size:
            raise ParameterError(f"{len(live.places)} addresses for {committee.size} parties: name each once with --live-at, in their order")
        self._offer = NO_OFFER
        self._view: View | None = None
        """The last view that the party joined."""
        self._joining = False
        self._proposed: View | None = None
        self._proposed_at, self._up_at, self._came_up, self._failed = 0.0, 0.0, False, 0
        """When that was; since when its members serve (0: they did not yet); whether they answered a batch, or served for some time; and how many proposed views in a row came to nothing."""
        self._rest_until, self._rest_seconds = 0.0, 0.0
        """Until when the party serves no more since it could not write its pool, and for how long."""
        self._audit_at = 0.0
        """When it tried last to write an audit log that could not be written."""
        self._free_at = 0.0
        """When the last session ended."""
        self._step_at = time.monotonic()
        """When the party's main work went on last."""
        self._patience = Patience(TAKEOVER_SECONDS)
        self._patience.begin(self._step_at)
        self._serving: View | None = None
        """The view in which others serve, as they say."""
        self._lost_pools: set[tuple[int, ...]] = set()
        self._unusable: dict[tuple[int, ...], float] = {}
        """Members whose pool is lost where none is made anew, and until when this party proposes others."""
        self._me, self._live_own = party, live
        self._keeper = Keeper(committee, party, log)
        self._answering = Answering(committee.identity_path(party), live.host, live.port, self.statement, self._keeper.shown)
        self._presence = Presence(
            committee, party, lambda: live.places or local_places(committee), self._needed, self._keeper.name, self._keeper.hear
        )
        try:
            super().__init__(committee, party, service, own, log)
        except BaseException:
            self._end_presence()
            raise
        self._offer = self._offered()

    def _offered(self) -> str:
        """A digest of all on which the parties of a session must agree but the view."""
        return hashlib.sha256((description(self.whole, super()._job()) + self.whole.digest.hex()).encode()).hexdigest()

    def statement(self) -> Statement:
        """What the party does now. From any thread."""
        stalled = time.monotonic() > self._step_at + STALLED_SECONDS
        if self._offer == NO_OFFER or self._stop.is_set() or stalled or self.lending.stale or self._trouble():
            return Statement(self._me, NO_OFFER)  # it does not serve yet, or no more, or cannot
        return self._said()

    def _said(self) -> Statement:
        state = State.IDLE
        if self._joining and self._view is not None:
            state = State.SERVING if self.connection.connected else State.JOINING
        return Statement(self._me, self._offer, state, self._view, self._proposed)

    # -- hooks of the daemon --------------------------------------------------------------------------------------------

    def _opened_kind(self) -> ServedKind:
        # This one reads requests, as the members of every view do, and keeps no shares.
        if not isinstance(scheme_of(load_key(self.whole.key_folder(self._me, self.service.key))), Scheme):
            raise ParameterError(f"key {self.service.key} is one of a PRF: name the parties that evaluate, --parties 0,1")
        missing = read_epoch(self.whole.party_folder(self._me)).missing
        others = [number for number in range(self.whole.size) if number != self._me and number not in missing]
        members = subset_of(self.whole, [self._me, *others[: self._needed - 1]])
        kind = open_kind(members, members.index_of(self._me), self.service)
        kind.close()
        kind.named, kind.audited = ANY, {**kind.audited, "parties": ANY}
        kind.compared = {name: value for name, value in kind.compared.items() if name != "sharing"}
        return kind

    def _reopen(self) -> None:
        self._proposed, self._serving = None, None
        self._unusable, self._lost_pools = {}, set()
        super()._reopen()
        self._offer = self._offered()

    def _other_addresses(self) -> Json:
        return {"live_host": self._live_own.host, "live": self._answering.port}

    def _job(self) -> Json:
        job = super()._job()
        return job if self._view is None else {**job, "view": self._view.number}

    def _message_seconds(self) -> float:
        return MESSAGE_SECONDS

    def _interrupted(self, reason: str) -> PartyError:
        return NotConnected(f"the batch was interrupted ({reason}): send the request again")

    def _answer(self, body: bytes) -> Answer:
        assert self._view is not None
        self._rest_seconds = 0.0
        if self._view == self._proposed:
            self._proved()
        return Answer(body, {"view": self._view.number, "parties": list(self._view.members), "epoch": self.served_key.epoch})

    def _refusal(self) -> NotConnected | None:
        if self.lending.lent:
            return super()._refusal()
        if self._serving is not None and not self._joining:
            return _elsewhere(self._serving)
        trouble = self._trouble()
        if trouble and not self._joining:
            return NotConnected(f"party {self._me} {trouble}: send the request again")
        refusal = self.connection.refusal()
        if refusal is None:
            return None
        away = sorted(self._presence.away())
        who = f"parties {numbers_text(away)} are away" if len(away) > 1 else f"party {away[0]} is away" if away else "all parties are there"
        return NotConnected(f"no {self._needed} parties are connected: {who}: send the request again")

    def _while_connecting(self, missing: list[int]) -> None:
        self._step_at = time.monotonic()
        super()._while_connecting(missing)
        assert self._view is not None
        live = self._presence.live()
        for index in missing:
            number = self.committee.number_of(index)
            said = live.get(number)
            if (
                said is None
                or said.offer != self._offer
                or said.joined > self._view.number
                or (said.joined == self._view.number and said.state is State.IDLE)
            ):
                raise PartyError(f"party {number} does not come to view {self._view.number}")

    def _too_small(self, count: int, left: int) -> KeyQuorumError:
        error = super()._too_small(count, left)
        # Other members may have items, or room for them. All members know who has none.
        return NotConnected(f"{error}: send the request again") if self._filling.trouble and count <= self.service.keep else error

    def _not_ready(self) -> str:
        trouble = self._trouble()
        if trouble and not self._stop.is_set():
            return f"party {self._me} {trouble}"
        # A party that is not needed now is well.
        return super()._not_ready() if self._stop.is_set() or self._serving is None else ""

    def snapshot(self) -> Snapshot:
        """See :meth:`.Daemon.snapshot`."""
        now, away = time.time(), self._presence.away()
        others = (party for party in range(self.whole.size) if party != self._me)
        return Snapshot(
            {party: max(0.0, now - away.get(party, now)) for party in others}, len(self.requests.ages()), max(self.requests.ages(), default=0.0),
            self.audit.writable, *self._receivers.counts,
        )  # fmt: skip

    def run(self) -> None:
        """See :meth:`.Daemon.run`. A pool that is not safe to use does not end it: other members have other pools."""
        try:
            super().run()
        finally:
            self._end_presence()

    def _end_presence(self) -> None:
        self._presence.close()
        self._answering.close()

    # -- views --------------------------------------------------------------------------------------------------------

    def _session(self) -> None:
        """Waits for a view with this party, and serves in it until its session breaks."""
        view = self._agreed()
        if view is None:
            return
        reader = self.served_key
        self._step_at = time.monotonic()
        self._joining = True  # first: an idle party that has joined the view would seem to have left it
        self._view, self._serving = view, None
        self.committee = members = subset_of(self.whole, view.members)
        self.party = members.index_of(self._me)
        try:
            self.served_key = open_kind(members, self.party, self.service)
            try:
                self._pool_lost = view.members in self._lost_pools
                self._log(f"view {view.number}: parties {numbers_text(view.members)} serve; errors of their connections number them from 0")
                self._filling.forget()
                super()._session()
            except (PoolUnwritable, OSError) as error:
                self._rest(str(error))  # of the disk: the engine has its own errors of links
                raise
            except PoolLost as error:
                if self.service.keep:
                    raise
                self._unusable[view.members] = time.monotonic() + UNUSABLE_SECONDS
                raise PartyError(f"parties {numbers_text(view.members)} cannot serve together, others may: {error}") from None
            finally:
                if not self._pool_lost:
                    self._lost_pools.discard(view.members)
                self.served_key.close()
        finally:
            self.served_key, self._joining, self._free_at = reader, False, time.monotonic()
            self.connection.down("the session of the members ended")
            self.requests.refuse_all(self._interrupted("the session of the members ended"))

    def _agreed(self) -> View | None:
        """The next view with this party; None if the daemon was stopped, or lends its shares."""
        if self._pool_lost and self._view is not None:
            self._lost_pools.add(self._view.members)
        while not (self._stop.is_set() or self.lending.wanted()):
            if self._goes_on():
                return None
            live = self._presence.live()
            self._judge(live)
            trouble = self._trouble()
            if trouble:
                self._proposed = None
                self._try_audit()
            self._unusable = {members: until for members, until in self._unusable.items() if until > time.monotonic()}
            self._step_at = time.monotonic()
            waited = self._patience.waited(self._said(), live, self._needed, self._step_at)
            step = next_step(self._said(), live, self._needed, self._failed, self._unusable, waited)
            if trouble:
                step = Wait(step.serving if isinstance(step, Wait) else None)
            if isinstance(step, Join):
                return step.view
            if isinstance(step, Propose) and time.monotonic() > self._free_at + SETTLE_SECONDS:
                if self._proposed is not None and not self._came_up:
                    self._failed += 1
                self._proposed, self._proposed_at, self._came_up = step.view, time.monotonic(), False
                self._up_at = 0.0
            self._serving = step.serving if isinstance(step, Wait) else None
            self._refuse_waiting()
            self._stop.wait(STEP)
        return None

    def _goes_on(self) -> bool:
        """Goes on with a change of the party's epoch that no job ends. Whether the party is in another epoch than its loaded shares then: it loads those of the new one."""
        self.lending.stale = self._keeper.step(self.served_key.epoch)
        return self.lending.stale

    def _judge(self, live: dict[int, Statement]) -> None:
        """Notes whether the members of the proposed view served, and takes a view back to which nobody came."""
        if self._proposed is None or self._came_up:
            return
        if any(said.state is State.SERVING and said.view == self._proposed for said in live.values()):
            self._serves()
        elif time.monotonic() > self._proposed_at + PROPOSAL_SECONDS:
            self._proposed, self._failed = None, self._failed + 1

    def _cycle(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, running: list[str], filling: bool = False) -> None:
        self._step_at = time.monotonic()
        self._patience.begin(self._step_at)
        if self._view == self._proposed:
            self._serves()
        if self._goes_on():
            raise Lent(f"party {self._me} is in another epoch")
        if not self.audit.writable:
            raise PartyError(f"party {self._me} {self._trouble()}")
        super()._cycle(context, group, pool, running, filling)

    def _refused(self, plan: Plan) -> None:
        super()._refused(plan)
        trouble = self._filling.trouble
        if trouble and any(count <= self.service.keep for _, count, _ in plan.refuse):  # at all members
            if trouble.startswith(f"party {self._me}: "):
                self._rest(trouble)
            raise PartyError(f"the pool cannot grow: {trouble}")

    def _serves(self) -> None:
        """Notes that the members of the proposed view serve. They may break off at the first batch, so that alone does not show that they are well."""
        now = time.monotonic()
        self._up_at = self._up_at or now
        if now > self._up_at + PROVED_SECONDS:
            self._proved()

    def _proved(self) -> None:
        self._came_up, self._failed = True, 0

    # -- a party that is live and cannot serve ------------------------------------------------------------------------------

    def _trouble(self) -> str:
        """Why the party cannot serve now; empty if it can."""
        if not self.audit.writable:
            return "cannot write its audit log"
        return "cannot write its pool" if time.monotonic() < self._rest_until else ""

    def _rest(self, reason: str) -> None:
        """Serves no more for some time, so that others do."""
        self._rest_seconds = min(LONGEST_REST, 2 * self._rest_seconds or FIRST_REST)
        self._rest_until = time.monotonic() + self._rest_seconds
        self._log(f"this party serves no more for {self._rest_seconds:.0f} s, others may: {reason}")

    def _try_audit(self) -> None:
        """Tries, once in a while, whether the audit log can be written again."""
        if not self.audit.writable and time.monotonic() > self._audit_at + AUDIT_SECONDS:
            self._audit_at = time.monotonic()
            with suppress(AuditError):
                self.audit.require()


def live_served(
    committee: Committee, party: int, service: Service, own: Own, log: Callable[[str], None], live: LiveOwn
) -> LiveDaemon | LiveMovedParty:
    """One live party; of a committee that passed the key on, what answers with that and goes on with the change."""
    try:
        return LiveDaemon(committee, party, service, own, log, live)
    except MovedError as error:
        return LiveMovedParty(committee, party, service, own, log, error, live)


def _elsewhere(view: View) -> ServedElsewhere:
    return ServedElsewhere(f"parties {numbers_text(view.members)} serve now, in view {view.number}: ask all parties, and take what these answer")
