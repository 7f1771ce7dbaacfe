"""Every pair of committees that can hold a key, counted: with KEYQUORUM_LONG=1, for TFHE-rs also with KEYQUORUM_TFHE (`make tfhe-bridge`, and `cargo build --release --example measure` there).

A key of a real parameter set goes along a closed walk through all ordered pairs. After each resharing its public files are what they were, users encrypt and evaluate new values under them with the stock library, and all that the
new committee decrypts is compared. Committees that cannot hold such a key refuse it alone. Each test ends after the walk or when the hour is over, and prints how far it got.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.tfhe import BLOCKS, measuring
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import check_alone, run_job
from keyquorum.plans.epochs.origins import SEMI_HONEST
from keyquorum.plans.epochs.reshare import bridge

from tests.long import LONG
from tests.plans.test_refresh import public_files

from .reshared import reshared, secrets_of
from .test_reshare import chain
from .test_reshare_macs import block_of, secrets

pytestmark = [
    pytest.mark.skipif(not LONG, reason="minutes to an hour of all cores: KEYQUORUM_LONG=1"),
    pytest.mark.timeout(7200),
    pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning"),
]
MOST_SECONDS = 3300.0
"""After so many no more resharings begin."""
SIX = {"rep-field": 3, "shamir": 5, "semi": 2, "mal-rep-field": 3, "mal-shamir": 5, "mascot": 2}
"""One protocol for each kind of committee, with parties."""
POOL = "round_ltz_circuit"
COUNTS = {"proofs.json", "decryptions.json"}
"""Files beside the public ones that change."""


def run(committee: Committee, job: Json) -> None:
    """A job, each party a thread."""
    run_in_process(committee, lambda context: run_job(context, job), timeout=600)


class Kind(ABC):
    """Keys of a parameter set. ``holders``: the committees that can hold them."""

    holders: tuple[str, ...] = tuple(SIX)
    options: Mapping[str, Any] = {}
    """Of its generation."""

    def __init__(self, parameters: str, folder: Path) -> None:
        self.parameters, self.folder, self.numbers = parameters, folder, count()

    def file(self) -> Path:
        """A new one."""
        return self.folder / f"{next(self.numbers)}.ct"

    def decrypted(self, committee: Committee, paths: list[Path]) -> list[Path]:
        """The plaintext files."""
        plain = [path.with_suffix(".plain") for path in paths]
        run(committee, api.decrypt_job(committee, "key", paths, 0, plain))
        return plain

    @abstractmethod
    def counted(self, committee: Committee) -> tuple[int, int]:
        """Values that the committee decrypted of what users have computed anew, and how many are wrong."""


class Integers(Kind):
    """BFV or BGV: the slots of products of two ciphertexts, 12,288 values."""

    CIPHERTEXTS = 3

    def counted(self, committee: Committee) -> tuple[int, int]:
        paths, right = list[Path](), list[Any]()
        for _ in range(self.CIPHERTEXTS):
            x, y = np.random.default_rng().integers(-100, 100, (2, 4096))
            parts = [self.file(), self.file()]
            for path, values in zip(parts, (x, y), strict=True):
                api.encrypt(committee, "key", values, path)
            paths.append(self.file())
            api.evaluate(committee, "key", "multiply", parts, paths[-1])
            right.append(x * y)
        found = [api.decode(committee, "key", plain) for plain in self.decrypted(committee, paths)]
        return sum(map(len, found)), sum(int((a != b).sum()) for a, b in zip(found, right, strict=True))


class Reals(Kind):
    """CKKS: sums of two ciphertexts, 10,240 values. Wrong: 0.05 off, as the policy leaves 8 bits."""

    CIPHERTEXTS, options = 5, {"policy": api.FloodPolicy(decryptions=256)}

    def counted(self, committee: Committee) -> tuple[int, int]:
        paths, right = list[Path](), list[Any]()
        for _ in range(self.CIPHERTEXTS):
            x, y = np.random.default_rng().uniform(-1, 1, (2, 2048))
            parts = [self.file(), self.file()]
            for path, values in zip(parts, (x, y), strict=True):
                api.encrypt(committee, "key", values, path)
            paths.append(self.file())
            api.evaluate(committee, "key", "add", parts, paths[-1])
            right.append(x + y)
        found = [api.decode(committee, "key", plain, 2048) for plain in self.decrypted(committee, paths)]
        return sum(map(len, found)), sum(int((np.abs(a - b) > 0.05).sum()) for a, b in zip(found, right, strict=True))


class Messages(Kind):
    """LWE and FHEW: messages with items of a pool."""

    MESSAGES = 1000

    def counted(self, committee: Committee) -> tuple[int, int]:
        messages = np.random.default_rng().integers(0, 1 << api.load_parameters(self.parameters).plain_bits, self.MESSAGES)
        path = self.file()
        api.encrypt(committee, "key", messages.tolist(), path)
        run(committee, api.pool_fill_job(committee, self.parameters, POOL, self.MESSAGES))
        found = api.decode(committee, "key", *self.decrypted(committee, [path]))
        return len(found), int((found != messages).sum())


class Prime(Messages):
    """LWE modulo a prime: not with MACs."""

    holders = tuple(protocol for protocol in SIX if protocol != "mascot")


class Ring(Messages):
    """LWE modulo 2^64: not with Shamir's scheme."""

    holders = ("rep-field", "semi", "mal-rep-field", "mascot")


