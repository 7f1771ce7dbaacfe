"""A committee with MACs evaluates AES for receivers who check what they get: values, masks that serve once, and parties and receivers that cheat."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum import api
from keyquorum.cli import app
from keyquorum.model.errors import BurnedKeyError, CommitteeError, KeyQuorumError, ParameterError, PartyError
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.prf.client_masks import opened_masks
from keyquorum.schemes.prf.function import point_of
from keyquorum.schemes.prf.key import load_prf_key
from keyquorum.serve.client import Refused, RefusedByPolicy, make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.serve.kinds import toprf_macs
from keyquorum.serve.kinds.toprf_macs import MaskedToprfKind
from keyquorum.serve.wire import receive_message, send_message
from keyquorum.toprf import Toprf, toprf_keygen
from keyquorum.toprf import client as clients
from typer.testing import CliRunner

from tests.long import LONG
from tests.schemes.test_prf import reference

from .test_toprf import Served

pytestmark = pytest.mark.timeout(300)


def key_of(committee: Any) -> bytes:
    """The key of AES, from the share files of all parties: for tests alone."""
    total: Any = 0
    for party in range(committee.size):
        folder = committee.key_folder(party, "prf")
        (share,) = load_shares(folder, load_key(folder), party)
        total = total + share.words[0].reshape(-1, 2)[:, 0].copy()
    return np.packbits((total[:128] & np.uint64(1)).astype(np.uint8), bitorder="little").tobytes()


def started(folder: Path) -> Served:
    committee = api.init(folder / "committee", 2, "spdz2k")
    toprf_keygen(committee, "prf")
    identity, _ = make_receiver(committee, "web")
    made = Served(committee, key_of(committee), load_prf_key(committee.key_folder(0, "prf")).key_id, identity)
    made.set(1_000_000)
    made.start(patience=100.0)
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = started(tmp_path_factory.mktemp("macs"))
    yield made
    made.stop()
    assert not made.failures, made.failures


def asked(toprf: Toprf, bodies: list[bytes], **head: object) -> list[bytearray]:
    return toprf._channels.ask(bodies, {"key": toprf._key_id, "output": 16, **head})


def refusals(served: Served, bodies: list[bytes], **head: object) -> list[str]:
    """Why each party refuses a request: all of them are heard, where a client stops at the first refusal."""
    with served.client(output_bytes=16) as toprf:
        channels = toprf._channels
        channels._connect()
        full = {"id": secrets.token_hex(16), "key": toprf._key_id, "output": 16, **head}
        for channel, body in zip(channels._channels, bodies, strict=True):
            send_message(channel, full, body)
        answers = [receive_message(channel, 1 << 16) for channel in channels._channels]
    assert all(answer is not None and answer[0]["status"] != "ok" for answer in answers), answers
    return [answer[0]["error"] for answer in answers if answer is not None]


def test_values_are_those_of_the_key(served: Served) -> None:
    """Of both lengths, in one batch with others, and each input is counted once."""
    before = served.totals()
    with served.client(output_bytes=16) as toprf:
        assert toprf.evaluate_many([b"", b"a password"]) == [reference(served.key, data, length=16) for data in (b"", b"a password")]

    def ask(number: int) -> bool:
        length = 16 if number % 2 else 32
        with served.client(output_bytes=length) as toprf:
            return toprf.evaluate(str(number).encode()) == reference(served.key, str(number).encode(), length=length)

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(ask, range(2)))
    assert served.totals() == [total + 4 for total in before]
    kinds = [daemon.served_key for daemon, _ in served.daemons.values()]
    assert all(isinstance(kind, MaskedToprfKind) and not kind._waiting for kind in kinds)


def test_masks_serve_once_and_only_their_receiver(served: Served) -> None:
    """Two results under one pad would tell how two values differ. Who uses masks again, more of them, or those of another id is refused, and so are malformed requests."""
    with served.client(output_bytes=16) as toprf:
        name = secrets.token_hex(16)
        answers = asked(toprf, [b""] * 2, id=name, masks=2)
        known = opened_masks(served.committee, answers, 2, 1)
        point = np.frombuffer(point_of(b"x", b"", 16), np.uint8)
        bodies = [(known.masks ^ point).tobytes()] * 2
    for body, head, why in (
        ([bodies[0][:16]] * 2, {"use": name}, "no such masks"),
        (bodies, {"use": "0" * 32}, "no such masks"),
        (bodies, {"use": name, "output": 32}, "no such masks"),
        (bodies, {}, "ask for masks, and use them"),
        (bodies, {"use": name, "masks": 2}, "ask for masks, and use them"),
        (bodies, {"masks": 2}, "without a body"),
        ([b""] * 2, {"masks": 65}, "ask for those of 1 to 64"),
        ([b""] * 2, {"masks": True}, "ask for those of 1 to 64"),
        ([bodies[0][1:]] * 2, {"use": name}, "are no masked points"),
        ([b""] * 2, {"use": name}, "are no masked points"),
        ([b""] * 2, {"id": name, "masks": 1}, "counted already"),
        (bodies, {"use": "\ud800" * 8}, "has no id of 8 to 64 letters and digits"),
        (bodies, {"use": "a" * 65}, "has no id of 8 to 64 letters and digits"),
    ):
        assert all(why in said for said in refusals(served, body, **head)), (why, head)
    with served.client() as toprf:
        values = asked(toprf, bodies, use=name)
        assert values[0] == values[1] and len({(values[0][16 * i : 16 * i + 16]).hex() for i in range(2)}) == 2
        with pytest.raises(Refused, match="no such masks, or they were used"):
            asked(toprf, bodies, use=name)


def test_masks_that_wait(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests beyond what may wait are refused before they are counted, and nothing is given up for them. After some time masks are: a receiver cannot save them."""
    point = np.frombuffer(point_of(b"w", b"", 16), np.uint8)
    with served.client(output_bytes=16) as toprf:
        monkeypatch.setattr(toprf_macs, "MOST_OF_RECEIVER", 2)
        names, before = [secrets.token_hex(16) for _ in range(2)], served.totals()
        known = [opened_masks(served.committee, asked(toprf, [b""] * 2, id=name, masks=1), 1, 1) for name in names]
        assert all("masks of 2 inputs of this receiver wait: use them first, 2 may wait" in said for said in refusals(served, [b""] * 2, masks=1))
        assert served.totals() == [total + 2 for total in before]
    with served.client(output_bytes=16) as toprf:
        (value, _) = asked(toprf, [(known[0].masks ^ point).tobytes()] * 2, use=names[0])
        assert (np.frombuffer(value, np.uint8) ^ known[0].pads[0, 0]).tobytes() == Cipher(algorithms.AES(served.key), modes.ECB()).encryptor().update(
            point.tobytes()
        )
        monkeypatch.setattr(toprf_macs, "MOST_OF_RECEIVER", 1024)
        real = time.monotonic
        monkeypatch.setattr(toprf_macs.time, "monotonic", lambda: real() + toprf_macs.MASK_SECONDS)
        with pytest.raises(Refused, match="no such masks"):
            asked(toprf, [(known[1].masks ^ point).tobytes()] * 2, use=names[1])


