"""Runs one measurement of a sweep: with processes of this host over TLS, or with MP-SPDZ."""

from __future__ import annotations

import itertools
import math
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum import api
from keyquorum.backends.mpspdz import Checkout, Given, Players, Way, run_program
from keyquorum.backends.mpspdz.workdir import WorkFolder
from keyquorum.cnn.run import WAYS, Classification, Classified, classify, held_out_digits, load_model
from keyquorum.fhe import seal
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.fhe.values import Numbers
from keyquorum.model.chosen_committees import split_options
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.links import parse
from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties import PhaseReport, RunReport, run_processes
from keyquorum.schemes.base import MASKED, MASKED_ONE
from keyquorum.schemes.seal.key import SealKeyInfo, load_seal_key
from keyquorum.schemes.seal.policy import FloodPolicy
from keyquorum.schemes.seal.precision import key_precision
from keyquorum.sweep import peers

from .cases import Case, CaseError, SkippedError
from .party import phases_of
from .programs import PROGRAMS, Setting

SINGLES = 7
"""Consecutive decryptions of LWE in the measurement of a single one."""
INEXACT = (MASKED, MASKED_ONE)
"""Roundings that may fail, with the probability in the header of the program: their wrong results are counted, and are no error."""


@dataclass(frozen=True)
class Run:
    """One run: a report of each party (for programs on MP-SPDZ only of party 0, which prints), the number of wrong
    results, and figures of the results that only some suites have."""

    reports: list[RunReport]
    wrong: int = 0
    results: Mapping[str, float] = field(default_factory=dict)


def lowest(parameters: api.ParameterSet, data: bytes) -> bytes:
    """A ciphertext at its lowest usable level: for BFV and BGV the last level, for CKKS one whose modulus fits the scale times 4."""
    evaluator = seal.Evaluator(parameters)
    if parameters.scheme != "ckks":
        return evaluator.last_level(data)
    for primes in range(parameters.levels - 1, 0, -1):
        if math.prod(parameters.moduli(primes)) <= 16 * parameters.scale:
            break
        data = evaluator.next_level(data)
    return data


@dataclass(frozen=True)
class Effort:
    """``repeats``: measured runs; ``warm_up``: runs before them that are not measured; ``timeout``: seconds for all runs of a measurement.
    ``patience``: seconds after which a measurement starts no further run; if only warm-ups were made by then, the last of them is measured."""

    repeats: int = 3
    warm_up: int = 1
    timeout: float = 600.0
    patience: float = math.inf

    def turns(self, warm_up: int | None = None) -> Iterator[int]:
        """A number for each run; ends after ``patience`` seconds."""
        start = time.monotonic()
        for i in range((self.warm_up if warm_up is None else warm_up) + self.repeats):
            if i and time.monotonic() - start > self.patience:
                return
            yield i

    def counted(self, runs: list[Run]) -> list[Run]:
        """The runs without the warm-ups."""
        return runs[self.warm_up :] or runs[-1:]


