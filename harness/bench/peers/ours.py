"""Our side: keys and decryptions of a committee, every party a process of this host, over TLS, all of them on the same cores."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.fhe.values import Numbers
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties import RunReport
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.sweep.measure import lowest

from ..runner import committee_of
from .base import Setting, Spent

CLOSE = 1e-3
"""Largest error of a CKKS value, ours and those of other libraries."""
IO_TIMEOUT = 600


def log2_q(parameters: ParameterSet) -> float:
    """Bits of the modulus of fresh ciphertexts."""
    return math.log2(math.prod(parameters.moduli(parameters.levels)))


def random_values(parameters: ParameterSet) -> Numbers:
    """A vector that fills all slots."""
    rng = np.random.default_rng()
    if parameters.scheme == "ckks":
        return rng.uniform(-1, 1, parameters.slots)
    return rng.integers(0, parameters.plain_modulus, parameters.slots)


def same(parameters: ParameterSet, found: Numbers, values: Numbers) -> bool:
    """Whether decrypted values are those that were encrypted."""
    if parameters.scheme == "ckks":
        return bool(np.abs(found - values).max() < CLOSE)
    return bool(np.array_equal(found % parameters.plain_modulus, values % parameters.plain_modulus))


def add_run(spent: Spent, reports: list[RunReport]) -> None:
    """Adds a run of processes: seconds of the slowest party, CPU and bytes of all parties."""
    totals = [report.total for report in reports]
    spent.add(max(t.seconds for t in totals), sum(t.cpu_seconds for t in totals), sum(t.bytes_sent for t in totals))


class Quorum:
    """A committee with a dishonest majority, semi-honest, and its keys of one parameter set: ``keys``, what they cost; the last one is used."""

    def __init__(self, committee: Committee, setting: Setting) -> None:
        self.committee, self.setting = committee, setting
        self.parameters, self.keys = load_parameters(setting.parameters), Spent()
        for run in range(setting.runs + 1):  # the first loads code
            self._name = f"key-{run}"
            made = api.keygen(committee, self._name, self.parameters, io_timeout=IO_TIMEOUT)
            if run:
                add_run(self.keys, made.reports)
        assert isinstance(made.info, SealKeyInfo)
        self.info, self._folder = made.info, made.folder

    def file(self, name: str) -> bytes:
        """One of the public files."""
        return (self._folder / name).read_bytes()

    def decryption(self) -> Spent:
        """Decryptions of one fresh ciphertext at its lowest level. Raises KeyQuorumError for a wrong result."""
        spent = Spent()
        with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
            path = Path(folder) / "one.ct"
            for run in range(self.setting.runs + 1):
                values = random_values(self.parameters)
                data = lowest(self.parameters, seal.encrypt(self.parameters, self.file("public.key"), values))
                path.write_bytes(data)
                api.write_receipt(path, data, self.info)
                if self.parameters.scheme == "ckks":
                    api.approve(self.committee, self._name, path)
                done = api.decrypt(self.committee, self._name, [path], 0, [path.with_suffix(f".{run}")], io_timeout=IO_TIMEOUT)
                if not same(self.parameters, seal.decode(self.parameters, done.outputs[0].read_bytes()), values):
                    raise KeyQuorumError(f"{self.parameters.name}: the committee decrypts to something else: the comparison is worth nothing")
                if run:
                    add_run(spent, done.reports)
        return spent


@contextmanager
def quorum(setting: Setting) -> Iterator[Quorum]:
    """A committee with keys, in a folder that is removed in the end."""
    with committee_of(ADDITIVE, setting.parties) as committee:
        yield Quorum(committee, setting)


__all__ = ["Quorum", "add_run", "log2_q", "quorum", "random_values", "same"]
