"""A committee: who the parties are, where they listen, and by which certificates they are known.

On disk, in a folder::

    committee.toml            public, the same for every party
    party-<i>/identity.pem    party i's private key and certificate (0600); on party i's host only
    party-<i>/keys/<name>/    party i's shares of the key <name>, and the public key files
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import CommitteeError, ParameterError
from .plain import read_text, toml_loads
from .protocols import COMMITTEES, PROTOCOLS, Protocol, no_committee

COMMITTEE_FILE = "committee.toml"
"""File in a committee's folder."""
MAC_KEY = "mac.key"
"""File in a party's folder."""
OPENINGS = {
    "direct": "every party sends to every other: one round, n - 1 messages of each",
    "star": "one party (of long vectors several, each a part) adds up and sends the sum: two rounds, one message of each a round",
}
"""How additive sharing opens values, with the cost in rounds and messages. ``star`` is an opening through a king. Where t + 1 parties of a committee
round, these parties alone open."""
BASE_OT = {
    "curve25519": "Diffie-Hellman: a party that keeps what it received can learn secrets of the others later, with a quantum computer",
    "ml-kem": "ML-KEM-768, which rests on lattices as FHE does: at most 1.0 MB more from each party to each other one in a session",
}
"""How oblivious transfer begins, in protocols that have it."""
NEW_BASE_OT = "ml-kem"
"""What new committees have. A committee file without an entry has ``curve25519``, the only one that there was before."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: str, what: str) -> str:
    """Returns ``name`` if it can be the name of a file, or refuses it."""
    if not _NAME.fullmatch(name):
        raise CommitteeError(f"{what} {name!r}: use 1 to 64 letters, digits, dots, dashes or underscores")
    return name


def check_apart(addresses: Sequence[tuple[str, int]], where: str = "") -> None:
    """Refuses two parties at one address. ``where`` begins the error."""
    for i, each in enumerate(addresses):
        if (first := addresses.index(each)) < i:
            raise CommitteeError(f"{where}party {first} and party {i} have the same address {place_text(*each)}: give each party a port of its own")


def place_text(host: str, port: int) -> str:
    """HOST:PORT, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True)
class Party:
    """One party: the address where it listens, and the SHA-256 fingerprint (64 hexadecimal digits) of its certificate."""

    index: int
    host: str
    port: int
    fingerprint: str

    @property
    def place(self) -> str:
        """Its address, for people."""
        return place_text(self.host, self.port)


class CommitteeShape(NamedTuple):
    """What the distribution of a committee's flooding depends on: protocol, number of parties, and how many of them may be corrupted."""

    protocol: str
    parties: int
    threshold: int


