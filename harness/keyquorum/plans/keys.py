"""A key on disk: public files, metadata with the decryption policy, and one party's shares.

In a key folder: ``key.json`` (metadata), ``public.key``, ``relin.key``, ``galois.key`` (SEAL's bytes), and at a party
``share-<j>.kqs``, its shares of the secret key modulo the j-th prime (``mac-<j>.kqs``, of their MAC key), and
``decryptions.json``, the journal of the policy.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import shutil
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from keyquorum._engine import ShareFile
from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import NO_KEY_TEST
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.parameters import NOISE_BITS_MAX, ParameterSet
from keyquorum.model.committee import AUTHENTICATED, Committee, sync_folder, write_atomically
from keyquorum.model.errors import KeyFileError, ParameterError, PolicyError, ProgramError
from keyquorum.model.locks import FileLock
from keyquorum.model.plain import Json, is_count, is_hex, json_loads
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext

from .noise import default_bits, fresh_rms

ERROR_LAWS = ("cbd", "gaussian")


RECOMMENDED_BITS = 30
"""Statistical security below which a policy is weak: s as LMSS count it, see :attr:`FloodPolicy.advantage`."""
SIGMA_MAX = 2.0**55
"""Largest deviation of one party's flooding noise."""


@dataclass(frozen=True)
class FloodPolicy:
    """How CKKS results are protected: every contributor adds Gaussian noise of deviation :meth:`sigma` to every coefficient.

    ``bits``: statistical security s of all decryptions together; ``decryptions``: how many the key may ever serve (tau); ``noise_bits``:
    the bound on the noise e of the ciphertexts that the committee accepts, an expected squared Euclidean norm of N 4^noise_bits. It holds
    where every coefficient is at most 2^noise_bits, and where their root mean square is. 0: that of the parameter set (:meth:`for_set`).
    ``approvals``: 1 if every party decrypts only what was approved at it, and is bounded (:mod:`keyquorum.plans.approvals`), else 0.

    The bound (Li, Micciancio, Schultz, Sorrell: Securing Approximate Homomorphic Encryption Using Differential Privacy, CRYPTO 2022; the
    Gaussian mechanism is differentially private in the Kullback-Leibler sense for the EUCLIDEAN norm): a decryption gives away at most
    |e|^2 / (2 sigma^2), and tau adaptive ones at most tau times that. With sigma^2 = 12 tau 2^s N 2^(2 noise_bits) it is 2^-s / 24 in all.
    For random e the expected |e|^2 counts, as the divergence is convex. s counts as in LMSS, where the square of an advantage counts: whoever
    tells flooded noise from flooding alone, by the best test, has an advantage of about 2^(-s/2 - 3) (:meth:`advantage`), NOT 2^-s.

    The same formula holds for policies that were stored with keys before it had the factor sqrt(N).
    """

    bits: int = 30
    decryptions: int = 16
    noise_bits: int = 0
    approvals: int = 0

    def for_set(self, parameters: ParameterSet) -> FloodPolicy:
        """The policy with a noise bound: its own, or that of the set. Every policy that is stored has one."""
        if self.noise_bits:
            return self
        return replace(self, noise_bits=default_bits(parameters) if parameters.scheme == "ckks" else 1)

    @property
    def advantage(self) -> float:
        """log2 of the largest advantage in telling the noise of all decryptions from none: |shift| / (sigma sqrt(2 pi)) for a divergence of 2^-s / 24."""
        return -self.bits / 2 - math.log2(math.sqrt(12 * 2 * math.pi))

    def check(self, ring_degree: int) -> None:
        """Refuses a policy that makes no sense or no room."""
        if not 1 <= self.bits <= 80:
            raise PolicyError(f"flooding of {self.bits} bits: choose 1 to 80")
        if not 1 <= self.decryptions <= 1 << 30:
            raise PolicyError(f"{self.decryptions} decryptions: choose 1 to 2^30")
        if not 1 <= self.noise_bits <= NOISE_BITS_MAX:
            raise PolicyError(f"noise of {self.noise_bits} bits: choose 1 to {NOISE_BITS_MAX}")
        if self.approvals not in (0, 1):
            raise PolicyError(f"approvals {self.approvals}: choose 0 (none needed) or 1 (of every party)")
        sigma = self.sigma(ring_degree)
        if sigma > SIGMA_MAX:
            raise PolicyError(
                f"the policy needs a flooding noise of 2^{math.log2(sigma):.0f}, at most 2^{math.log2(SIGMA_MAX):.0f} is possible: "
                "lower the bits, the decryptions or the noise bound"
            )

    def sigma(self, ring_degree: int) -> float:
        """Standard deviation of one party's flooding noise, in units of the ciphertext's coefficients."""
        if not self.noise_bits:
            raise PolicyError("the policy has no noise bound yet: take that of a parameter set (FloodPolicy.for_set), or say noise_bits")
        return math.sqrt(12 * self.decryptions * ring_degree) * math.pow(2.0, self.bits / 2 + self.noise_bits)

    def weaknesses(self, parameters: ParameterSet) -> list[str]:
        """What is weak about the policy for keys of a CKKS set, each in one line; empty if nothing is, and for other schemes."""
        found: list[str] = []
        if parameters.scheme != "ckks":
            return found
        if self.bits < RECOMMENDED_BITS:
            found.append(f"flooding of {self.bits} bits is WEAK: whoever sees the results may find the secret key; take {RECOMMENDED_BITS} or more")
        fresh, usual = math.log2(fresh_rms(parameters)), default_bits(parameters)
        if self.noise_bits < fresh:
            found.append(
                f"a noise bound of 2^{self.noise_bits} is WEAK: a fresh encryption has noise of 2^{fresh:.1f}, which the flooding does not "
                f"hide; take {usual} bits, as the set does"
            )
        elif self.noise_bits < usual:
            found.append(
                f"a noise bound of 2^{self.noise_bits} is below the 2^{usual} of {parameters.name}: sums of many slots and products may exceed it, and "
                "are not hidden then; decrypt nothing of which keyquorum eval states more, or take --approvals, which refuse it"
            )
        return found