class Bench:
    """Measures cases; cases share committees and keys where possible. Close it at the end."""

    def __init__(self, effort: Effort, mp_spdz: str | None = None) -> None:
        self.effort, self._mp_spdz = effort, mp_spdz
        self._temporary = tempfile.TemporaryDirectory(prefix="keyquorum-bench-")
        self._committees: dict[tuple[str, int], Committee] = {}
        self._made = itertools.count()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.cleanup()

    def measure(self, case: Case) -> list[Run]:
        """The measured runs. Raises CaseError with the reason."""
        measured: dict[str, Callable[[Case], list[Run]]] = {
            "keygen": self._keygen,
            "decrypt": self._decrypt,
            "cnn": self._cnn,
            "peers": self._peer,
        }
        try:
            return measured.get(case.suite, self._program)(case)
        except CaseError:
            raise
        except peers.PeerMissingError as error:
            raise SkippedError(str(error)) from error
        except (KeyQuorumError, OSError) as error:
            raise CaseError(f"{case.label}: {error}") from error

    def _committee(self, case: Case) -> Committee:
        key = (case.protocol, case.parties)
        if key not in self._committees:
            folder = Path(self._temporary.name) / f"{case.protocol}-{case.parties}"
            self._committees[key] = api.init(folder, case.parties, case.protocol, case.threshold)
        return self._committees[key]

    def _processes(self, case: Case, job: Json, deadline: float) -> list[Json]:
        """The results of the parties; kills all parties at the deadline."""
        processes: list[Popen[str]] = []

        def kill() -> None:
            for process in processes:
                process.kill()

        stop = threading.Timer(max(0.1, deadline - time.monotonic()), kill)
        stop.daemon = True
        stop.start()
        try:
            folder = self._committee(case).folder
            return run_processes(folder, job, connect_timeout=120, io_timeout=self.effort.timeout, on_start=processes.extend)
        except KeyQuorumError as error:
            if time.monotonic() >= deadline:
                raise CaseError(f"{case.label}: took longer than {self.effort.timeout:g} s") from error
            raise
        finally:
            stop.cancel()

    def _deadline(self) -> float:
        return time.monotonic() + self.effort.timeout

    # Programs

    def _program(self, case: Case) -> list[Run]:
        if case.backend == "mp-spdz":
            return self._on_mp_spdz(case)
        job = {
            "kind": "sweep:program", "suite": case.suite, "name": case.name, "protocol": case.protocol, "batch": case.batch,
            "warm_up": self.effort.warm_up, "repeats": self.effort.repeats, "patience": min(self.effort.patience, self.effort.timeout),
            "link": case.link or None,
        }  # fmt: skip
        results = self._processes(case, job, self._deadline())
        reports = [[RunReport.from_json(r) for r in result["reports"]] for result in results]
        return [Run(list(run)) for run in zip(*reports, strict=True)]

    def _on_mp_spdz(self, case: Case) -> list[Run]:
        program, checkout = PROGRAMS[case.suite, case.name], Checkout.find(self._mp_spdz)
        rng, runs = np.random.default_rng(), []
        here = [Setting(case.protocol, case.parties, case.threshold, case.batch, i) for i in range(case.parties)]
        protocol = PROTOCOLS[case.protocol]
        folder, deadline = WorkFolder(), self._deadline()
        try:
            path = folder.path / "kq_bench.mpc"
            path.write_text(program.source)
            threshold, link = case.threshold if protocol.chooses_threshold else None, parse(case.link) if case.link else None
            players = Players(checkout, case.protocol, case.parties, case.parameters, threshold, link)
            for i in self.effort.turns():
                done = run_program(
                    players, path if program.source else program.program, program.arguments(here[0]),
                    Given({s.party: program.inputs(s, rng) for s in here}),
                    Way(max(1.0, deadline - time.monotonic()), folder, split_options(protocol, case.parties), compiled=i > 0),
                )  # fmt: skip
                timer = done.result.timers.get(1, done.result.total)
                runs.append(Run([RunReport(0, phases_of(timer))]))
        finally:
            folder.close()
        return self.effort.counted(runs)

    # Plans

    def _reports(self, results: Sequence[Json]) -> list[RunReport]:
        return [RunReport.from_json(result["report"]) for result in results]

    def _keygen(self, case: Case) -> list[Run]:
        committee, runs, deadline = self._committee(case), [], self._deadline()
        for _ in self.effort.turns():
            name = f"{case.parameters}-{next(self._made)}"
            folder = committee.key_folder(0, name)
            job = {**api.keygen_job(name, case.parameters, backend=case.backend, mp_spdz=self._mp_spdz), "link": case.link or None}
            runs.append(Run(self._reports(self._processes(case, job, deadline))))
            api.load_key(folder)
        return self.effort.counted(runs)

    def _key(self, case: Case) -> tuple[str, SealKeyInfo, bytes]:
        """A key for decryption, made once, outside the measurement, over the links of this machine."""
        committee, parameters = self._committee(case), load_parameters(case.parameters)
        # A CKKS key allows a limited number of decryptions, and a BFV key a few by this rounding, so each run has a key of its own.
        limited = parameters.scheme == "ckks" or MASKED in case.name
        name = f"decrypt-{case.parameters}-{next(self._made)}" if limited else f"decrypt-{case.parameters}"
        folder = committee.key_folder(0, name)
        if not (folder / "key.json").exists():
            counted = (self.effort.warm_up + self.effort.repeats) * case.batch
            policy = FloodPolicy(decryptions=max(16, counted)) if parameters.scheme == "ckks" else FloodPolicy()
            job = api.keygen_job(name, parameters, False, policy=policy, backend=case.backend, mp_spdz=self._mp_spdz)
            self._processes(case, job, self._deadline())
        info = load_seal_key(folder)
        return name, info, api.load_public_file(folder, info, "public.key")

    def _decrypt(self, case: Case) -> list[Run]:
        scheme, rounding = case.name.split(" ", 1)
        if scheme == "lwe":
            return self._decrypt_lwe(case, rounding)
        committee = self._committee(case)
        name, info, public = self._key(case)
        parameters, rng, runs = info.parameters, np.random.default_rng(), []
        deadline = self._deadline()
        with tempfile.TemporaryDirectory(dir=self._temporary.name) as folder:
            for turn in self.effort.turns():
                if turn and MASKED in case.name:
                    name, info, public = self._key(case)
                values, files, outputs = [], [], []
                for j in range(case.batch):
                    path = Path(folder) / f"{j}.ct"
                    clear: Numbers
                    if scheme == "ckks":
                        clear = rng.uniform(-1, 1, parameters.ring_degree // 2)
                    else:
                        clear = rng.integers(0, parameters.plain_modulus, parameters.ring_degree)
                    data = lowest(parameters, seal.encrypt(parameters, public, clear))
                    path.write_bytes(data)
                    api.write_receipt(path, data, info)
                    values.append(clear)
                    files.append(path)
                    outputs.append(path.with_suffix(".plain"))
                program = rounding if rounding.startswith("round_") else "round_ltz_circuit"
                job = api.decrypt_job(
                    committee, name, files, 0, outputs, program, backend=case.backend, mp_spdz=self._mp_spdz, link=case.link or None
                )
                reports = self._reports(self._processes(case, job, deadline))
                decoded = [seal.decode(parameters, output.read_bytes()) for output in outputs]
                wrong = sum(not _equal(*pair, info) for pair in zip(decoded, values, strict=True))
                if wrong and program not in INEXACT:
                    raise CaseError(f"{case.label}: {wrong} of {case.batch} ciphertexts were decrypted wrongly")
                runs.append(Run(reports, wrong))
        return self.effort.counted(runs)

    def _decrypt_lwe(self, case: Case, rounding: str) -> list[Run]:
        """The job of :mod:`keyquorum.sweep.decryption`; a batch of 1: the median of several single decryptions."""
        items = SINGLES if case.batch == 1 else case.batch
        job = {
            "kind": "sweep:decrypt", "parameters": case.parameters, "rounding": rounding, "width": 8, "levels": 2,
            "items": items, "single": case.batch == 1, "link": case.link or None,
        }  # fmt: skip
        runs, deadline = [], self._deadline()
        for _ in self.effort.turns(0):  # the job has a warm-up of its own
            results = self._processes(case, job, deadline)
            wrong = max(r["wrong"] for r in results)
            if wrong and rounding not in INEXACT:
                raise CaseError(f"{case.label}: {wrong} of {items} decryptions are wrong")
            reports = []
            for result in results:
                report = RunReport.from_json(result["report"])
                offline = result["offline"] * case.batch
                made = round(result["offline_bytes"] * case.batch), round(result["offline_bytes_received"] * case.batch)
                opened = round(result["bits"] * case.batch / 8), round(result["bits_received"] * case.batch / 8)
                online = result["median"] if case.batch == 1 else result["online"]
                offline_cpu, online_cpu = result["offline_cpu"] * case.batch, result["online_cpu"] * case.batch / items
                report.phases = [
                    PhaseReport("offline", offline, *made, 0, offline_cpu, offline, *made),
                    PhaseReport("online", online, *opened, result["rounds"], online_cpu),
                ]
                reports.append(report)
            runs.append(Run(reports, wrong))
        return runs

    def _cnn(self, case: Case) -> list[Run]:
        setting = Classification(*held_out_digits(case.batch), load_model(), *WAYS[case.name], case.link or None)
        runs = []
        for _ in self.effort.turns(0):  # key generation and 13 ciphertexts: long enough to need no warm-up
            result = classify(self._committee(case), setting, f"cnn-{next(self._made)}")
            if not result.agrees:
                raise CaseError(f"{case.label}: accuracy {result.accuracy}, in clear {result.plain_accuracy}")
            client = {name: seconds for name, seconds in result.seconds.items() if name not in ("keys", "decryption")}
            pairs = zip(result.keygen, result.decryption, strict=True)
            runs.append(Run([_party_of_cnn(a, b, client if a.party == 0 else {}) for a, b in pairs], results=_accuracy_of(result)))
        return runs

    def _peer(self, case: Case) -> list[Run]:
        deadline = self._deadline()
        made = [Run([peers.run(case.backend, case.parameters, case.parties, max(1.0, deadline - time.monotonic()))]) for _ in self.effort.turns()]
        return self.effort.counted(made)


def _accuracy_of(result: Classified) -> dict[str, float]:
    """The columns of :data:`keyquorum.sweep.rows.RESULTS`."""
    return {"accuracy": result.accuracy, "digits": result.images, "logit_error": result.error, "precision_bits": result.precision_bits}


def _party_of_cnn(keygen: RunReport, decryption: RunReport, client: dict[str, float]) -> RunReport:
    """One report for both jobs. Encryption of the model and of images, and evaluation, which need no party, are phases of party 0."""
    keys, opened = keygen.total, decryption.total
    keys.name, opened.name = "keys", "decryption"
    phases = [keys, *(PhaseReport(name, seconds) for name, seconds in client.items()), opened]
    unused = dict(Counter(keygen.unused) + Counter(decryption.unused))
    memory, cpu = max(keygen.peak_memory, decryption.peak_memory), keygen.cpu_seconds + decryption.cpu_seconds
    return RunReport(keygen.party, phases, memory, cpu, keygen.link, unused)


def _equal(got: Any, clear: NDArray[Any], info: SealKeyInfo) -> bool:
    """Whether all values are correct: modulo t, or for CKKS within the error bound of the flooding."""
    modulus = info.parameters.plain_modulus
    if modulus:
        return bool(np.array_equal(np.asarray(got).astype(np.int64) % modulus, clear))
    return bool(np.abs(np.real(got) - clear).max() <= key_precision(info).largest)


__all__ = ["Bench", "Effort", "Run"]
