"""Additive shares of a key for t + 1 parties of Shamir's scheme, from the shares that they have: nothing is made ahead, and the others may be away.

The secret is f(0) for a polynomial f of degree t, and party i has f(i + 1). For a set S of t + 1 parties f(0) is the sum of a_i = l_i f(i + 1) over S, where l_i is the product of
x_j / (x_j - x_i) over the other members, with the points x_i = i + 1, modulo q (Shamir, CACM 1979). So each member scales its own share, and S continues with additive sharing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from keyquorum._engine import mulmod_scalar
from keyquorum.dsl import ShareVector
from keyquorum.model.domains import Domain
from keyquorum.model.errors import ParameterError
from keyquorum.model.subset import Subset, numbers_text
from keyquorum.sharing.group import lagrange

from .base import AnyScheme, Scheme
from .key_folder import load_shares
from .keys import KeyInfo


class LagrangeShares:
    """The parties' own shares of Shamir's scheme, each times its Lagrange coefficient: see :class:`keyquorum.schemes.subset_keys.SubsetShares`."""

    def check(self, subset: Subset, scheme: AnyScheme, domain: Domain) -> None:
        """Keys of encryption over prime fields; exactly t + 1 parties."""
        whole, needed = subset.whole, subset.whole.threshold + 1
        if len(subset.numbers) != needed:
            raise ParameterError(
                f"parties {numbers_text(subset.numbers)}: any {needed} of the {whole.size} parties decrypt without the others: name {needed}"
            )
        if not isinstance(scheme, Scheme):
            raise ParameterError(f"a key of {scheme.title}: {whole.protocol} uses keys of encryption without the others: leave out --parties")
        if domain.prime is None:
            raise ParameterError(
                f"{whole.protocol} shares over prime fields alone, and this set is modulo 2^{domain.bits}: take one of {whole.protocol}"
            )

    def load(self, folder: Path, info: KeyInfo, subset: Subset, party: int, count: int | None) -> tuple[str, list[ShareVector]]:
        """The shares of the first ``count`` vectors, scaled modulo the prime of each; there is no other sharing to name."""
        points = [number + 1 for number in subset.numbers]
        made: list[ShareVector] = []
        own = load_shares(folder, info, subset.numbers[party], count)
        try:
            for secret, share in zip(info.secrets, own, strict=False):
                prime = Domain.parse(secret.domain).modulus
                scaled = mulmod_scalar(np.ascontiguousarray(share.words[0]), lagrange(points, party, prime), prime)
                made.append(ShareVector.from_words(scaled[None, :]))
        except BaseException:
            for share in made:
                share.wipe()
            raise
        finally:
            for share in own:
                share.wipe()
        return "", made

    def sharing(self, folder: Path, info: KeyInfo) -> str:
        """None but that of the key itself."""
        return ""


__all__ = ["LagrangeShares"]
