"""A live party whose committee has passed its keys on. It goes on with that change as long as it does not know how it ended at all others, or has yet to erase its shares, and answers others that ask for it."""

from __future__ import annotations

from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, MovedError
from keyquorum.model.plain import Json
from keyquorum.parties.epochs import read_epoch

from ..connection import EpochChanging
from ..kinds import Own, Service
from ..moved import MovedParty, Say
from .choice import NO_OFFER, Statement
from .keeper import Keeper
from .options import LiveOwn, check_live
from .presence import Answering, Presence, local_places


class LiveMovedParty(MovedParty):
    """See :class:`.MovedParty`. Until it knows what proves the move, requests are refused, and may come again."""

    def __init__(self, committee: Committee, party: int, service: Service, own: Own, log: Say, error: MovedError, live: LiveOwn) -> None:
        self._keeper, self._live = Keeper(committee, party, log), live
        nothing, needed = Statement(party, NO_OFFER), check_live(committee)
        self._answering = Answering(committee.identity_path(party), live.host, live.port, lambda: nothing, self._keeper.shown)
        self._presence = Presence(committee, party, lambda: live.places or local_places(committee), needed, self._keeper.name, self._keeper.hear)
        try:
            super().__init__(committee, party, service, own, log, error)
        except BaseException:
            self._end_presence()
            raise

    def _end_presence(self) -> None:
        self._presence.close()
        self._answering.close()

    def _found(self, error: MovedError) -> KeyQuorumError:
        try:
            return super()._found(error)
        except MovedError:
            return EpochChanging(
                f"party {self._party}: the keys are being passed on to another committee, and not all of its members have said so here: send the request again"
            )

    def _addresses(self) -> Json:
        return {"live_host": self._live.host, "live": self._answering.port}

    def _step(self) -> None:
        self._keeper.step(read_epoch(self._folder).name)
        super()._step()

    def run(self) -> None:
        """See :class:`.MovedParty`."""
        try:
            super().run()
        finally:
            self._end_presence()


__all__ = ["LiveMovedParty"]
