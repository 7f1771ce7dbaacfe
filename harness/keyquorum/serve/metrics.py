"""Health and counters of one party over HTTP: ``/metrics`` for Prometheus, ``/health`` of the process, and ``/ready``, 503 while it serves nobody."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import MetricsHandler

from keyquorum.model.errors import CommitteeError

READ_SECONDS = 5.0
"""Seconds that a reader may be silent."""
MOST_READERS = 16
LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
PAUSE = 0.1
"""Seconds until the next try after the system refused a connection."""


Ready = Callable[[], str]
"""Why the party serves nobody; empty while it serves."""


class _Handler(MetricsHandler):
    """``ready`` and ``registry`` are set by the server."""

    timeout = READ_SECONDS
    ready: Ready

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in ("/", "/metrics"):
            super().do_GET()
        elif path == "/health":
            self._say(200, "the process runs")
        elif path == "/ready":
            reason = type(self).ready()
            self._say(503 if reason else 200, reason or "ready")
        else:
            self._say(404, "there is /metrics, /health and /ready")

    def _say(self, status: int, text: str) -> None:
        body = text.encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    """Answers at most :data:`MOST_READERS` at a time, and goes on when the system has no descriptor or thread for one more."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, registry: CollectorRegistry, ready: Ready) -> None:
        attributes = {"registry": registry, "ready": staticmethod(ready), "timeout": READ_SECONDS}
        handler: type[BaseHTTPRequestHandler] = type("Handler", (_Handler,), attributes)
        self._room = threading.BoundedSemaphore(MOST_READERS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)

    def get_request(self) -> tuple[socket.socket, object]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(PAUSE)  # the caller tries again at once
            raise

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system has no thread left
            self._room.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing: the reader closed its connection."""


class Metrics:
    """``port`` 0: any free one; None: no endpoint. Every party has a registry of its own, so that several parties fit one process. Raises
    CommitteeError if the address cannot be listened on."""

    def __init__(self, port: int | None, host: str = "127.0.0.1", ready: Ready = lambda: "") -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.connected = Gauge("keyquorum_connected", "1 while all parties are connected", registry=self.registry)
        self.items = Gauge("keyquorum_pool_items", "Items left in the pool", registry=self.registry)
        self.growing = Gauge("keyquorum_pool_growing", "1 while the pool can grow; 0: a party has no room for more items", registry=self.registry)
        self.decryptions = Counter("keyquorum_decryptions", "Items of the pool used: LWE ciphertexts, or coefficients", registry=self.registry)
        self.evaluations = Counter("keyquorum_evaluations", "Blocks of a pseudorandom function evaluated", registry=self.registry)
        self.requests = Counter("keyquorum_requests", "Requests of receivers", ["result"], registry=self.registry)
        self.batches = Counter("keyquorum_batches", "Batches, by result", ["result"], registry=self.registry)
        self.seconds = Histogram("keyquorum_batch_seconds", "Duration of batches", registry=self.registry)
        self.refusals = Counter("keyquorum_refusals", "Refused requests, by type of the error", ["reason"], registry=self.registry)
        self.latency = Histogram(
            "keyquorum_request_seconds",
            "From the last byte of a request to its answer, of answered requests",
            registry=self.registry,
            buckets=LATENCIES,
        )
        self.filling = Gauge("keyquorum_filling", "1 while items are made for the pool", registry=self.registry)
        self.filled = Counter("keyquorum_filled_items", "Items made for the pool since the start", registry=self.registry)
        self.fill_seconds = Counter(
            "keyquorum_fill_seconds", "Seconds spent on them, without requests that were served meanwhile", registry=self.registry
        )
        self.port = 0
        self._server: _Server | None = None
        if port is not None:
            try:
                self._server = _Server(host, port, self.registry, ready)
            except (OSError, OverflowError, UnicodeError) as error:
                raise CommitteeError(f"metrics at {host}:{port}: {error}: choose another --metrics-host or --metrics-port") from None
            self.port = int(self._server.server_address[1])
            threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def request(self, result: str, seconds: float) -> None:
        """Counts a request: ``result`` is ``answered``, or the type of the error."""
        if result == "answered":
            self.latency.observe(seconds)
        else:
            self.refusals.labels(result).inc()
        self.requests.labels("answered" if result == "answered" else "refused").inc()

    def close(self) -> None:
        """Ends the endpoint."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
