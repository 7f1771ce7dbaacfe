"""Health and counters of one party, for Prometheus, on a local address."""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import MetricsHandler

READ_SECONDS = 5.0
"""Seconds that a reader may be silent."""
MOST_READERS = 16
PAUSE = 0.1
"""Seconds until the next try after the system refused a connection."""


class _Server(ThreadingHTTPServer):
    """Answers at most :data:`MOST_READERS` at a time, and goes on when the system has no descriptor or thread for one more."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, registry: CollectorRegistry) -> None:
        handler: type[BaseHTTPRequestHandler] = type("Handler", (MetricsHandler.factory(registry),), {"timeout": READ_SECONDS})
        self._room = threading.BoundedSemaphore(MOST_READERS)
        super().__init__(("127.0.0.1", port), handler)

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
    """``port`` 0: any free one; None: no endpoint. Every party has a registry of its own, so that several parties fit one process."""

    def __init__(self, port: int | None) -> None:
        self.registry = CollectorRegistry()
        self.connected = Gauge("keyquorum_connected", "1 while all parties are connected", registry=self.registry)
        self.items = Gauge("keyquorum_pool_items", "Items left in the pool", registry=self.registry)
        self.growing = Gauge("keyquorum_pool_growing", "1 while the pool can grow; 0: a party has no room for more items", registry=self.registry)
        self.decryptions = Counter("keyquorum_decryptions", "Items of the pool used: LWE ciphertexts, or coefficients", registry=self.registry)
        self.evaluations = Counter("keyquorum_evaluations", "Blocks of a pseudorandom function evaluated", registry=self.registry)
        self.requests = Counter("keyquorum_requests", "Requests of receivers", ["result"], registry=self.registry)
        self.batches = Counter("keyquorum_batches", "Batches, by result", ["result"], registry=self.registry)
        self.seconds = Histogram("keyquorum_batch_seconds", "Duration of batches", registry=self.registry)
        self.port = 0
        self._server: _Server | None = None
        if port is not None:
            self._server = _Server(port, self.registry)
            self.port = int(self._server.server_address[1])
            threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Ends the endpoint."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
