"""What a scheme is to the rest of the project: one interface, behind which each scheme is a package.

A package ``keyquorum/schemes/NAME`` has a module ``scheme`` with ``SCHEME``, an instance of :class:`KeyScheme`, of encryption :class:`Scheme`; :mod:`keyquorum.schemes` finds it.
Key generation, decryption, pools, the served committee, ``inspect``, the API and the command line are written once, over what follows:

* :class:`.Parameters`: a parameter set (this and the next three: :mod:`.keys`).
* :class:`.KeyRequest`: a key to be made, with the options of its scheme; it refuses what cannot be made.
* :class:`.KeyInfo`: metadata of a key, and the shared vectors of its secret (:class:`.SecretVector`).
* :class:`.KeyMaterial`: a key in memory: metadata, public files, and this party's shares.
* :class:`.Texts`: what people are told (:mod:`.texts`).
* :class:`.Variant`: a rounding, its preprocessing, and how it uses it.
* :class:`KeyScheme`: reads all of these, and makes keys.
* :class:`Scheme`: of encryption; reads ciphertexts as well, computes phases, and plaintexts from rounded phases.

Nothing here knows a scheme. Outside of a scheme's package only evaluation, approvals, demonstrations and benchmarks know what is in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.shares import Shares
from keyquorum.sharing.variants import PaddedOutput, Variant

from .holding import require_shares
from .keys import K, KeyInfo, KeyMaterial, KeyRequest, P, Parameters, Plain, R, SecretVector
from .texts import C, KeyTexts, Texts

Words = NDArray[np.uint64]
EXACT = "round_ltz_circuit"
"""The rounding that is never wrong, which every scheme with roundings has."""
MASKED = "round_mask_open"
"""A rounding that is sometimes wrong, with errors that depend on the noise."""
MASKED_ONE = "round_mask_open_one"
"""The same for LWE, with less to send."""
FIT_RUNS = 16
"""Tests of a key's shares against its public key in all (:meth:`KeyScheme.prove_fit`): what they reveal is in the budget of the key."""


class ErrorBound(Protocol):
    """The error that joint decryption adds to a value of an approximate scheme."""

    @property
    def largest(self) -> float:
        """The error that no value is expected to exceed."""

    def text(self) -> str:
        """One line for users."""


@dataclass(frozen=True)
class Decrypted:
    """What a receiver gets of one ciphertext file: the bytes of its plaintext file."""

    plaintext: bytes


@dataclass(frozen=True)
class EncryptedFile:
    """A ciphertext file that was written: its bytes, and the key that it is encrypted under."""

    path: Path
    data: bytes = field(repr=False)
    info: KeyInfo

    def stated(self) -> list[str]:
        """Lines for people: what joint decryption will give, as far as that is known."""
        return []

    def warnings(self) -> list[str]:
        """What is wrong with it, a line each."""
        return []

    def described(self) -> Plain:
        """Plain data."""
        return {"output": self.path, "bytes": len(self.data), "key_id": self.info.key_id}


