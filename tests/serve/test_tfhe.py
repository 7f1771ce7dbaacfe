"""A committee serves a key for TFHE-rs: receivers get the right messages of evaluated ciphertexts, and other roundings are refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import TFHE_SETS, encrypt
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.schemes.key_folder import load_shares
from keyquorum.schemes.tfhe import keygen
from keyquorum.schemes.tfhe.key import TFHE_KEYS
from keyquorum.serve.client import Refused, fetch, make_receiver
from keyquorum.serve.daemon import Daemon, Service

from tests.schemes.test_tfhe import TINY


@pytest.fixture(params=[("rep-field", 3), ("semi", 2)], ids=lambda value: value[0])
def committee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Committee]:
    """With a key of a small set, made by threads: the set exists in this process alone."""
    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    monkeypatch.setattr(keygen, "BOOTSTRAPPING_CHUNK", 4 * 2 * TINY.pbs_level * TINY.dimension)
    protocol, parties = request.param
    made = api.init(tmp_path / "committee", parties, protocol)
    job = api.keygen_job("key", TINY.name)
    run_in_process(made, lambda context: run_job(context, job), timeout=60)
    yield made


def test_receivers_get_the_messages(committee: Committee) -> None:
    identity, _ = make_receiver(committee, "alice")
    info = TFHE_KEYS.load(committee.key_folder(0, "key"))
    shares = [load_shares(committee.key_folder(party, "key"), info, party, 1)[0] for party in range(committee.size)]
    secret = np.asarray(sum(share.words[0] for share in shares)).astype(np.int64)
    rng = np.random.default_rng(3)
    messages, noise = rng.integers(0, 16, 48), rng.integers(-(1 << 57), 1 << 57, 48)
    ciphertext = replace(encrypt(TINY, secret, messages, rng, noise), noise_bits=58)

    failures: list[BaseException] = []

    def run(daemon: Daemon) -> None:
        try:
            daemon.run()
        except BaseException as error:
            failures.append(error)

    for rounding in ("round_mask_open", "round_flood"):
        with pytest.raises(ParameterError, match="is not for these ciphertexts"):
            Daemon(committee, 0, Service("key", rounding))
    daemons = [Daemon(committee, party, Service("key", "round_ltz_circuit", keep=64, chunk=64, patience=30.0)) for party in range(committee.size)]
    threads = [threading.Thread(target=run, args=(daemon,), daemon=True) for daemon in daemons]
    for thread in threads:
        thread.start()
    try:
        assert fetch(committee, identity, ciphertext.to_bytes(info.key_id), wait=30.0).messages.tolist() == messages.tolist()
        foreign = ciphertext.to_bytes("00" * 16)
        with pytest.raises((Refused, CiphertextError), match="encrypted under another key"):
            fetch(committee, identity, foreign, wait=30.0)
        assert fetch(committee, identity, ciphertext.to_bytes(info.key_id), wait=30.0).messages.tolist() == messages.tolist()
    finally:
        for daemon in daemons:
            daemon.stop()
        for thread in threads:
            thread.join(30)
    assert not failures and not any(thread.is_alive() for thread in threads)
