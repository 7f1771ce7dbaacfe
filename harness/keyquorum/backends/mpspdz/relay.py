"""Simulated links for MP-SPDZ's parties: a small TCP relay between a party and those that it connects to.

MP-SPDZ's party i connects to all parties j < i, once for each pair and thread. It gets addresses of its own host, where
the :class:`Relays` of party i listen. Each relay forwards bytes to the real address of party j. In either direction it delays them by half
the round trip, and limits the bandwidth. Connections between the same two parties share the bandwidth.

The transport of the embedded engine does the same at its receiving end (``Source/net/src/shape.rs``); this is for connections of MP-SPDZ.
The delay of the relay and of this host is measured first and subtracted from the round trip.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import statistics
import threading
import time
from collections.abc import Callable, Mapping

from keyquorum.model.links import Link
from keyquorum.model.listening import PASSING, PAUSE

Address = tuple[str, int]
BURST_BYTES = 15_000
"""Bytes of the token bucket, as in the transport of the embedded engine."""
LARGEST_CHUNK, SMALLEST_CHUNK = 1 << 16, 1500
IN_FLIGHT = 4096
"""Most chunks in flight in one direction of a connection; then the relay stops reading, like a full TCP window."""
PINGS = 40
CONNECT_SECONDS = 60.0


class Bucket:
    """The token bucket of one direction between two parties: computes when bytes arrive."""

    def __init__(self, delay: float, bits_per_second: float | None) -> None:
        """``delay``: seconds, one way."""
        self.delay, self._rate = delay, bits_per_second
        self._free = 0.0
        self._lock = threading.Lock()

    @property
    def chunk(self) -> int:
        """Bytes to forward at once: those of about a millisecond."""
        if self._rate is None:
            return LARGEST_CHUNK
        return int(min(LARGEST_CHUNK, max(SMALLEST_CHUNK, self._rate / 8e3)))

    def due(self, size: int, now: float) -> float:
        """The time at which the last of ``size`` bytes that are sent at ``now`` arrives. Calls are in order of time."""
        if self._rate is None:
            return now + self.delay
        with self._lock:
            self._free = max(self._free, now - 8 * BURST_BYTES / self._rate) + 8 * size / self._rate
            return max(now, self._free) + self.delay


def _pass_on(source: socket.socket, sink: socket.socket, bucket: Bucket) -> None:
    """Forwards all bytes from ``source`` to ``sink``, each chunk at its time, then the end of the stream."""
    waiting: queue.Queue[tuple[float, bytes]] = queue.Queue(IN_FLIGHT)

    def write() -> None:
        while True:
            due, data = waiting.get()
            rest = due - time.monotonic()
            if rest > 0:
                time.sleep(rest)
            try:
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
            except OSError:
                with contextlib.suppress(OSError):
                    source.shutdown(socket.SHUT_RDWR)  # the receiver is gone: close the sender's end as well
                while data and waiting.get()[1]:  # drop the rest of the stream, up to its end
                    pass
                return

    threading.Thread(target=write, daemon=True).start()
    data = b"-"
    while data:
        try:
            data = source.recv(bucket.chunk)
        except OSError:
            data = b""
        now = time.monotonic()
        waiting.put((bucket.due(len(data), now), data))


def _accept(listener: socket.socket, closed: Callable[[], bool], serve: Callable[[socket.socket], None]) -> None:
    """Runs ``serve`` in a thread for every connection, until the listener is closed. A temporary lack of resources is waited for: connections stay in
    the queue meanwhile."""
    while not closed():
        try:
            end = listener.accept()[0]
        except OSError as error:
            if closed() or error.errno not in PASSING:
                return
            time.sleep(PAUSE)
            continue
        try:
            threading.Thread(target=serve, args=(end,), daemon=True).start()
        except RuntimeError:  # the system has no thread left
            end.close()
            time.sleep(PAUSE)


class Relay:
    """Listens at ``address`` and forwards every connection to one target. Close it at the end."""

    def __init__(self, target: Address, delay: float, bits_per_second: float | None) -> None:
        self._target = target
        self._buckets = Bucket(delay, bits_per_second), Bucket(delay, bits_per_second)
        self._sockets: list[socket.socket] = []
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._listener.getsockname()[:2]
        threading.Thread(target=_accept, args=(self._listener, lambda: self._closed, self._serve), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        """Forwards one connection. Parties start in any order, so connecting to the target is tried for CONNECT_SECONDS."""
        deadline = time.monotonic() + CONNECT_SECONDS
        self._sockets.append(near)
        while not self._closed:
            try:
                far = socket.create_connection(self._target, timeout=CONNECT_SECONDS)
                break
            except OSError:
                if time.monotonic() > deadline:
                    near.close()
                    return
                time.sleep(0.02)
        else:
            near.close()
            return
        far.settimeout(None)
        self._sockets.append(far)
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_pass_on, args=(far, near, self._buckets[1]), daemon=True).start()
        _pass_on(near, far, self._buckets[0])

    def close(self) -> None:
        """Ends all connections."""
        self._closed = True
        for end in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def round_trip(address: Address, pings: int = PINGS) -> float:
    """Median round-trip time of one byte, in seconds, to a server that echoes."""
    times = []
    with socket.create_connection(address, timeout=CONNECT_SECONDS) as end:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(pings):
            start = time.perf_counter()
            end.sendall(b"?")
            end.recv(1)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


class Echo:
    """A server of this host that echoes all bytes."""

    def __init__(self) -> None:
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._listener.getsockname()[:2]
        threading.Thread(target=_accept, args=(self._listener, lambda: self._closed, self._serve), daemon=True).start()

    def _serve(self, end: socket.socket) -> None:
        with end, contextlib.suppress(OSError):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := end.recv(1 << 16):
                end.sendall(data)

    def close(self) -> None:
        """Ends the server."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def own_delay() -> float:
    """Round-trip time in seconds through a relay without delay: the part of this host in a simulated round trip."""
    echo = Echo()
    relay = Relay(echo.address, 0.0, None)
    try:
        return round_trip(relay.address)
    finally:
        relay.close()
        echo.close()


class Relays:
    """The addresses that party ``party`` gets for the others: its own relays for the parties that it connects to, and the real
    addresses of the parties that connect to it."""

    def __init__(self, link: Link, party: int, addresses: Mapping[int, Address], own: float | None = None) -> None:
        """``own``: the result of :func:`own_delay`, if known."""
        rtt, rate, _ = link.shape
        lower = [j for j in addresses if j < party]
        taken = (own_delay() if own is None else own) if lower else 0.0
        self._relays = {j: Relay(addresses[j], max(0.0, rtt - taken) / 2, rate) for j in lower}
        self.addresses: dict[int, Address] = {j: self._relays[j].address if j < party else a for j, a in addresses.items()}

    def __enter__(self) -> Relays:
        return self

    def __exit__(self, *_: object) -> None:
        for relay in self._relays.values():
            relay.close()