class KeyScheme(ABC, Generic[K, P, R]):
    """A scheme as far as its keys go: parameter sets, generation, storage, ``inspect``. Its classes: ``K`` of the metadata of keys, ``P`` of parameter
    sets, ``R`` of requests for keys. What keys are for is in subclasses: joint decryption (:class:`Scheme`), or evaluation of a function of the key (:mod:`keyquorum.schemes.prf`).

    ``texts``: what people are told; ``names``: of the schemes as parameter sets have them; ``order``: schemes of lower order come first in lists, and the first
    one gets files that no other claims; ``job_fields``: what a ``keygen`` job has besides the fields of all schemes, with types;
    ``file_fields``: fields by which a TOML file is known as a parameter set, besides ``scheme``.
    """

    texts: KeyTexts[K, P]
    names: ClassVar[tuple[str, ...]]
    order: ClassVar[int]
    job_fields: ClassVar[Mapping[str, type]] = {}
    file_fields: ClassVar[tuple[str, ...]] = ()
    subset_vectors: ClassVar[int] = 0
    """Secret vectors, the first ones, of which subsets of parties can have shares (:mod:`keyquorum.schemes.subset_shares`), to use the key without the
    others; 0: there are no such shares."""

    @property
    def title(self) -> str:
        """The scheme's name for people."""
        return self.texts.title

    # Parameter sets

    @abstractmethod
    def set_names(self) -> list[str]:
        """Names of the shipped parameter sets."""

    @abstractmethod
    def load(self, name_or_path: str | Path, warn: bool = True) -> P:
        """A shipped set by name, or a set of a TOML file. ``warn``: with SecurityWarning, of a set without claimed security.
        Raises UnknownParameterSetError or ParameterError."""

    # Keys

    @abstractmethod
    def request(self, parameters: P, options: Mapping[str, object]) -> R:
        """A key to be made, from the options of :func:`keyquorum.api.keygen`. Raises ParameterError for an option that the scheme has no use for."""

    @abstractmethod
    def request_from_job(self, job: Plain) -> R:
        """Inverse of :meth:`KeyRequest.to_json`; refuses parameter sets and options that are none."""

    @abstractmethod
    def key_from_json(self, data: Plain) -> K:
        """Inverse of :meth:`KeyInfo.to_json`. Raises ValueError, KeyError, TypeError, ParameterError or PolicyError."""

    @abstractmethod
    def generate(self, context: PartyContext, request: R, folder: Path | None = None) -> KeyMaterial[K]:
        """Makes a key jointly: every party calls this. The parties compare what is public before it returns. ``folder``: of the new key, for public files
        that are written in pieces (None: the key is not stored)."""

    def undecryptable(self, info: K, committee: Committee) -> str:
        """Why a committee cannot decrypt under this key, in one line; empty where it can, and for keys that decrypt nothing."""
        return ""

    def weaknesses_in(self, info: K, committee: Committee) -> list[str]:
        """What a committee that gets a key from another one cannot promise for it, a line each, for a warning. The default: nothing."""
        return []

    def vectors_for(self, info: K, committee: Committee) -> tuple[SecretVector, ...]:
        """The vectors of which a committee has shares while it holds a key, whoever made the key. Raises ParameterError for keys that it cannot hold. The default: the vectors of the key, and no
        committee with MACs."""
        if committee.capabilities.macs:
            raise ParameterError(f"{committee.protocol}: keys of {info.parameters.name} are not held with MACs: choose a committee without MACs")
        return require_shares(info.secrets, committee)

    def passed_on(self, info: K, held: Sequence[SecretVector], committee: Committee, burned: bool = False) -> tuple[Domain | None, ...]:
        """How a committee gets the vectors that it will have of a key (:meth:`vectors_for`) from one that has those in ``held``: the domain in which summands of each are dealt, or None for the last one if the
        new members make it (:meth:`make_last`). ``burned``: the other one has MACs and does not use them, so nothing that its members deal in one domain shows what they deal in another. Raises ParameterError where one does not come. The default: the same vectors are dealt in their domains."""
        wanted = self.vectors_for(info, committee)
        if tuple(held[: len(wanted)]) != wanted:
            missing = ", ".join(vector.domain for vector in wanted if vector not in held)
            raise ParameterError(
                f"{committee.protocol} holds it with shares over {missing} too, which the committee before does not have and a resharing does not make: choose another protocol, or make a new key there"
            )
        return tuple(Domain.parse(vector.domain) for vector in wanted)

    def make_last(self, context: PartyContext, info: K, held: Sequence[Shares]) -> Shares:
        """Shares of the last vector of a committee, from those of the others, to which more is appended; the caller is the owner of what it gets. Every member calls this, after the run was counted as a test of shares
        (:data:`FIT_RUNS`). Raises :class:`.CheckError`."""
        raise NotImplementedError(f"{self.title} makes no shares of shares: this is a bug, please report it")

    def check_public(self, folder: Path, info: K) -> None:
        """Refuses public files that are not of the key, beyond their hashes. Raises KeyFileError."""

    def check_made(self, folder: Path, info: K) -> None:
        """Refuses public files of a new key, beyond their hashes, before it counts: every party checks what it wrote, without all of it in memory. Raises
        KeyFileError."""

    def check_fit(self, info: K, committee: Committee) -> None:
        """Refuses keys and committees without a test of shares against the public key (:meth:`prove_fit`). Raises ParameterError."""
        raise ParameterError(
            f"{info.parameters.name}: there is no test of shares of {self.title} against a public key: restore a backup of the party, or make a new key"
        )

    def prove_fit(self, context: PartyContext, info: K, shares: Sequence[ShareVector], folder: Path, begun: Callable[[], object]) -> None:
        """Tests whether the parties' shares of all secret vectors are those of the secret of the public key in ``folder``, of which they compared the hash. Opens nothing of the key; every party calls
        this. ``begun``: called before anything is opened. Raises :class:`.CheckError`, and what :meth:`check_fit` raises."""
        self.check_fit(info, context.committee)
        raise NotImplementedError(f"{self.title} has a check without its test: this is a bug, please report it")

    @abstractmethod
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of files of the scheme, in the order in which ``keyquorum inspect`` tries them."""

    def exported(self, info: K) -> dict[str, bytes]:
        """Files that go into an exported key folder besides metadata and public files."""
        return {}

    def warnings(self, info: K) -> list[str]:
        """Weaknesses of a key, a line each, for a warning at each decryption."""
        return []

    def rotations(self, parameters: P, steps: Sequence[int]) -> tuple[int, ...]:
        """What a key needs for rotations by these steps, as its option ``galois_elements``. Raises ParameterError where there are none."""
        if steps:
            raise ParameterError(f"--step is for Galois keys of SEAL, and {parameters.name} is a set of {self.title}: leave it out")
        return ()

    def check_backend(self, parameters: P, backend: str, link: str | None) -> None:
        """Refuses a backend, or simulated links, with which the scheme makes no keys. Raises ParameterError."""

    def key_error(self, info: K) -> ErrorBound | None:
        """The error of a key's decryptions under usual conditions; None for exact schemes."""
        return None

    def start(self, folder: Path, info: K, used: int = 0, recent: Sequence[Json] = ()) -> None:
        """Writes what a party keeps of a new key besides shares and public files, such as a count, which begins with ``used``, of which ``recent`` (:meth:`recent`) are lines. The default writes nothing."""

    def recent(self, folder: Path, info: K) -> list[Json]:
        """Lines of what a party counted in the last hour, each with ``receiver``, ``id``, ``count`` and ``time``, where limits are of an hour. Raises KeyFileError for a damaged count. The default has none."""
        return []

    def check_recent(self, line: Json) -> None:
        """Refuses what is no line of :meth:`recent`. Raises ValueError."""
        raise ValueError("keys of this kind have no limit an hour")

    def used(self, folder: Path, info: K) -> int:
        """What a party has counted under a key in what :meth:`start` wrote. Raises KeyFileError for a damaged count."""
        return 0


