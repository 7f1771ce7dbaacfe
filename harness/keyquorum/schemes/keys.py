"""Keys of every scheme: parameter sets, requests, metadata, and keys in memory. Part of the interface of :mod:`keyquorum.schemes.base`."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee, CommitteeShape, require_semi_honest
from keyquorum.model.needs import Needs
from keyquorum.model.plain import Json, is_count, is_hex

Plain = Json
"""Plain data, as JSON has it."""


class Parameters(Protocol):
    """A parameter set: a frozen dataclass of plain values. ``scheme``: as its key files have it, ``bfv`` or ``lwe``."""

    @property
    def name(self) -> str:
        """Its name, of which names of pools are made."""

    @property
    def scheme(self) -> str:
        """One of :attr:`Scheme.names`."""


@dataclass(frozen=True)
class SecretVector:
    """A vector that a key has as shares: ``length`` elements of ``domain`` (``F_q`` or ``Z2^k``). Share file j is of vector j."""

    domain: str
    length: int


@dataclass(frozen=True, kw_only=True)
class KeyInfo(ABC):
    """Metadata of a key, the same at every party. The schemes' classes add what their keys have besides.

    ``key_id``: 32 hexadecimal digits; ``protocol``, ``parties``, ``threshold``: of the committee that made it; ``transcript``: hash of all that was
    public when it was made (empty for keys of earlier formats); ``files``: SHA-256 of each public file.
    """

    key_id: str
    parameters: Parameters
    protocol: str
    parties: int
    threshold: int
    transcript: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @property
    @abstractmethod
    def secrets(self) -> tuple[SecretVector, ...]:
        """The shared vectors of the key, one share file each."""

    counted: ClassVar[bool] = False
    """Whether a party keeps a count of the key's decryptions (:mod:`keyquorum.schemes.counts`)."""

    def most_decryptions(self, rounding: str) -> int | None:
        """Ciphertexts that the key may ever decrypt by this rounding; None: any number, and they are not counted."""
        return None

    @property
    def most_counted(self) -> int:
        """The largest limit of decryptions that are counted; 0: none are."""
        return 0

    @property
    def shape(self) -> CommitteeShape:
        """Protocol, size and threshold of the committee that made the key."""
        return CommitteeShape(self.protocol, self.parties, self.threshold)

    @property
    def digest(self) -> bytes:
        """32 bytes that identify the key with its files and options: parties compare them before they use it."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).digest()

    def to_json(self) -> Plain:
        """Plain data, as ``key.json`` has it; the scheme reads it (:meth:`Scheme.key_from_json`)."""
        data = asdict(self)
        last = {name: data.pop(name) for name in ("transcript", "files")}
        return {**data, **last}

    def share_header(self, party: int, index: int) -> Plain:
        """Header of the share file of a secret vector."""
        return {
            "protocol": self.protocol,
            "domain": self.secrets[index].domain,
            "parties": self.parties,
            "threshold": self.threshold,
            "party": party,
            "key_id": self.key_id,
            "length": self.secrets[index].length,
        }

    def check_types(self, texts: Sequence[object] = (), numbers: Sequence[object] = ()) -> None:
        """Raises ValueError for entries of other types than these fields have; ``texts``, ``numbers``: further ones of the scheme's class."""
        texts = [self.protocol, self.transcript, *self.files, *self.files.values(), *texts]
        numbers = [self.parties, self.threshold, *numbers]
        if not (is_hex(self.key_id, 32) and all(isinstance(t, str) for t in texts) and all(map(is_count, numbers))):
            raise ValueError("entries of other types")


K = TypeVar("K", bound=KeyInfo)


@dataclass
class KeyMaterial(Generic[K]):
    """A key in memory: metadata, the bytes of its public files, and this party's shares, one share file a secret vector. ``written``: names of further
    public files, too large for memory, which are in the new key's folder already."""

    info: K
    public: dict[str, bytes]
    shares: list[ShareVector]
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeyRequest(ABC):
    """A key to be made: a parameter set, and the options of its scheme, as fields. Construction takes any values; the checks refuse. By default every
    set has keys, without weaknesses, and next to nothing is needed."""

    verified: ClassVar[bool] = False
    """Whether the key generation is argued and tested against malicious parties of a committee that verifies products. Others refuse such committees. A class that
    inherits from another says it for itself."""
    parameters: Parameters

    def to_json(self) -> Plain:
        """The fields of a ``keygen`` job that are the scheme's, ``parameters`` among them: see :meth:`Scheme.request_from_job`. The default: all fields."""
        return asdict(self)

    def check(self, contributors: int = 1) -> None:  # noqa: B027  # refuses nothing by default
        """Refuses what no committee can make. ``contributors``: the parties that may be corrupted, and one. Raises ParameterError, PolicyError."""

    @abstractmethod
    def check_committee(self, committee: Committee) -> None:
        """Refuses what this committee cannot make."""

    def check_plan(self, committee: Committee) -> None:
        """Refuses a committee against whose parties this key generation promises nothing, and what :meth:`check_committee` refuses."""
        if not vars(type(self)).get("verified", False):
            require_semi_honest(committee, f"key generation of {self.parameters.scheme} keys")
        self.check_committee(committee)

    def warnings(self, committee: Committee | None = None) -> list[str]:
        """Weaknesses of the key, and of its generation by a committee, a line each."""
        return []

    def needs(self, committee: Committee) -> Needs | None:
        """Memory and disk of the generation at each party, on the embedded engine; None: next to nothing."""
        return None


P = TypeVar("P", bound=Parameters)
R = TypeVar("R", bound=KeyRequest)
