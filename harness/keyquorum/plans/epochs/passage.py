"""How the vectors of a key get to a new committee: summands of most are dealt; one that the old committee does not have may be made by the new members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keyquorum.model.bridge import Bridge
from keyquorum.model.domains import Domain
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import is_count
from keyquorum.schemes import scheme_of
from keyquorum.schemes.keys import KeyInfo, SecretVector

MOST_DIGITS = 100
"""Characters of a domain, which another committee sends."""


@dataclass(frozen=True)
class Passage:
    """``vectors``: that the new committee will have of a key; ``dealt``: of the first ones the domains in which their summands are dealt; ``made``: whether the new members make the last one of the others."""

    vectors: tuple[SecretVector, ...]
    dealt: tuple[Domain, ...]
    made: bool


def passage(between: Bridge, key: str, info: KeyInfo, vectors: Sequence[object], burned: bool) -> Passage:
    """The passage of a key. ``vectors``: that the old committee has, as a record has them; ``burned``: its members do not use their MACs. Raises ParameterError for a key that the new one cannot hold."""
    new, scheme = between.sides[1], scheme_of(info)
    wanted = scheme.vectors_for(info, new)
    try:
        ways = scheme.passed_on(info, [_vector(each) for each in vectors], new, burned)
    except ParameterError as error:
        raise ParameterError(f"key {key}: {error}") from None
    dealt = tuple(domain for domain in ways if domain is not None)
    return Passage(wanted, dealt, len(dealt) < len(ways))


def _vector(said: object) -> SecretVector:
    """A vector as a record has it. Raises ParameterError for something else."""
    if isinstance(said, list) and len(said) == 2 and isinstance(said[0], str) and len(said[0]) < MOST_DIGITS and is_count(said[1]):
        return SecretVector(Domain.parse(said[0]), said[1])
    raise ParameterError("its vectors are not as a record has them: run the same version everywhere")


__all__ = ["Passage", "passage"]
