"""Health and counters of one party, for Prometheus, on a local address."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server


class Metrics:
    """``port`` 0: none is opened. Every party has a registry of its own, so that several fit one process."""

    def __init__(self, port: int | None) -> None:
        self.registry = CollectorRegistry()
        self.connected = Gauge("keyquorum_connected", "1 while all parties are connected", registry=self.registry)
        self.items = Gauge("keyquorum_pool_items", "Items left in the pool", registry=self.registry)
        self.decryptions = Counter("keyquorum_decryptions", "Items of the pool used: LWE ciphertexts, or coefficients", registry=self.registry)
        self.requests = Counter("keyquorum_requests", "Requests of receivers", ["result"], registry=self.registry)
        self.batches = Counter("keyquorum_batches", "Batches, by result", ["result"], registry=self.registry)
        self.seconds = Histogram("keyquorum_batch_seconds", "Duration of batches", registry=self.registry)
        self.port = 0
        self._server = None
        if port is not None:
            self._server, _ = start_http_server(port, addr="127.0.0.1", registry=self.registry)
            self.port = int(self._server.server_address[1])

    def close(self) -> None:
        """Ends the endpoint."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