class Scheme(KeyScheme[K, P, R], Generic[K, P, R, C]):
    """A scheme of encryption, or several that one library has. ``C``: the content of a ciphertext file.

    ``batch``: most ciphertexts that a served committee decrypts at once, by default; ``most_asked``: most ciphertexts of a request; ``names_key``:
    whether ciphertext files name their key; ``verified``: whether committees that verify products decrypt with what they promise.
    """

    texts: Texts[K, P, C]
    batch: ClassVar[int]
    most_asked: ClassVar[int] = 1
    names_key: ClassVar[bool] = False
    verified: ClassVar[bool] = False

    # Files of values, without any party

    @abstractmethod
    def encrypt_to(self, folder: Path, info: K, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        """Encrypts numbers under the public key in ``folder``, into a file. ``bound``: on their absolute values, where the scheme estimates noise.
        Raises ValuesError, ParameterError or KeyFileError."""

    @abstractmethod
    def decode_file(self, info: K, path: Path, count: int = 0) -> tuple[NDArray[Any], ErrorBound | None]:
        """The first ``count`` values (0: all) of a plaintext file, and the error that joint decryption added. Raises CiphertextError."""

    # Ciphertexts, phases, plaintexts

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins so has ciphertexts of this scheme, and of no other."""

    @abstractmethod
    def parse(self, info: K, data: bytes, what: str, rounding: str) -> C:
        """The content of a ciphertext file as it is; ``what`` names it in errors. Raises CiphertextError or SealFormatError for what is none, of
        another key if the file names its key, or states more noise than the rounding takes."""

    def read_ciphertext(self, info: K, path: Path, data: bytes, rounding: str) -> C:
        """The content of a ciphertext file, ready for joint decryption. Raises CiphertextError or SealFormatError, which name ``path``, for data that
        are not a ciphertext, damaged, of another key, or known to have more noise than the rounding takes. The default: :meth:`parse`."""
        return self.parse(info, data, str(path), rounding)

    def check_decryption(self, info: K, ciphertexts: Sequence[C], receiver: int, rounding: str) -> None:
        """Refuses what cannot be decrypted, from what is public alone. Raises ParameterError or CiphertextError. The default: the receiver is a party."""
        if not 0 <= receiver < info.parties:
            raise ParameterError(f"there is no party {receiver}: choose a receiver from 0 to {info.parties - 1}")

    def check_accepted(self, folder: Path, info: K, paths: Sequence[Path], digests: Sequence[str]) -> None:
        """Refuses ciphertexts (SHA-256 in ``digests``) that this party has not agreed to decrypt, where keys want that. Raises ApprovalError."""

    def vectors_needed(self, info: K, ciphertexts: Sequence[C]) -> int | None:
        """How many of the secret vectors the decryption takes, the first ones; None: all."""
        return None

    def checks_noise(self, info: K) -> bool:
        """Whether there is a joint check of noise for ciphertexts under this key (:meth:`noise_within`)."""
        return False

    def noise_within(self, context: PartyContext, info: K, shares: Sequence[ShareVector], ciphertexts: Sequence[C], receiver: int) -> bool | None:
        """Whether all these ciphertexts have less than half of the noise that their decryption takes; None at parties that do not round. Every party calls this. Opens one bit."""
        raise ParameterError(f"{self.title} has no check of noise: leave it out")

    @abstractmethod
    def plaintext_size(self, info: K, ciphertext: C) -> int:
        """Bytes of the plaintext file of a ciphertext file, at most."""

    @abstractmethod
    def item_count(self, info: K, ciphertext: C) -> int:
        """Items of the pool that a ciphertext file takes."""

    def errors(self, info: K, paths: Sequence[Path]) -> Sequence[ErrorBound] | None:
        """The error that joint decryption adds to each ciphertext file; None for exact schemes."""
        return None

    def rounds(self, info: K) -> bool:
        """Whether decryption is by a rounding, which whoever asks may choose."""
        return True

    def pooled(self, info: K, wanted: bool) -> bool:
        """Whether a decryption takes masks from a pool. ``wanted``: whoever asks wants that."""
        return wanted

    @abstractmethod
    def secret_domain(self, parameters: P) -> Domain:
        """The domain in which the secret of a set is shared; of several the first."""

    def counts(self, parameters: P, rounding: str) -> bool:
        """Whether keys of a set count decryptions by this rounding (:meth:`.KeyInfo.most_decryptions`)."""
        return False

    @abstractmethod
    def phases(
        self, context: PartyContext, group: RoundingGroup, info: K, shares: Sequence[ShareVector], variant: Variant, ciphertexts: Sequence[C],
        keep: bool = False,
    ) -> Words:  # fmt: skip
        """Our summands of the phases of all ciphertexts one after another, as the variant takes them: its items lie in the last axis. Local, but for
        one comparison with ``keep``; every party calls this. ``keep``: see :meth:`.Backend.run`."""

    @abstractmethod
    def plaintexts(self, info: K, ciphertexts: Sequence[C], words: Words) -> Sequence[Decrypted]:
        """Plaintexts from the rounded phases of all ciphertexts, [items], as :meth:`.Variant.use` opens them."""

    def decrypt_without_pool(
        self, context: PartyContext, info: K, shares: Sequence[ShareVector], ciphertexts: Sequence[C], receiver: int, rounding: str
    ) -> Sequence[Decrypted] | None:  # fmt: skip
        """Decryption with masks that are made for it, or without any; every party calls this, None at all but the receiver. A scheme whose
        decryptions are always :meth:`pooled` has none."""
        raise NotImplementedError(f"decryptions of {self.title} take masks from a pool")

    # The served committee

    @abstractmethod
    def check_served(self, committee: Committee, rounding: str) -> None:
        """Refuses what a served committee, which counts no decryptions and has receivers outside, cannot do. Raises ParameterError."""

    def unit(self, parameters: P) -> int:
        """Items of the pool that a ciphertext takes."""
        return 1

    @abstractmethod
    def request_limit(self, parameters: P) -> int:
        """Bytes of the longest request."""

    def key_of(self, data: bytes, what: str) -> K:
        """Metadata of a key as far as a ciphertext file has them, for receivers without the key's folder; see ``names_key``."""
        raise CiphertextError(f"{what}: files of {self.title} do not tell their key: name it")

    def request_body(self, info: K, path: Path, data: bytes) -> bytes:
        """A ciphertext file as a served committee takes it. Raises CiphertextError or SealFormatError for what is none, or of another key."""
        self.read_ciphertext(info, path, data, EXACT)
        return data

    def request_parts(self, info: K, data: bytes, ciphertext: C) -> Iterator[tuple[bytes, int]]:
        """The requests for a ciphertext file, one after another, with the items of each: one, unless ``most_asked`` is less than it has."""
        yield data, self.item_count(info, ciphertext)

    def message_modulus(self, parameters: P, committee: Committee) -> int:
        """The prime modulo which shares of messages are in answers of a committee; 0 where they are modulo 2^k."""
        return 0

    @abstractmethod
    def combine(self, parameters: P, shares: Sequence[Words], modulus: int) -> Words:
        """The rounded phases, [items], of which all members of a group hold these shares, [parts, items] each; see :meth:`.Variant.use`. ``modulus``: that of :meth:`message_modulus`. Raises
        PartyError for what cannot be one."""

    # Receivers outside, of committees with MACs

    def padded(self, parameters: P) -> PaddedOutput:
        """How messages are opened under pads of receivers. The default, for schemes whose committees have no MACs, raises ParameterError."""
        raise ParameterError(f"{self.title} has no committees with MACs: take another committee")

    def words_of(self, parameters: P, messages: Words) -> Words:
        """What :meth:`plaintexts` takes, from messages modulo 2^(bits - shift) of :meth:`padded`. The default: the messages."""
        return messages

    # Roundings

    @abstractmethod
    def variant(self, committee: Committee, rounding: str, parameters: P, width: int, levels: int) -> Variant:
        """A rounding for a set, with the preprocessing of a committee. Raises ParameterError for a committee that cannot."""


AnyScheme = KeyScheme[KeyInfo, Parameters, KeyRequest]
"""A scheme to those who know none: they give back what they got from it."""
AnyEncryption = Scheme[KeyInfo, Parameters, KeyRequest, object]
"""The same of a scheme of encryption."""
