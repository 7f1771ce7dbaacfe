"""A served committee, or a subset of one, whose parties are threads of this process; they speak TLS to one another and to receivers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

from keyquorum.model.committee import Committee
from keyquorum.model.subset import Subset
from keyquorum.serve.client import local_addresses
from keyquorum.serve.daemon import Daemon
from keyquorum.serve.kinds import Service


class Threads:
    """The daemons of all parties, in a ``with`` block."""

    def __init__(self, committee: Committee, service: Service) -> None:
        self.committee, self.failures = committee, list[BaseException]()
        self._daemons = [Daemon(committee, party, service) for party in range(committee.size)]
        self._threads = [threading.Thread(target=self._run, args=(daemon,), daemon=True) for daemon in self._daemons]

    def _run(self, daemon: Daemon) -> None:
        try:
            daemon.run()
        except BaseException as error:
            self.failures.append(error)

    def __enter__(self) -> Threads:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        for daemon in self._daemons:
            daemon.stop()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def addresses(self) -> list[tuple[str, int]]:
        """Where the parties serve receivers."""
        return local_addresses(self.committee)

    def renamed(self, numbers: Sequence[int]) -> Subset:
        """The same parties, as a receiver sees them that takes them for those of other numbers."""
        assert isinstance(self.committee, Subset)
        return replace(self.committee, numbers=tuple(numbers))
