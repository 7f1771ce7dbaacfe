"""Shares of a key for subsets of t parties: for every subset an additive sharing, of which a party keeps its share in each subset that has it (Benaloh,
Leichter, CRYPTO 1988). With them t parties use the key without the others, in committees whose own shares do not do for that (:mod:`.quorum_shares`).

In a party's key folder: ``lisss.json`` names the sharing, and ``lisss-<j>-<id>.kqs`` has the shares of secret vector j, packed, one subset after another
in lexicographic order. The metadata is written last: a file that it does not name belongs to a run that did not end, and is never read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import ShareFile
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.domains import Domain
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import Json, is_count, is_hex, json_loads
from keyquorum.model.subset import SUBSET_PROTOCOL, Subset, numbers_text
from keyquorum.parties.epochs.erasure import erase_files
from keyquorum.schemes import scheme_of, schemes
from keyquorum.schemes.base import AnyScheme
from keyquorum.sharing.numbers import kind_of

from .holding import holding_of, shares_in
from .keys import KeyInfo, SecretVector
from .quorum_shares import own_shares

SUBSETS = "lisss.json"
MOST_BYTES = 64_000_000
"""Bytes of subset shares at a party, at most."""
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SubsetSharing:
    """A sharing: its id, which all parties tossed, and the size t of subsets."""

    key_id: str
    id: str
    members: int


def ring_bits(domain: str) -> int:
    """k of a domain Z2^k. Raises ParameterError for a prime field."""
    found = Domain.parse(domain)
    if found.prime is not None:
        raise ParameterError("the key is shared over prime fields: subsets have shares modulo 2^k alone; take another key")
    return found.bits


def shared_vectors(info: KeyInfo, vectors: tuple[SecretVector, ...]) -> tuple[SecretVector, ...]:
    """Those of the secret ``vectors`` that the committee holds of a key of which subsets have shares. Raises ParameterError for a scheme without."""
    scheme = scheme_of(info)
    require_shared(scheme, info.parameters.scheme.upper())
    return vectors[: scheme.subset_vectors]


def require_shared(scheme: AnyScheme, name: str = "") -> None:
    """Refuses a scheme of whose keys no shares for subsets are made. ``name``: of the scheme of a key, where it is known. Raises ParameterError."""
    if not scheme.subset_vectors:
        titles = ", ".join(scheme.title for scheme in schemes() if scheme.subset_vectors)
        raise ParameterError(f"a key of {name or scheme.title}: shares for subsets are made of keys of {titles} alone: name another key")


def require_plain(committee: Committee) -> None:
    """Refuses a committee whose subsets could not check what its parties can. Raises ParameterError."""
    if not kind_of(committee).plain_shares:
        raise ParameterError(f"{committee.protocol}: shares of subsets have no MACs, which the committee was chosen for: take another committee")


def vector_bytes(length: int, bits: int) -> int:
    """Bytes of a packed vector: bits eight to a byte, others in words of 4 or 8 bytes."""
    return -(-length // 8) if bits == 1 else _word(bits).itemsize * length


def _word(bits: int) -> np.dtype[np.uint32] | np.dtype[np.uint64]:
    """The word of a file that holds so many bits."""
    return np.dtype("<u4") if bits <= 32 else np.dtype("<u8")


def check_subsets(committee: Committee, info: KeyInfo, members: int) -> int:
    """Bytes of shares at each party. Raises ParameterError for sharings that are not made."""
    parties, threshold = committee.size, committee.threshold
    if isinstance(committee, Subset):
        raise ParameterError("shares of subsets are made by the whole committee: leave out --parties")
    if own_shares(committee) is not None:
        raise ParameterError(
            f"{committee.protocol}: any {threshold + 1} parties use keys with their own shares: leave this out, and name them with --parties of pool fill, decrypt and serve"
        )
    require_plain(committee)
    if not 2 <= members <= threshold:
        choice = f"choose 2 to {threshold}" if threshold >= 2 else "leave this out"
        raise ParameterError(
            f"-t {members}: {choice}, since any {threshold + 1} of the {parties} parties have the key already by the committee's own shares"
        )
    shared = shared_vectors(info, scheme_of(info).vectors_for(info, committee))
    count, size = comb(parties - 1, members - 1), sum(vector_bytes(s.length, ring_bits(s.domain)) for s in shared)
    if count * size > MOST_BYTES:
        raise ParameterError(
            f"{members} of {parties}: C({parties - 1}, {members - 1}) = {count:,} shares of {size:,} bytes are {count * size:,} bytes at each party, "
            f"above {MOST_BYTES:,}: choose another t, or fewer parties"
        )
    return count * size


def own_subsets(parties: int, members: int, party: int) -> list[tuple[int, ...]]:
    """The subsets that have a party, in lexicographic order."""
    return [subset for subset in combinations(range(parties), members) if party in subset]


def _header(folder: Path, info: KeyInfo, sharing: SubsetSharing, party: int, index: int) -> Json:
    held = holding_of(folder, info)
    vector, parties = held.vectors[index], held.parties
    # The id of the sharing stands for that of the key: files of two runs are foreign to one another.
    said = f"{info.key_id} {sharing.id} {sharing.members}".encode()
    return {
        "protocol": SUBSET_PROTOCOL, "domain": vector.domain, "parties": parties, "threshold": sharing.members - 1, "party": party,
        "key_id": hashlib.sha256(b"keyquorum subset shares" + said).hexdigest()[:32],
        "length": vector.length * comb(parties - 1, sharing.members - 1),
    }  # fmt: skip


def _path(folder: Path, sharing: SubsetSharing, index: int) -> Path:
    return shares_in(folder) / f"lisss-{index}-{sharing.id}.kqs"


def packed(vectors: Words, bits: int) -> NDArray[np.uint8]:
    """Vectors [count, length] modulo 2^bits in the form of the file: [count, :func:`vector_bytes`]."""
    if bits == 1:
        return np.packbits((vectors & np.uint64(1)).astype(np.uint8), axis=1, bitorder="little")
    return vectors.astype(_word(bits)).view(np.uint8)


def write_vectors(folder: Path, info: KeyInfo, sharing: SubsetSharing, party: int, index: int, vectors: NDArray[np.uint8]) -> None:
    """Stores this party's shares of a secret vector, [subsets, bytes] as :func:`packed` gives them. They do not count before :func:`publish`."""
    ShareFile.write(str(_path(folder, sharing, index)), _header(folder, info, sharing, party, index), vectors.tobytes())


