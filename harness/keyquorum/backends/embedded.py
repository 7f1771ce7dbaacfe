"""The embedded engine: programs run in this process, as one party of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from keyquorum.dsl import Cost, KeptEngine, Persistence, ProgramIO, run_program
from keyquorum.model.resources import program_path

from .base import Backend, Ints, ProgramOutput


def run(
    session: Any,
    protocol: str,
    domain: str,
    program: str,
    args: Sequence[object],
    *,
    threshold: int | None = None,
    private: Ints | None = None,
    public: Sequence[Ints] = (),
    persistence: Persistence | None = None,
    seed: bytes | None = None,
    kept: KeptEngine | None = None,
    about: bytes = b"",
) -> ProgramOutput:
    """Runs one program with inputs and share file in memory: see :meth:`Backend.run`. ``kept``: an engine that was
    opened for programs one after another; costs are those of this run."""
    words = [str(a) for a in args]
    engine = session.engine(protocol, domain, " ".join([program, *words]), threshold, seed) if kept is None else kept.engine
    if about:
        engine.about(about)
    io = ProgramIO(
        private_inputs=np.empty(0, dtype=np.int64) if private is None else private,
        public_inputs=list(public),
        persistence=Persistence() if persistence is None else persistence,
    )
    if kept is None:
        cost = Cost(engine)
        run_program(engine, program_path(program), words, io)
    else:
        cost = kept.cost
        kept.run(program_path(program), words, io)
    outputs = io.file_outputs
    opened = outputs[0] if len(outputs) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *outputs])
    return ProgramOutput(opened, *cost.since())


class Embedded(Backend):
    """The embedded engine over a session."""

    name = "embedded"

    def __init__(self, session: Any, of: Embedded | None = None) -> None:
        self.session = session
        # Programs among some of the parties count for all.
        self._offline: Counter[str] = Counter() if of is None else of._offline
        self._unused: Counter[str] = Counter() if of is None else of._unused
        self._kept: dict[tuple[str, str, int | None], KeptEngine] = {}

    def run(
        self,
        protocol: str,
        domain: str,
        program: str,
        args: Sequence[object],
        *,
        threshold: int | None = None,
        private: Ints | None = None,
        public: Sequence[Ints] = (),
        persistence: Persistence | None = None,
        seed: bytes | None = None,
        keep: bool = False,
        about: bytes = b"",
    ) -> ProgramOutput:
        """See :meth:`Backend.run`."""
        which = (protocol, domain, threshold)
        kept = None
        if keep and seed is None:
            # Taken out while it is used: an engine on which a program failed is not used again.
            self.open_kept(protocol, domain, threshold)
            kept = self._kept.pop(which)
        output = run(
            self.session, protocol, domain, program, args,
            threshold=threshold, private=private, public=public, persistence=persistence, seed=seed, kept=kept, about=about,
        )  # fmt: skip
        if kept is not None:
            self._kept[which] = kept
        if offline := {name: value for name, value in output.stats.items() if value and name.startswith("offline_")}:
            self._offline.update(offline)
        if output.unused:
            self._unused.update(output.unused)
        return output

    def open_kept(self, protocol: str, domain: str, threshold: int | None = None) -> None:
        """Opens the engine that runs with ``keep`` will use. One exchange among all; local programs of some parties then need no others."""
        which = (protocol, domain, threshold)
        if which not in self._kept:
            self._kept[which] = KeptEngine(self.session.engine(protocol, domain, "programs one after another", threshold, None))

    def among(self, members: Sequence[int]) -> Backend:
        """See :meth:`Backend.among`."""
        return Embedded(self.session.subgroup(list(members)), self)

    def ring_bits(self, least: int) -> int:
        """Every ring of up to 64 bits is there."""
        return least

    def stats(self) -> dict[str, int]:
        """The session's counters."""
        counters: dict[str, int] = self.session.stats()
        return {**counters, **self._offline}

    def unused(self) -> dict[str, int]:
        """See :meth:`Backend.unused`."""
        return dict(self._unused)

    def close(self) -> None:
        """Nothing is kept."""
