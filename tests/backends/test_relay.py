"""The relay that shapes MP-SPDZ's connections: delay, bandwidth, ends of streams, and who connects to whom."""

from __future__ import annotations

import socket
import statistics
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyquorum.backends.mpspdz.relay import BURST_BYTES, Bucket, Echo, Relay, Relays, own_delay, round_trip
from keyquorum.model.links import Link, parse


@given(st.lists(st.tuples(st.floats(0, 0.01), st.integers(1, 1 << 16)), min_size=1, max_size=50), st.integers(1, 1000))
def test_a_bucket_keeps_order_and_bandwidth(chunks: list[tuple[float, int]], mbit: int) -> None:
    bucket, now, last, sent, rate = Bucket(0.02, mbit * 1e6), 100.0, 0.0, 0, mbit * 1e6
    for gap, size in chunks:
        now += gap
        sent += size
        due = bucket.due(size, now)
        assert due >= max(last, now + 0.02), "too early, or out of order"
        # Never more than the burst ahead of the bandwidth, counted from the first byte.
        assert 8 * (sent - BURST_BYTES) <= rate * (due - 0.02 - 100.0) + 1e-3
        last = due


def test_a_bucket_is_not_slower_than_it_says() -> None:
    bucket = Bucket(0.0, 100e6)
    due = [bucket.due(12_500, 100.0) for _ in range(1000)][-1]
    assert due - 100.0 == pytest.approx(1.0, rel=0.01)
    assert bucket.due(1000, 200.0) == 200.0, "after a pause a burst passes at once"
    assert Bucket(0.25, None).due(10**9, 1.0) == 1.25


@pytest.mark.parametrize("rtt_ms", [20, 60])
def test_the_round_trip_is_that_of_the_profile(rtt_ms: int) -> None:
    echo = Echo()
    with Relays(Link(rtt_ms), 1, {0: echo.address, 1: ("127.0.0.1", 9)}) as relays:
        measured = round_trip(relays.addresses[0], 15)
    echo.close()
    assert rtt_ms <= measured * 1e3 * 1.02 and measured * 1e3 <= rtt_ms * 1.05 + 0.5


def _receive(listener: socket.socket, sizes: list[int], times: list[float]) -> None:
    end = listener.accept()[0]
    with end:
        total = 0
        while data := end.recv(1 << 16):
            total += len(data)
            times.append(time.monotonic())
        sizes.append(total)


@pytest.mark.parametrize("mbit", [20, 100])
def test_the_bandwidth_is_that_of_the_profile_and_ends_are_passed_on(mbit: int) -> None:
    size = mbit * 1_000_000 // 8 // 2  # half a second
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sizes: list[int] = []
        times: list[float] = []
        reader = threading.Thread(target=_receive, args=(listener, sizes, times))
        reader.start()
        relay = Relay(listener.getsockname()[:2], 0.01, mbit * 1e6)
        with socket.create_connection(relay.address) as end:
            start = time.monotonic()
            end.sendall(bytes(size))
            end.shutdown(socket.SHUT_WR)
            reader.join(20)
        relay.close()
    assert sizes == [size], "bytes were lost, or the end of the stream was not passed on"
    seconds = times[-1] - start - 0.01
    assert 8 * (size - BURST_BYTES) / seconds == pytest.approx(mbit * 1e6, rel=0.05)


def test_connections_of_two_parties_share_the_bandwidth() -> None:
    echo = Echo()
    relay = Relay(echo.address, 0.0, 40e6)
    done: list[float] = []
    start = time.monotonic()

    def push() -> None:
        with socket.create_connection(relay.address) as end:
            end.sendall(bytes(1_000_000))
            end.shutdown(socket.SHUT_WR)
            while end.recv(1 << 16):
                pass
            done.append(time.monotonic() - start)

    threads = [threading.Thread(target=push) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    relay.close()
    echo.close()
    assert len(done) == 2 and max(done) >= 0.95 * 2 * 8 * (1_000_000 - BURST_BYTES) / 40e6


def test_a_target_that_starts_late_is_waited_for_and_a_dead_one_ends_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        target = probe.getsockname()[:2]
    relay = Relay(target, 0.0, None)
    with socket.create_connection(relay.address) as end:
        time.sleep(0.1)
        with socket.create_server(target) as listener:
            far = listener.accept()[0]
            end.sendall(b"hello")
            assert far.recv(5) == b"hello"
            far.close()
        end.settimeout(5)
        assert end.recv(1) == b""
    relay.close()


def test_a_party_gets_relays_to_those_that_it_connects_to() -> None:
    real = {i: ("127.0.0.1", 20_000 + i) for i in range(3)}
    for party in range(3):
        with Relays(parse("lan"), party, real, own=0.0) as relays:
            assert set(relays.addresses) == set(real)
            assert [j for j in real if relays.addresses[j] != real[j]] == list(range(party))


def test_what_a_relay_takes_by_itself_is_small() -> None:
    assert statistics.median(own_delay() for _ in range(3)) < 0.02
