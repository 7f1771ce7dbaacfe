"""Errors for checkouts that are missing, foreign, old or not built."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.backends import check_backend
from keyquorum.backends.mpspdz.checkout import PROTOCOLS, Checkout, check_parties, protocol_named
from keyquorum.model.errors import BackendError, ParameterError

from .fake import fake_checkout


def refused(folder: Path | str | None) -> str:
    with pytest.raises(BackendError) as error:
        Checkout.find(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    assert "set MP_SPDZ_HOME" in refused(None) and "--mp-spdz DIR" in refused(None)
    assert "no such folder" in refused(tmp_path / "nowhere")
    assert "not a checkout of MP-SPDZ" in refused(tmp_path)


def test_the_environment_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MP_SPDZ_HOME", str(fake_checkout(tmp_path / "a")))
    assert Checkout.find().path == tmp_path / "a"
    assert Checkout.find(fake_checkout(tmp_path / "b")).path == tmp_path / "b", "an explicit folder wins"


@pytest.mark.parametrize(("version", "ok"), [("0.3.9", False), ("0.2", False), ("0.4.0", True), ("0.10.1", True), ("1.0", True)])
def test_version(tmp_path: Path, version: str, ok: bool) -> None:
    folder = fake_checkout(tmp_path / "x", version=version)
    if ok:
        assert Checkout.find(folder).version == tuple(map(int, version.split(".")))
    else:
        assert f"too old (MP-SPDZ {version}" in refused(folder) and "0.4.0 or newer" in refused(folder)


def test_without_its_script_it_is_too_old(tmp_path: Path) -> None:
    folder = fake_checkout(tmp_path / "x")
    (folder / "Scripts" / "compile-run.py").unlink()
    assert "Scripts/compile-run.py missing" in refused(folder)
    (folder / "CHANGELOG.md").unlink()
    assert "unknown version" in refused(folder)


def test_missing_executables_name_their_make_target(tmp_path: Path) -> None:
    folder = fake_checkout(tmp_path / "x")
    checkout = Checkout.find(folder)
    assert checkout.binary("semi") == folder / "semi-party.x" and checkout.has("semi") and not checkout.has("mascot")
    for protocol, binary in (("mascot", "mascot-party.x"), ("ring", "replicated-ring-party.x"), ("emulate", "emulate.x")):
        with pytest.raises(BackendError, match=re.escape(f"make -C {folder} {binary}") + "$"):
            checkout.binary(protocol)
    (folder / "semi-party.x").chmod(0o644)
    with pytest.raises(BackendError, match="not executable"):
        checkout.binary("semi")


def test_a_plan_asks_for_all_executables_before_it_starts(tmp_path: Path) -> None:
    folder = fake_checkout(tmp_path / "x", ["mascot-party.x", "semi-party.x"])
    check_backend("mp-spdz", api.in_process_committee(3, "shamir"), fake_checkout(tmp_path / "y", ["shamir-party.x"]))
    with pytest.raises(BackendError, match=r"make -C .* spdz2k-party\.x$"):
        check_backend("mp-spdz", api.in_process_committee(2, "mascot"), folder)


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(ParameterError, match="embedded, mp-spdz"):
        check_backend("other", api.in_process_committee(3, "shamir"))


def test_parties_and_names() -> None:
    for name, parties, threshold in (("ring", 2, None), ("rep-field", 4, None), ("shamir", 2, None), ("shamir", 4, 2), ("semi", 1, None)):
        with pytest.raises(ParameterError, match=name):
            check_parties(PROTOCOLS[name], parties, threshold)
    check_parties(PROTOCOLS["shamir"], 5, 2)
    check_parties(PROTOCOLS["mascot"], 2)
    with pytest.raises(ParameterError, match="choose one of ring, rep-field"):
        protocol_named("bmr")
    links = [PROTOCOLS[name].mp_spdz for name in ("semi2k", "semi", "spdz2k", "mascot")]
    assert all(there is not None and there.encrypt for there in links), "these default to links in the clear"


@pytest.mark.skipif(not os.environ.get("MP_SPDZ_HOME"), reason="MP_SPDZ_HOME is not set")
def test_a_real_one() -> None:
    checkout = Checkout.find()
    assert checkout.version >= (0, 4) and len(checkout.commit) == 40
    assert checkout.binary("rep-field").is_file()