def publish(folder: Path, info: KeyInfo, sharing: SubsetSharing) -> None:
    """From now on the sharing counts, in place of an older one, whose files are erased."""
    write_atomically(shares_in(folder) / SUBSETS, json.dumps(vars(sharing)).encode() + b"\n", 0o600)
    remove_others(folder, sharing)


def remove_others(folder: Path, sharing: SubsetSharing | None) -> None:
    """Erases files of sharings that do not count."""
    folder = shares_in(folder)
    kept = set() if sharing is None else {path for path in folder.glob("lisss-*.kqs") if path.stem.endswith(f"-{sharing.id}")}
    erase_files(sorted(set(folder.glob("lisss-*.kqs")) - kept))


def remove_unpublished(folder: Path, info: KeyInfo) -> None:
    """Removes what runs left that did not end. A sharing whose metadata is damaged cannot be used, and is removed as well."""
    try:
        kept = read_sharing(folder, info)
    except KeyFileError:
        kept = None
    remove_others(folder, kept)


def read_sharing(folder: Path, info: KeyInfo) -> SubsetSharing:
    """The sharing that counts. Raises KeyFileError where there is none, or it is damaged."""
    path = shares_in(folder) / SUBSETS
    if not path.exists():
        raise KeyFileError(f"{path}: no shares for subsets: make them with keyquorum share")
    sharing = sharing_in(path)
    if sharing.members > holding_of(folder, info).parties:
        raise KeyFileError(f"{path} is damaged: make new shares with keyquorum share")
    if sharing.key_id != info.key_id:
        raise KeyFileError(f"{path} is of another key: make new shares with keyquorum share")
    return sharing