@dataclass(frozen=True)
class Committee:
    """The parties of a committee, their protocol, and the folder."""

    folder: Path
    name: str
    protocol: str
    threshold: int
    parties: tuple[Party, ...]
    openings: str = "direct"
    """How additive shares are opened, one of :data:`OPENINGS`."""
    base_ot: str = "curve25519"
    """How oblivious transfer begins, one of :data:`BASE_OT`."""
    lpn: bool = True
    """Whether elements with MACs over prime fields may come from learning parity with noise; otherwise they come from oblivious transfer alone."""

    @property
    def size(self) -> int:
        """Number of parties."""
        return len(self.parties)

    @property
    def shape(self) -> CommitteeShape:
        """Protocol, size and threshold."""
        return CommitteeShape(self.protocol, self.size, self.threshold)

    @property
    def digest(self) -> bytes:
        """32 bytes that identify the committee: name, protocol, threshold, all certificates, how values are opened, how oblivious transfer begins, and whether it assumes LPN."""
        said = [self.name, self.protocol, self.threshold, [[p.index, p.fingerprint] for p in self.parties]]
        text = json.dumps([*said, *self._chosen().values(), *([] if self.lpn else ["no lpn"])])
        return hashlib.sha256(b"keyquorum committee v1" + text.encode()).digest()

    def _chosen(self) -> dict[str, str]:
        """The choices that are not those of a file without them, by their name in the file."""
        usual = {"openings": "direct", "base_ot": "curve25519"}
        chosen = {"openings": self.openings, "base_ot": self.base_ot}
        return {name: value for name, value in chosen.items() if value != usual[name]}

    def entries(self) -> list[tuple[str, str]]:
        """The input of :attr:`digest`, by name, so that an error can name the entry in which the files of two parties differ."""
        said = [("name", self.name), ("protocol", self.protocol), ("threshold", str(self.threshold)), ("parties", str(self.size))]
        said += [("openings", self.openings), ("base_ot", self.base_ot), ("lpn", json.dumps(self.lpn))]
        said += [(f"party-{p.index}.fingerprint", p.fingerprint) for p in self.parties]
        return [(f"committee.{name}", value) for name, value in said]

    @property
    def capabilities(self) -> Protocol:
        """The capabilities of the committee's protocol."""
        return COMMITTEES[self.protocol]

    @property
    def ring_protocol(self) -> str | None:
        """The protocol for programs modulo 2^k, if the committee's sharing has one."""
        return self.capabilities.ring_protocol

    @property
    def field_protocol(self) -> str:
        """The protocol for programs over prime fields."""
        return self.capabilities.field_protocol

    @property
    def plain_field_protocol(self) -> str:
        """The same without MACs, which over a small prime give no security, and which shares that were scaled locally do not have."""
        return self.capabilities.plain_field_protocol

    @property
    def rounding_protocols(self) -> tuple[str, str]:
        """The protocols of the parties that round (all parties, or t + 1): modulo 2^k and over prime fields."""
        if self.ring_protocol is None and self.verifies_products:
            require_semi_honest(self, "a rounding without shares modulo 2^k")
        if self.capabilities.quorum is not None:
            return self.capabilities.quorum
        assert self.ring_protocol is not None, "a committee without a quorum rounds modulo 2^k"
        return self.ring_protocol, self.plain_field_protocol

    @property
    def protocols(self) -> list[str]:
        """All protocols that the committee's plans run."""
        named = [self.field_protocol, self.plain_field_protocol, self.ring_protocol]
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def rounds_with_triples(self) -> bool:
        """Whether the parties that round multiply with triples, which come from oblivious transfer."""
        return PROTOCOLS[self.rounding_protocols[0]].oblivious_transfer

    @property
    def authenticated(self) -> bool:
        """Whether shares carry MACs."""
        return self.capabilities.macs

    @property
    def verifies_products(self) -> bool:
        """Whether parties may be malicious, and products are verified: such a committee runs the plans that are argued and tested for it, and no others. Of a
        subset: whether this holds for the committee whose parties these are."""
        return self.whole.capabilities.verifies_products

    @property
    def malicious(self) -> bool:
        """Whether parties may be malicious: shares carry MACs, or products are verified."""
        return self.whole.capabilities.adversary == "malicious"

    @property
    def share_parts(self) -> int:
        """Elements that a party holds of a shared element, MACs included."""
        return self.capabilities.parts(self.size, self.threshold)

    @property
    def summands(self) -> int:
        """Summands of a value among the parties that round (all parties, or t + 1)."""
        return self.threshold + 1 if self.capabilities.quorum is not None else self.capabilities.summands(self.size)

    def party_folder(self, index: int) -> Path:
        """Folder of one party."""
        return self.folder / f"party-{index}"

    def identity_path(self, index: int) -> Path:
        """Private key and certificate of one party."""
        return self.party_folder(index) / "identity.pem"

    def mac_key_path(self, index: int) -> Path:
        """Key of one party's MACs, where the protocol has them."""
        return self.party_folder(index) / MAC_KEY

    def number_of(self, index: int) -> int:
        """The number by which messages name a party: of a subset, that in the whole committee."""
        return index

    @property
    def members(self) -> list[int]:
        """The numbers of all these parties (:meth:`number_of`)."""
        return [self.number_of(party) for party in range(self.size)]

    def index_of(self, number: int) -> int:
        """Inverse of :meth:`number_of`. Raises ParameterError for a party that is none of these."""
        if not 0 <= number < self.size:
            raise ParameterError(f"there is no party {number}: choose 0 to {self.size - 1}")
        return number

    @property
    def whole(self) -> Committee:
        """The committee that made the keys: of a subset, the one whose parties these are."""
        return self

    def key_folder(self, index: int, key: str) -> Path:
        """Folder of one party's part of a key."""
        return self.party_folder(index) / "keys" / check_name(key, "key name")

    def local_parties(self) -> list[int]:
        """Parties whose identity lies on this host."""
        return [p.index for p in self.parties if self.identity_path(p.index).exists()]

    def started_by(self, index: int) -> tuple[Path, int]:
        """The folder and the number by which the process of a party is started."""
        return self.folder, self.number_of(index)

    def save(self) -> None:
        """Writes ``committee.toml``."""
        write_atomically(self.folder / COMMITTEE_FILE, self.text.encode())

    @property
    def text(self) -> str:
        """The content of ``committee.toml``."""
        lines = [
            f"name = {json.dumps(self.name)}",
            f"protocol = {json.dumps(self.protocol)}",
            f"threshold = {self.threshold}",
            *(f"{name} = {json.dumps(value)}" for name, value in self._chosen().items()),
            *([] if self.lpn else ["lpn = false"]),
        ]
        for p in self.parties:
            lines += ["", "[[party]]", f"index = {p.index}", f"host = {json.dumps(p.host)}", f"port = {p.port}"]
            lines.append(f"fingerprint = {json.dumps(p.fingerprint)}")
        return "\n".join(lines) + "\n"

    @staticmethod
    def load(folder: Path) -> Committee:
        """Reads and checks a committee folder."""
        path = folder / COMMITTEE_FILE
        if not path.exists():
            raise CommitteeError(f"{folder}: no committee here (no {COMMITTEE_FILE}): make one with keyquorum init {shlex.quote(str(folder))}")
        try:
            return Committee.parse(read_text(path), folder)
        except ValueError as error:
            raise CommitteeError(f"{path}: not a committee file ({error!r}): restore it, or run keyquorum init") from None

    @staticmethod
    def parse(text: str, folder: Path) -> Committee:
        """The committee of the content of a ``committee.toml``, checked. ``folder``: where it is, which begins errors. Raises CommitteeError."""
        path = folder / COMMITTEE_FILE
        try:
            data = toml_loads(text)
            parties = tuple(Party(int(p["index"]), str(p["host"]), int(p["port"]), str(p["fingerprint"])) for p in data.pop("party"))
            committee = Committee(
                folder, str(data.pop("name")), str(data.pop("protocol")), int(data.pop("threshold")), parties,
                str(data.pop("openings", "direct")), str(data.pop("base_ot", "curve25519")), data.pop("lpn", True),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CommitteeError(f"{path}: not a committee file ({error!r}): restore it, or run keyquorum init") from None
        if data:
            raise CommitteeError(f"{path}: unknown entry {next(iter(data))!r}: remove it")
        committee.check()
        check_apart([(p.host, p.port) for p in parties], f"{path}: ")
        return committee

    def check(self) -> None:
        """Refuses an impossible committee."""
        path = self.folder / "committee.toml"
        n = self.size
        if self.protocol not in COMMITTEES:
            raise CommitteeError(f"{path}: {no_committee(self.protocol)}")
        if self.openings not in OPENINGS:
            raise CommitteeError(f"{path}: unknown openings {self.openings!r}: choose one of {', '.join(OPENINGS)}")
        if self.base_ot not in BASE_OT:
            raise CommitteeError(f"{path}: unknown base_ot {self.base_ot!r}: choose one of {', '.join(BASE_OT)}")
        if self.openings == "star" and not self.capabilities.king_openings:
            able = sorted(p.name for p in COMMITTEES.values() if p.king_openings)
            raise CommitteeError(f"{path}: {self.protocol} opens values directly: star is for {', '.join(able[:-1])} and {able[-1]}")
        if not isinstance(self.lpn, bool):
            raise CommitteeError(f"{path}: lpn = {json.dumps(self.lpn)}: write true or false")
        if not self.lpn and not self.authenticated:
            able = sorted(p.name for p in COMMITTEES.values() if p.macs)
            raise CommitteeError(f"{path}: {self.protocol} assumes no LPN anyway: --no-lpn is for {' and '.join(able)}")
        if [p.index for p in self.parties] != list(range(n)):
            raise CommitteeError(f"{path}: parties must be numbered 0 to {n - 1} in order")
        self._check_threshold(path)
        for p in self.parties:
            if not 1 <= p.port <= 65535:
                raise CommitteeError(f"{path}: party {p.index} has port {p.port}: choose one from 1 to 65535")
            if p.fingerprint and not re.fullmatch(r"[0-9a-f]{64}", p.fingerprint):
                raise CommitteeError(f"{path}: party {p.index} has a malformed fingerprint: 64 hexadecimal digits")

    def _check_threshold(self, path: Path) -> None:
        """Refuses a number of parties or a threshold that the protocol does not have."""
        protocol, n, t = self.capabilities, self.size, self.threshold
        try:
            protocol.threshold(n, t)
        except ParameterError:
            if protocol.parties is not None:
                wanted = f"is for {protocol.parties} parties and threshold {protocol.most_corruptions(protocol.parties)}, not {n} and {t}"
            else:
                bound = "t < n/2" if not protocol.dishonest_majority else "t < n"
                rule = f"1 <= {bound}" if protocol.chooses_threshold else "t = n - 1" if protocol.dishonest_majority else "the largest t < n/2"
                wanted = f"needs n >= {protocol.least_parties} parties and {rule}, not n={n}, t={t}"
            raise CommitteeError(f"{path}: {protocol.name} {wanted}") from None

    def check_complete(self) -> None:
        """Refuses a committee of which fingerprints are missing."""
        missing = [p.index for p in self.parties if not p.fingerprint]
        if missing:
            raise CommitteeError(
                f"{self.folder / 'committee.toml'}: fingerprint of party {missing[0]} is missing: ask for it over a "
                f"channel that you trust, then: keyquorum trust {shlex.quote(str(self.folder))} {missing[0]} FINGERPRINT"
            )


def require_semi_honest(committee: Committee, plan: str) -> None:
    """Refuses a committee with verified products: ``plan``, as a subject of a sentence, promises nothing against malicious parties. Raises CommitteeError."""
    if committee.verifies_products:
        raise CommitteeError(
            f"{plan} is semi-honest so far, and {committee.protocol} is for malicious parties: it makes keys of seal and lwe, and decrypts BFV, BGV, CKKS and LWE; with shares modulo 2^k it also evaluates a PRF"
        )


def require_embedded(committee: Committee, backend: str) -> None:
    """Refuses another backend than the embedded engine for subsets, which only it runs, and where products are verified: plans take joint integers, and origins of shares,
    from it. Raises CommitteeError."""
    if committee.whole is not committee and backend != "embedded":
        raise CommitteeError(f"{backend} does not run subsets of a committee: leave out --backend, or --parties")
    if committee.verifies_products and backend != "embedded":
        raise CommitteeError(f"{committee.protocol}: plans take joint integers, which the backend {backend} does not have: leave out --backend")


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Writes a temporary file in the same folder, syncs it, and renames it: readers see the old or the new file, never a part.
    An OSError names the file."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder, name a file", str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "a device or a pipe, name a file", str(path))  # renaming would replace it
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)  # O_EXCL follows no link
        try:
            with os.fdopen(descriptor, "wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # unlocked temporary files are removed as leftovers (parties.traces)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:  # a failed write does not name its file
        raise OSError(error.errno, error.strerror, str(path)) from None


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
