"""How a committee opens additive shares: its file, its digest, what is refused, and the same decryptions with fewer messages."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe.lwe import encrypt, lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.schemes.lwe.keygen import make_lwe_key
from keyquorum.schemes.lwe.phases import lwe_phases
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.group import RoundingGroup

from .quorum import reconstruct


def test_the_committee_file_keeps_them(tmp_path: Path) -> None:
    made = api.init(tmp_path / "c", 3, "semi", hosts=["a:1", "b:1", "c:1"], me=[0, 1], openings="star")
    text = (tmp_path / "c" / "committee.toml").read_text()
    assert made.openings == "star" and text.splitlines()[:4] == [
        'name = "c"',
        'protocol = "semi"',
        "threshold = 2",
        'openings = "star"',
    ]
    assert Committee.load(tmp_path / "c") == made
    assert api.trust(tmp_path / "c", 2, "ab" * 32).openings == "star"
    loaded = Committee.load(tmp_path / "c")
    assert loaded.openings == "star" and loaded.parties[2].fingerprint == "ab" * 32
    assert api.in_process_committee(3, "semi", openings="star").openings == "star"


def test_direct_openings_change_neither_file_nor_digest(tmp_path: Path) -> None:
    made = api.init(tmp_path / "c", 3, "semi", base_ot="curve25519")
    lines = ['name = "c"', 'protocol = "semi"', "threshold = 2"]
    for p in made.parties:
        lines += [
            "",
            "[[party]]",
            f"index = {p.index}",
            'host = "127.0.0.1"',
            f"port = {p.port}",
            f'fingerprint = "{p.fingerprint}"',
        ]
    assert (tmp_path / "c" / "committee.toml").read_text() == "\n".join(lines) + "\n"
    said = json.dumps(["c", "semi", 2, [[p.index, p.fingerprint] for p in made.parties]])
    assert made.digest == hashlib.sha256(b"keyquorum committee v1" + said.encode()).digest()
    star = replace(made, openings="star")
    assert star.digest != made.digest
    star.save()
    assert Committee.load(tmp_path / "c").digest == star.digest


@pytest.mark.parametrize(
    ("protocol", "openings", "text"),
    [
        ("rep-field", "star", "rep-field opens values directly: star is for semi, semi2k and shamir"),
        ("ring", "star", "ring opens values directly"),
        ("mascot", "star", "mascot opens values directly"),
        ("spdz2k", "star", "spdz2k opens values directly"),
        ("semi", "tree", "unknown openings 'tree': choose one of direct, star"),
    ],
)
def test_refusals(tmp_path: Path, protocol: str, openings: str, text: str) -> None:
    with pytest.raises(CommitteeError, match=text):
        api.in_process_committee(3, protocol, openings=openings)
    with pytest.raises(CommitteeError, match=text):
        api.init(tmp_path / "c", 3, protocol, openings=openings)
    assert not (tmp_path / "c").exists()
    api.init(tmp_path / "c", 3, protocol)
    file = tmp_path / "c" / "committee.toml"
    file.write_text(f'openings = "{openings}"\n' + file.read_text())
    with pytest.raises(CommitteeError, match=text) as refused:
        Committee.load(tmp_path / "c")
    assert "\n" not in str(refused.value)


def test_the_engine_knows_two() -> None:
    session = _engine.local_sessions(1)[0]
    for openings in ("direct", "star"):
        session.set_openings(openings)
    with pytest.raises(_engine.EngineError, match='openings are direct or star, not "tree"'):
        session.set_openings("tree")


def test_parties_that_differ_are_told() -> None:
    def job(context: PartyContext) -> None:
        if context.party == 1:
            context.session.set_openings("star")
        context.session.engine("semi2k", "Z2^64", "test")

    with pytest.raises(_engine.EngineError, match="another kind of openings"):
        run_in_process(api.in_process_committee(3, "semi"), job)


@pytest.mark.parametrize(("protocol", "parties", "name", "rounding"), [
    ("semi", 4, "lwe64-p2", "round_ltz_circuit"), ("semi", 4, "lwe64-p2", "round_ltz_table"), ("semi", 4, "lwe64-p2", "round_mask_open"),
    ("shamir", 5, "lwe53-p16", "round_ltz_circuit"), ("shamir", 5, "lwe53-p16", "round_mask_open"),
])  # fmt: skip
def test_the_same_results_in_fewer_messages(protocol: str, parties: int, name: str, rounding: str) -> None:
    """Of n parties that round, one that is no centre sends one message where it sends n - 1 directly, in two rounds instead of one.
    What goes to one receiver takes a round as before."""
    parameters, count = lwe_parameters(name), 6
    committee = api.in_process_committee(parties, protocol)
    keys = run_in_process(committee, lambda context: make_lwe_key(context, parameters))
    shares = [share for _, share in keys]
    secret = reconstruct(protocol, committee.threshold, [s.words[:, : parameters.dimension] for s in shares], parameters.modulus)
    rng = np.random.default_rng(3)
    messages = rng.integers(0, 1 << parameters.plain_bits, count)
    ciphertexts = encrypt(parameters, secret, messages, rng)
    variant = LweVariant(rounding, parameters, 8, 2, triples=rounding == "round_ltz_circuit")

    def job(context: PartyContext) -> Any:
        group = RoundingGroup.of(context, context.committee.threshold, 0)
        z = lwe_phases(context, group, shares[context.party], ciphertexts)
        if not group.member:
            return None
        assert group.backend is not None
        material = variant.make(group, count)
        variant.use(group, z, material, "all")  # opens engines, which is not counted
        before = group.backend.stats()
        words = variant.use(group, z, material, "all")
        after = group.backend.stats()
        variant.use(group, z, material, 0)
        to_one = group.backend.stats()["rounds"] - after["rounds"]
        assert words is not None
        return words, [to_one, *(after[key] - before[key] for key in ("rounds", "bytes_sent", "offline_bytes_sent"))]

    costs = []
    for openings in ("direct", "star"):
        results = [r for r in run_in_process(replace(committee, openings=openings), job) if r is not None]
        assert all(np.array_equal(variant.messages(words[0]), messages) for words, _ in results)
        costs.append([cost for _, cost in results])
    direct, star = costs
    peers = len(direct) - 1
    assert peers == (parties - 1 if protocol == "semi" else committee.threshold)
    for party, ((to_one, rounds, sent, offline), (star_to_one, star_rounds, star_sent, star_offline)) in enumerate(zip(direct, star, strict=True)):
        assert offline == star_offline == 0 and star_rounds == 2 * rounds and to_one == rounds and star_to_one == 2 * rounds - 1
        assert star_sent == (sent if party == 0 else sent // peers), (direct, star)