class Fhew(Messages):
    """Keys without verified plans; with additive shares they are held, and not made. An encryption takes 0.2 s."""

    holders, MESSAGES = ("rep-field", "shamir", "semi"), 50


class Tfhe(Kind):
    """TFHE-rs: 200 integers of 8 bits after one of three operations, and 2,000 look-ups."""

    holders = ("rep-field", "semi")

    def counted(self, committee: Committee) -> tuple[int, int]:
        values = wrong = 0
        for what, of in (("integers", 200), ("look-ups", 2000)):
            out = self.file()
            right = [int(line) for line in measuring(what, str(committee.key_folder(0, "key")), str(of), str(of), str(out))]
            ciphertexts = Path(f"{out}.0.lwe")
            run(committee, api.pool_fill_job(committee, self.parameters, POOL, of * (BLOCKS if what == "integers" else 1)))
            found = api.decode(committee, "key", *self.decrypted(committee, [ciphertexts]))
            if what == "integers":
                found = (found.reshape(-1, BLOCKS) << (2 * np.arange(BLOCKS))).sum(axis=1) % 256
            values, wrong = values + of, wrong + int((found != np.array(right)).sum())
            ciphertexts.unlink()
        return values, wrong


class Aes(Kind):
    """One value: a block."""

    holders = ("rep-field", "semi", "mal-rep-field", "mascot")

    def counted(self, committee: Committee) -> tuple[int, int]:
        key = np.packbits(np.array(secrets(committee)[0][:128], dtype=np.uint8), bitorder="little").tobytes()
        return 1, int(block_of(committee) != Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(bytes(16)))


class Legendre(Kind):
    """The numbers of the polynomials: replicated sharing alone holds them."""

    holders = ("rep-field", "mal-rep-field")

    def counted(self, committee: Committee) -> tuple[int, int]:
        [truth] = secrets_of(committee)
        self.first: list[int] = getattr(self, "first", truth)
        return len(truth), sum(a != b for a, b in zip(truth, self.first, strict=True))


def born(kind: Kind, folder: Path) -> Committee:
    """The first committee, with the key."""
    committee = api.init(folder / "0", SIX[kind.holders[0]], kind.holders[0])
    api.keygen(committee, "key", kind.parameters, **kind.options)
    return committee


def refused(kind: Kind, committee: Committee) -> Iterator[str]:
    """Committees that refuse the key, each old member alone."""
    for protocol in set(SIX) - set(kind.holders):
        new = api.init_after(kind.folder / f"no-{protocol}", committee, protocol=protocol, parties=SIX[protocol])
        job, between = api.reshare_job(committee, new, accept_origin=SEMI_HONEST), bridge(committee, new)
        for party in between.olds:
            with pytest.raises(ParameterError):
                check_alone(between, party, job)
        yield protocol


@pytest.mark.parametrize(
    ("make", "parameters"),
    [(Integers, "bfv-4096"), (Integers, "bgv-4096"), (Reals, "ckks-4096-mac"), (Prime, "lwe53-p16"), (Ring, "lwe64-p2"), (Fhew, "ajax53"), (Tfhe, "tfhers-2-2"), (Aes, "prf-aes128"), (Legendre, "prf-legendre127")],
    ids=lambda case: case if isinstance(case, str) else "",
)  # fmt: skip
def test_all_pairs_that_hold_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: type[Kind], parameters: str) -> None:
    if make is Tfhe and not os.environ.get("KEYQUORUM_TFHE"):
        pytest.skip("needs the bridge to TFHE-rs: KEYQUORUM_TFHE")
    monkeypatch.setattr("os.fsync", lambda _: None)
    began, files = time.monotonic(), tmp_path / "files"
    files.mkdir()
    kind = make(parameters, files)
    committee = born(kind, tmp_path)
    assert sorted(refused(kind, committee)) == sorted(set(SIX) - set(kind.holders))
    order = [kind.holders[number] for number in chain(len(kind.holders))]
    public = {name: data for name, data in public_files(committee).items() if name not in COUNTS}
    done, values, wrong = 0, *kind.counted(committee)
    for number, (old, protocol) in enumerate(pairwise(order), 1):
        if time.monotonic() - began > MOST_SECONDS:
            break
        new = api.init_after(tmp_path / str(number), committee, protocol=protocol, parties=SIX[protocol])
        reshared(committee, new, timeout=600)
        found = public_files(new)
        assert {name: data for name, data in found.items() if name not in COUNTS} == public, (old, protocol)
        counts = kind.counted(new)
        done, values, wrong = done + 1, values + counts[0], wrong + counts[1]
        assert not wrong, f"{old} to {protocol}: {counts[1]} of {counts[0]} values are wrong"
        for path in files.glob("*.*"):
            with suppress(IsADirectoryError):
                path.unlink()
        committee = new
    print(f"\n{parameters}: pairs={done} of {len(order) - 1} values={values} wrong={wrong} seconds={time.monotonic() - began:.0f}")
