"""Keys as the parties of a job have them: all parties of the committee that made them, or a subset that goes on without the others, with additive shares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import EpochError, ParameterError
from keyquorum.model.subset import Present, Subset
from keyquorum.parties.context import PartyContext

from . import encryption_of, scheme_of
from .base import AnyScheme
from .holding import Holding, check_hold, epoch_of, held_flags, holding_of
from .key_folder import check_made_by, load_key, load_shares
from .keys import KeyInfo, Parameters
from .quorum_shares import own_shares
from .subset_shares import MadeShares


class SubsetShares(Protocol):
    """Where the parties of a subset take additive shares of a key from. ``info``: the metadata of the key as the whole committee made it; ``party``: the number in the subset."""

    def check(self, subset: Subset, scheme: AnyScheme, domain: Domain) -> None:
        """Refuses subsets, and keys of a scheme with their secret in ``domain``, that have no such shares. Raises ParameterError."""

    def load(self, folder: Path, info: KeyInfo, subset: Subset, party: int, count: int | None) -> tuple[str, list[ShareVector]]:
        """This party's shares of the secret vectors (the first ``count``), [1, length] each, and :meth:`sharing`. Raises KeyFileError or StoreError."""

    def sharing(self, folder: Path, info: KeyInfo) -> str:
        """Hexadecimal digits that name the sharing, which the parties compare; empty where it is that of the key. Raises KeyFileError."""


def shares_of(subset: Subset) -> SubsetShares:
    """Where a subset takes its shares from."""
    return own_shares(subset.whole) or MadeShares()


def check_parameters(committee: Committee, parameters: Parameters, rounding: str) -> None:
    """Refuses parameter sets and roundings that no decryption of a subset has; the whole committee has other checks. Raises ParameterError."""
    if isinstance(committee, Subset):
        scheme = encryption_of(parameters)
        shares_of(committee).check(committee, scheme, scheme.secret_domain(parameters))
        _check_number(committee, scheme.counts(parameters, rounding), f"{parameters.name}, {rounding}")
    elif isinstance(committee, Present) and encryption_of(parameters).counts(parameters, rounding):
        _refuse_counted(committee, f"{parameters.name}, {rounding}")


def check_decryptions(committee: Committee, info: KeyInfo, rounding: str) -> None:
    """Refuses decryptions by too few parties, or too many: of those that are counted, any two sets of parties have one in common. Raises ParameterError."""
    if isinstance(committee, Subset):
        _check_number(committee, info.most_decryptions(rounding) is not None, f"key {info.key_id} of {info.parameters.scheme.upper()}, {rounding}")
    elif isinstance(committee, Present) and info.most_decryptions(rounding) is not None:
        _refuse_counted(committee, f"key {info.key_id} of {info.parameters.scheme.upper()}, {rounding}")


def _refuse_counted(present: Present, what: str) -> None:
    raise ParameterError(
        f"{what}: these decryptions are counted, and in {present.protocol} all parties count them: leave out --parties, and bring back or recover the others"
    )


def _check_number(subset: Subset, counted: bool, what: str) -> None:
    own = own_shares(subset.whole)
    if own is not None:
        own.check_number(subset, counted)
    elif counted:
        raise ParameterError(
            f"{what}: these decryptions are counted, and two sets of parties with shares of keyquorum share may have no party that remembers: leave out --parties"
        )


def info_in(info: KeyInfo, committee: Committee, held: Holding | None = None) -> KeyInfo:
    """The metadata of a key as these parties have it: those of a subset share it among themselves. ``held``: how the whole committee holds it, where it was passed on."""
    made = held_flags(info, held) if held is not None else {}
    return replace(info, protocol=committee.protocol, parties=committee.size, threshold=committee.threshold, **made)


def load_key_as(committee: Committee, folder: Path) -> KeyInfo:
    """The metadata of a key that the whole committee holds, as it was made. Raises KeyFileError, also for the key of another committee, EpochError while it is passed on, and
    ParameterError for a key that a subset cannot use."""
    info = load_key(folder)
    check_made_by(committee.whole, info, folder)
    check_hold(committee.members, epoch_of(folder), keys=[folder.name])
    if isinstance(committee, Subset):
        shares_of(committee).check(committee, scheme_of(info), Domain.parse(holding_of(folder, info).vectors[0].domain))
    return info


def load_shares_as(
    committee: Committee, folder: Path, info: KeyInfo, party: int, count: int | None = None, backend: str = "embedded"
) -> list[ShareVector]:
    """This party's shares of the secret vectors (the first ``count``) of a key: its own, or those in a subset. ``info``: as the whole committee made it."""
    if not isinstance(committee, Subset):
        return load_shares(folder, info, committee.number_of(party), count, backend)
    return shares_of(committee).load(folder, info, committee, party, count)[1]


def _compare_epochs(context: PartyContext, info: KeyInfo, held: Holding) -> None:
    """One exchange; in epoch 0 the bytes are those of keys without epochs."""
    mine = info.digest + held.statement
    said = context.session.all_gather(mine)
    for party, other in enumerate(said):
        if other[:32] == info.digest and other != mine:
            number = int.from_bytes(other[32:40], "little")
            theirs = (
                f"{number} at party {context.committee.number_of(party)}"
                if number != held.epoch
                else f"another one of this number at party {context.committee.number_of(party)}"
            )
            raise EpochError(
                f"epoch {held.epoch} here, {theirs}: it was restored or missed a change: keyquorum epoch commit there, keyquorum recover if it was absent, or restore a backup of the newer epoch"
            )
    if any(other != mine for other in said):
        context.session.compare("key", mine)


def compare_key(context: PartyContext, folder: Path, info: KeyInfo) -> None:
    """All parties of a job compare the metadata of a key, and those of a subset the sharing that they are about to use. Raises an error of the engine."""
    _compare_epochs(context, info, holding_of(folder, info))
    if isinstance(context.committee, Subset):
        name = shares_of(context.committee).sharing(folder, info)
        context.session.compare("sharing among subsets (keyquorum share makes it anew)", bytes.fromhex(name))


__all__ = ["SubsetShares", "check_decryptions", "check_parameters", "compare_key", "info_in", "load_key_as", "load_shares_as", "shares_of"]
