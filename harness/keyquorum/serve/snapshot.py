"""The state of a served party as gauges, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True)
class Snapshot:
    """``away``: seconds since when each other party is away, 0 while it is connected or not known to be away; ``waiting``, ``oldest``: requests that wait,
    and seconds since the first of them came; ``receivers``, ``skipped``: certificates that are admitted, and files that are none; ``broken``: sessions
    that broke off, and their limit, where products are verified; ``evaluations``: that a key of a pseudorandom
    function may still serve, where its policy has a total."""

    away: dict[int, float]
    waiting: int
    oldest: float
    audit_writable: bool
    receivers: int
    skipped: int
    broken: tuple[int, int] | None = None
    evaluations: int | None = None


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"keyquorum_{name}", about, value=value)


class SnapshotCollector(Collector):
    """Gauges of a :class:`Snapshot`, which is taken for each reading. ``labels``: of the party and its key, the labels of ``keyquorum_info``."""

    def __init__(self, take: Callable[[], Snapshot], labels: dict[str, str]) -> None:
        self._take, self._labels = take, labels

    def describe(self) -> list[Metric]:
        """Nothing: the registry need not take a snapshot to know the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """See the class."""
        now = self._take()
        info = GaugeMetricFamily("keyquorum_info", "The party, its key, and the version of the software", labels=list(self._labels))
        info.add_metric(list(self._labels.values()), 1)
        yield info
        away = GaugeMetricFamily("keyquorum_party_away_seconds", "Seconds since when another party is away; 0: it is not", labels=["party"])
        for party, seconds in now.away.items():
            away.add_metric([str(party)], seconds)
        yield away
        yield _gauge("waiting_requests", "Requests that wait", now.waiting)
        yield _gauge("waiting_oldest_seconds", "Age of the oldest request that waits", now.oldest)
        yield _gauge("audit_log_writable", "0 while the audit log cannot be written, and all requests are refused", now.audit_writable)
        yield _gauge("receivers", "Receivers that are admitted", now.receivers)
        yield _gauge("receivers_skipped", "Files in the folder receivers that are not certificates", now.skipped)
        if now.broken is not None:
            yield _gauge(
                "sessions_broken", "Sessions that broke off, with MACs challenges that were cut off, since the operator has looked", now.broken[0]
            )
            yield _gauge("sessions_broken_limit", "The number of them at which the party stops", now.broken[1])
        if now.evaluations is not None:
            yield _gauge("evaluations_left", "Evaluations that the key may still serve by its policy", now.evaluations)


__all__ = ["Snapshot", "SnapshotCollector"]
