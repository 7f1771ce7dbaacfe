"""The embedded engine: programs run in this process, as one party of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from keyquorum._engine import Session
from keyquorum.dsl import KeptEngine, ProgramIO, ShareVector, run_program
from keyquorum.model.errors import ProgramError
from keyquorum.model.resources import program_path
from keyquorum.programs import Call
from keyquorum.programs.header import header

from .base import ONCE, Backend, Ints, Mode, ProgramOutput

NO_WORDS: Ints = np.empty(0, dtype=np.int64)


class Embedded(Backend):
    """The embedded engine over a session."""

    name = "embedded"
    takes_joint_integers = True

    def __init__(self, session: Session, of: Embedded | None = None) -> None:
        self.session = session
        # Programs among some of the parties count for all.
        self._offline: Counter[str] = Counter() if of is None else of._offline
        self._unused: Counter[str] = Counter() if of is None else of._unused
        self._kept: dict[tuple[str, str, int | None], KeptEngine] = {}

    def run(
        self,
        protocol: str,
        domain: str,
        call: Call,
        *,
        private: Ints | None = None,
        public: Sequence[Ints] = (),
        shares: ShareVector | None = None,
        mode: Mode = ONCE,
    ) -> ProgramOutput:
        """See :meth:`Backend.run`."""
        words, path = call.words, program_path(call.program)
        inputs, shares = NO_WORDS if private is None else private, ShareVector() if shares is None else shares
        which, kept = (protocol, domain, mode.threshold), None
        if mode.keep and mode.seed is None:
            # Removed while it is used: an engine on which a program failed is not used again.
            self.open_kept(*which)
            kept = self._kept.pop(which)
        engine = (
            kept.engine if kept is not None else self.session.engine(protocol, domain, " ".join([call.program, *words]), mode.threshold, mode.seed)
        )
        if mode.purpose:
            engine.bind_context(mode.purpose)
        if mode.masks is not None:
            if header(call.program).value("checks") != "deferred":
                raise ProgramError(
                    f"{call.program}: its checks cannot be deferred: a header with `checks: deferred` says that all it opens is under one-time masks"
                )
            shares.check(engine, 0, 0)
            engine.defer_checks(True)
            mode.masks.give(engine)
        if kept is None:
            io = ProgramIO(private_inputs=inputs, public_inputs=list(public), shares=shares)
            run_program(engine, path, words, io)
            outputs = io.file_outputs
        else:
            outputs = kept.outputs(path, words, inputs, public, shares)
        if mode.masks is not None:
            engine.defer_checks(False)  # nothing is returned before all is verified
        spent, unused = engine.spent()
        if kept is not None:
            self._kept[which] = kept
        if spent["offline_rounds"] or spent["offline_microseconds"]:
            self._offline.update({name: value for name, value in spent.items() if value and name.startswith("offline_")})
        if unused:
            self._unused.update(unused)
        opened = np.concatenate(outputs) if len(outputs) > 1 else outputs[0] if outputs else NO_WORDS
        return ProgramOutput(opened, spent, unused)

    def open_kept(self, protocol: str, domain: str, threshold: int | None = None) -> None:
        """Opens the engine for runs with ``keep``: one exchange among all parties. Later runs without messages need no other party."""
        which = (protocol, domain, threshold)
        if which not in self._kept:
            self._kept[which] = KeptEngine(self.session.engine(protocol, domain, "programs one after another", threshold, None))

    def among(self, members: Sequence[int]) -> Backend:
        """See :meth:`Backend.among`."""
        return Embedded(self.session.subgroup(list(members)), self)

    def ring_bits(self, least: int) -> int:
        """``least``: the engine has every ring of up to 64 bits."""
        return least

    def stats(self) -> dict[str, int]:
        """The session's counters."""
        counters: dict[str, int] = self.session.stats()
        return {**counters, **self._offline}

    def unused(self) -> dict[str, int]:
        """See :meth:`Backend.unused`."""
        return dict(self._unused)

    def close(self) -> None:
        """Does nothing: the backend has no files."""