def warn_of_weakness(parameters: ParameterSet, policy: FloodPolicy) -> None:
    """Warns with SecurityWarning of each weakness of the policy of a CKKS key. Every party does, whoever wrote the job."""
    for weakness in policy.weaknesses(parameters):
        warnings.warn(weakness, SecurityWarning, stacklevel=2)


@dataclass(frozen=True)
class KeyInfo:
    """Metadata of a key: the same at every party."""

    key_id: str
    parameters: ParameterSet
    protocol: str
    parties: int
    threshold: int
    error_law: str
    relin: bool
    galois_elements: tuple[int, ...]
    policy: FloodPolicy
    transcript: str
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each public file."""

    @property
    def digest(self) -> bytes:
        """32 bytes that identify the key with its policy and files: parties compare them before they use it."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).digest()

    def to_json(self) -> Json:
        """Plain data, see :meth:`from_json`."""
        return asdict(self)

    @staticmethod
    def from_json(data: Json) -> KeyInfo:
        """Inverse of :meth:`to_json`; checks the parameter set."""
        data = dict(data)
        data["parameters"] = parameters_from_json(data["parameters"])
        data["policy"] = policy_from_json(data["policy"])
        data["galois_elements"] = tuple(data["galois_elements"])
        info = KeyInfo(**data)
        texts = [info.protocol, info.error_law, info.transcript, *info.files, *info.files.values()]
        numbers = [info.parties, info.threshold, *info.galois_elements]
        if not (is_hex(info.key_id, 32) and all(isinstance(t, str) for t in texts) and all(map(is_count, numbers)) and type(info.relin) is bool):
            raise ValueError("entries of other types")
        return info

    def share_header(self, party: int, prime_index: int) -> Json:
        """Header of a share file of this key."""
        q = self.parameters.coeff_modulus[prime_index]
        return {
            "protocol": self.protocol,
            "domain": f"F_{q}",
            "parties": self.parties,
            "threshold": self.threshold,
            "party": party,
            "key_id": self.key_id,
            "length": self.parameters.ring_degree,
        }