def sharing_in(path: Path) -> SubsetSharing:
    """The sharing in a file ``lisss.json``. Raises KeyFileError for a damaged one."""
    try:
        sharing = SubsetSharing(**json_loads(path.read_text()))
        if not (is_hex(sharing.id, 32) and is_hex(sharing.key_id, 32) and is_count(sharing.members, 2)):
            raise ValueError("entries of other types")
    except (ValueError, TypeError):
        raise KeyFileError(f"{path} is damaged: make new shares with keyquorum share") from None
    return sharing


def load_subset_shares(folder: Path, info: KeyInfo, subset: Subset, party: int) -> tuple[SubsetSharing, list[ShareVector]]:
    """This party's shares in a subset; ``info``: of the key as the whole committee made it; ``party``: the number in the subset."""
    sharing, number = read_sharing(folder, info), subset.numbers[party]
    if sharing.members != len(subset.numbers):
        raise KeyFileError(
            f"{shares_in(folder) / SUBSETS}: any {sharing.members} parties use the key, not the {len(subset.numbers)} of {numbers_text(subset.numbers)}"
        )
    at = own_subsets(subset.whole.size, sharing.members, number).index(subset.numbers)
    shares: list[ShareVector] = []
    try:
        for index in range(len(shared_vectors(info, holding_of(folder, info).vectors))):
            shares.append(_load_vector(folder, info, sharing, number, index, at))
    except BaseException:
        for share in shares:
            share.wipe()
        raise
    return sharing, shares


def check_shares(folder: Path, info: KeyInfo, party: int) -> SubsetSharing | None:
    """The sharing that counts at a party of the whole committee, whose files are whole and its own; None where there is none. Raises KeyFileError or
    StoreError."""
    if not (shares_in(folder) / SUBSETS).exists():
        return None
    sharing = read_sharing(folder, info)
    for index in range(len(shared_vectors(info, holding_of(folder, info).vectors))):
        _load_vector(folder, info, sharing, party, index, 0).wipe()
    return sharing


def _load_vector(folder: Path, info: KeyInfo, sharing: SubsetSharing, number: int, index: int, at: int) -> ShareVector:
    """The share of a secret vector in subset ``at`` of those that have party ``number``."""
    vector = holding_of(folder, info).vectors[index]
    bits = ring_bits(vector.domain)
    size = vector_bytes(vector.length, bits)
    data = bytearray(ShareFile.read(str(_path(folder, sharing, index)), _header(folder, info, sharing, number, index)))
    try:
        if len(data) != size * comb(holding_of(folder, info).parties - 1, sharing.members - 1):
            raise KeyFileError(f"{_path(folder, sharing, index)}: of another length: make new shares with keyquorum share")
        own = np.frombuffer(data, np.uint8)[size * at : size * (at + 1)]
        words = np.unpackbits(own, bitorder="little")[: vector.length].astype(np.uint64) if bits == 1 else own.view(_word(bits)).astype(np.uint64)
        try:
            return ShareVector.from_words(words[None, :].copy())
        finally:
            words.fill(0)
    finally:
        np.frombuffer(data, np.uint8).fill(0)


class MadeShares:
    """Shares that `keyquorum share` made, as parties of a subset take them: see :class:`keyquorum.schemes.subset_keys.SubsetShares`."""

    def check(self, subset: Subset, scheme: AnyScheme, domain: Domain) -> None:
        """Keys of LWE modulo 2^64, of TFHE, and of AES; subsets of 2 to threshold parties."""
        require_plain(subset.whole)
        require_shared(scheme)
        ring_bits(domain)
        most = subset.whole.threshold
        if len(subset.numbers) > most:
            raise ParameterError(
                f"parties {numbers_text(subset.numbers)}: at most {most} parties have shares of their own, as any {most + 1} have the key already: name fewer, or leave out --parties"
            )

    def load(self, folder: Path, info: KeyInfo, subset: Subset, party: int, count: int | None) -> tuple[str, list[ShareVector]]:
        """All shared vectors, whatever their ``count``, and the id of the sharing."""
        sharing, shares = load_subset_shares(folder, info, subset, party)
        return sharing.id, shares

    def sharing(self, folder: Path, info: KeyInfo) -> str:
        """The id of the sharing that counts."""
        return read_sharing(folder, info).id