def test_points_that_differ_are_refused(served: Served) -> None:
    """A receiver that sends two parties other points would make their shares inconsistent: a check of MACs would fail, and burn the key. They compare before."""
    with served.client(output_bytes=16) as toprf:
        name = secrets.token_hex(16)
        asked(toprf, [b""] * 2, id=name, masks=1)
    said = refusals(served, [bytes(16), bytes(15) + b"\1"], use=name)
    assert said == [f"party {other} got another request: send all parties the same" for other in (1, 0)]
    with served.client(output_bytes=16) as toprf:
        assert toprf.evaluate(b"y") == reference(served.key, b"y", length=16)


@pytest.mark.parametrize("step", ["masks", "use"])
def test_a_party_that_cheats_the_receiver(served: Served, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word of the answer with masks, and bytes of the answer with values, of each party: the receiver drops the result. Without its checks it takes a wrong value."""

    def cheated(party: int, position: int) -> bytes:
        with served.client(output_bytes=16) as toprf:
            ask = toprf._channels.ask

            def changed(bodies: Any, head: Any) -> list[bytes]:
                answers = [bytearray(answer) for answer in ask(bodies, head)]
                if step in head:
                    answers[party][position] ^= 4
                return [bytes(answer) for answer in answers]

            monkeypatch.setattr(toprf._channels, "ask", changed)
            return toprf.evaluate(b"z")

    right = reference(served.key, b"z", length=16)
    for party, position in ((0, 3), (1, 20), (1, 35), (0, 60)) if step == "masks" else ((0, 0), (1, 15)):
        with pytest.raises(PartyError, match=r"sent wrong shares of the masks|sent different values, so one of them cheats"):
            cheated(party, position)
    if step == "masks":
        real = clients.opened_masks

        def unchecked(committee: Any, answers: Any, inputs: int, blocks: int) -> Any:
            words = np.bitwise_xor.reduce([np.frombuffer(a, "<u8") for a in answers]).reshape(-1, inputs)[: 2 + 2 * blocks].T
            by_input = np.ascontiguousarray(words).view(np.uint8).reshape(inputs, 1 + blocks, 16)
            return type(real(committee, [bytes(len(answers[0]))] * 2, inputs, blocks))(by_input[:, 0], by_input[:, 1:])

        monkeypatch.setattr(clients, "opened_masks", unchecked)
        assert cheated(0, 3) != right and cheated(1, 20) != right
    else:
        monkeypatch.setattr(clients, "same_values", lambda committee, answers, size: bytes(answers[0]))
        assert cheated(0, 0) != right


def test_commands(served: Served) -> None:
    folder, who = str(served.committee.folder), ["--identity", str(served.identity)]
    result = CliRunner().invoke(app, ["toprf", "eval", folder, "prf", "a password", "--output-bytes", "16", *who], catch_exceptions=False)
    assert result.stdout.split() == [reference(served.key, b"a password", length=16).hex()]
    with pytest.raises(ParameterError, match="spdz2k: one-time tables with MACs are not made: serve with --method circuit"):
        CliRunner().invoke(app, ["toprf", "serve", folder, "0", "prf", "--method", "table"], catch_exceptions=False)
    with pytest.raises(CommitteeError, match="serves already"):
        Daemon(served.committee, 0, Service("prf"))


def test_policy_counts_requests_for_masks(served: Served) -> None:
    """Masks of a session that broke are given up."""
    with served.client(output_bytes=16) as toprf:
        name = secrets.token_hex(16)
        asked(toprf, [b""] * 2, id=name, masks=1)
    served.stop()
    served.set(served.totals()[0] + 1)
    served.start(patience=100.0)
    assert all("no such masks" in said for said in refusals(served, [bytes(16)] * 2, use=name))
    with served.client(output_bytes=16) as toprf:
        with pytest.raises(RefusedByPolicy, match="are used: 2 more are refused until"):
            toprf.evaluate_many([b"1", b"2"])
        assert toprf.evaluate(b"1") == reference(served.key, b"1", length=16)


def burned(served: Served) -> bool:
    """Whether a check failed, and a start is refused from then on."""
    end = time.monotonic() + 30
    while time.monotonic() < end and len(served.failures) < 2:
        time.sleep(0.1)
    served.stop()
    with pytest.raises(BurnedKeyError):
        Daemon(served.committee, 0, Service("prf"))
    return bool(served.failures)


def test_a_party_that_computes_with_another_share(served: Served) -> None:
    """The last test of the module: a check of MACs fails, no value leaves, and the MAC key is burned."""
    served.stop()
    served.set(1_000_000)
    served.start(patience=100.0)
    with served.client(output_bytes=16) as toprf:
        assert toprf.evaluate(b"before") == reference(served.key, b"before", length=16)
    kind: Any = served.daemons[1][0].served_key
    kind._key.words[0, ::2] ^= np.uint64(1)
    with served.client(output_bytes=16, timeout=30.0) as toprf, pytest.raises(KeyQuorumError):
        toprf.evaluate(b"after")
    assert burned(served)
    served.failures.clear()


@pytest.mark.skipif(not LONG, reason="another committee: KEYQUORUM_LONG=1")
def test_without_the_comparison_a_receiver_burns_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ablation of the comparison of masked points."""
    made = started(tmp_path)
    try:
        monkeypatch.setattr(MaskedToprfKind, "_compared", lambda self, context, have: [None] * len(have))
        with made.client(output_bytes=16, timeout=30.0) as toprf:
            name = secrets.token_hex(16)
            asked(toprf, [b""] * 2, id=name, masks=1)
            with pytest.raises(KeyQuorumError):
                asked(toprf, [bytes(16), bytes(15) + b"\1"], use=name)
        assert burned(made)
    finally:
        made.stop()