def check_made_by(committee: Committee, info: Any, folder: Path) -> None:
    """Refuses a key (its metadata, of any kind) that another committee made."""
    if (info.protocol, info.parties, info.threshold) != (committee.protocol, committee.size, committee.threshold):
        raise KeyFileError(f"{folder}: this key was made by a committee with another protocol or size")


def policy_from_json(data: Json) -> FloodPolicy:
    """A policy from plain data; refuses unknown fields and anything but integers."""
    fields = FloodPolicy.__dataclass_fields__
    if not set(data) <= set(fields) or any(type(v) is not int for v in data.values()):
        raise PolicyError(f"not a flooding policy ({data}): give {', '.join(fields)} as integers")
    return FloodPolicy(**data)


def parameters_to_json(parameters: ParameterSet) -> Json:
    """A parameter set as plain data."""
    return asdict(parameters)


def parameters_from_json(data: Json) -> ParameterSet:
    """Inverse of :func:`parameters_to_json`; the set is validated."""
    try:
        return ParameterSet(**{**data, "coeff_modulus": tuple(data["coeff_modulus"])})
    except (TypeError, KeyError) as error:
        raise ParameterError(f"not a parameter set ({error}): write the job or key file again") from None


def write_share(folder: Path, info: KeyInfo, party: int, prime_index: int, share: Persistence) -> None:
    """Stores this party's share of the secret key modulo one prime, and of the MAC key under which it is authenticated."""
    header = info.share_header(party, prime_index)
    ShareFile.write(str(folder / f"share-{prime_index}.kqs"), header, share.export(0, header["length"]))
    write_mac(folder / f"mac-{prime_index}.kqs", header, share)


def read_share(folder: Path, info: KeyInfo, party: int, prime_index: int, tested: bool = True) -> Persistence:
    """Reads what :func:`write_share` stored; refuses damaged and foreign files, those under a burned MAC key, and those without a test of
    their MAC key if they must be ``tested``: not on MP-SPDZ."""
    mac_key.check_key_folder(folder, info.protocol)
    header = info.share_header(party, prime_index)
    data = np.frombuffer(ShareFile.read(str(folder / f"share-{prime_index}.kqs"), header), dtype="<u8")
    share = Persistence.from_words(data.reshape(-1, header["length"]).copy())
    read_mac(folder / f"mac-{prime_index}.kqs", header, share, tested)
    return share


def write_mac(path: Path, header: Json, share: Persistence) -> None:
    """Stores what these shares' MACs need in a later session, if they have any; ``header``: of the file of the shares."""
    mac = share.export_mac()
    if mac:
        ShareFile.write(str(path), {**header, "length": 1}, mac)
    elif header["protocol"] in AUTHENTICATED:
        raise KeyFileError(f"{path}: shares of {header['protocol']} without a MAC key: please report it")


def read_mac(path: Path, header: Json, share: Persistence, tested: bool = True) -> None:
    """Reads what :func:`write_mac` stored. Raises :class:`KeyFileError` if there is nothing, or no test of the MAC key where one must be."""
    if header["protocol"] not in AUTHENTICATED:
        return
    if not path.exists():
        raise KeyFileError(f"{path}: missing: restore it from a backup; LWE keys of earlier builds do not have it and cannot be used, make new ones")
    try:
        share.import_mac(ShareFile.read(str(path), {**header, "length": 1}))
    except ProgramError as error:
        raise KeyFileError(f"{path}: {error}") from None
    if tested and not share.key_tests:
        raise KeyFileError(f"{path}: {NO_KEY_TEST}")


def write_public_files(folder: Path, info: KeyInfo, public: dict[str, bytes]) -> KeyInfo:
    """Stores public files; returns the metadata with their digests."""
    for name, data in public.items():
        write_atomically(folder / name, data)
    return replace(info, files={name: hashlib.sha256(data).hexdigest() for name, data in public.items()})


def write_info(folder: Path, info: KeyInfo) -> None:
    """Stores the metadata of a key; from now on the key counts."""
    write_atomically(folder / "key.json", json.dumps(info.to_json(), indent=1).encode() + b"\n")


def load_key(folder: Path) -> KeyInfo:
    """Reads the metadata of a key."""
    path = folder / "key.json"
    if (folder / "lwe.json").exists():
        raise KeyFileError(f"{folder}: a key of LWE, which SEAL has no use for: name a key of CKKS, BFV or BGV")
    if not path.exists():
        raise KeyFileError(f"{folder}: no key here (no key.json): make one with keyquorum keygen")
    try:
        return KeyInfo.from_json(json_loads(path.read_text()))
    except (ValueError, KeyError, TypeError, AttributeError, ParameterError, PolicyError) as error:
        raise KeyFileError(f"{path}: not the metadata of a key ({error}): restore it from a backup") from None


def load_public_file(folder: Path, info: KeyInfo, name: str) -> bytes:
    """Reads a public key file and checks it against the metadata."""
    return read_public_file(folder, info.files, name)


def read_public_file(folder: Path, files: dict[str, str], name: str) -> bytes:
    """Reads a public file of a key of any kind, and checks it. ``files``: SHA-256 of each. Raises KeyFileError."""
    if name not in files:
        raise KeyFileError(f"{folder}: this key was made without {name}: make a key with it")
    path = folder / name
    if not path.exists():
        raise KeyFileError(f"{path} is missing: copy it from another party")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != files[name]:
        raise KeyFileError(f"{path} is damaged: copy it from another party")
    return data


def holds_a_key(folder: Path) -> bool:
    """Whether there is a key of any kind: of an FHE library, or of LWE."""
    return any((folder / name).exists() for name in ("key.json", "lwe.json"))


MAKING = "making"
"""Folder of a party in which keys are made."""


class NewKey:
    """The name of a key that is being made, claimed at this party before any work: of two runs one gets it. ``folder``: where the key's files
    are written; :meth:`publish` moves it to its place, whole or not at all.

    The claim is a lock that names its holder (:class:`FileLock`): the claim of a dead process is nobody's. What such a process left is removed
    once all parties have claimed the name, so that none of them has the key.
    """

    def __init__(self, context: PartyContext, key: str) -> None:
        committee, self._session, self._key = context.committee, context.session, key
        self._target = committee.key_folder(context.party, key)
        self._making = committee.party_folder(context.party) / MAKING / key
        self._claim = FileLock(self._making.parent / f".{key}.claim", f"key generation of {key!r}", remove=True)
        self.folder = self._making / secrets.token_hex(8)

    def __enter__(self) -> NewKey:
        self._making.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._claim.take():
            raise KeyFileError(f"{self._target}: a key of this name is being made, by {self._claim.holder()}: wait for it, or choose another name")
        try:
            self._check_free()
            self._session.compare("name of the new key", hashlib.sha256(self._key.encode()).digest())
            if self._making.exists():
                shutil.rmtree(self._making)
            self.folder.mkdir(parents=True, mode=0o700)
        except BaseException:
            self._end()
            raise
        return self

    def _check_free(self) -> None:
        if holds_a_key(self._target):
            raise KeyFileError(f"{self._target}: there is a key of this name already: choose another name")
        if self._target.exists() and any(self._target.iterdir()):
            raise KeyFileError(f"{self._target}: there are files without a key (no key.json): move them away, or choose another name")

    def publish(self) -> None:
        """From now on the key counts."""
        self._target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._check_free()
        os.rename(self.folder, self._target)  # never onto a folder that is not empty
        sync_folder(self._target.parent)

    def __exit__(self, *_: object) -> None:
        # A finished key stays: other parties may have theirs in its place.
        if self.folder.exists() and not holds_a_key(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
        self._end()

    def _end(self) -> None:
        with suppress(OSError):  # there is something in it, or it was not made
            self._making.rmdir()
        self._claim.release()
