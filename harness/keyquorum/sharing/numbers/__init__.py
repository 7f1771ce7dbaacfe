"""Where the private numbers of a committee come from. Each kind of committee is one class in a module of its own.

=====================  ====================================  ======================================  ==================================
step                   contributed                           proven                                  pseudorandom
=====================  ====================================  ======================================  ==================================
committee              semi-honest                           with MACs                               that verifies products
who gives numbers      t + 1 parties                         all parties                             nobody: streams of sets of parties
s = sum u mod 3        private trits (`sample_ternary`)      private trits (`trit_inputs`), then     joint trits, then `sample_ternary`
                                                             `sample_ternary`
noise e                random bits of the protocol           the same, with MACs                     the same, products verified
c = x + 2^b + r        r private (honest majority of three:  r private                               r joint (`lift_open`)
                       joint)
x = c - 2^b - r        private r is input again              r is input again                        the same r (`lift_close`)
one x everywhere       nobody deviates: not tested           sums of random subsets of x, opened     r is one integer in all domains
flooding               Gaussian, input modulo each prime     random bits, lifted and tested          joint Gaussian numbers
masks of roundings     input in both domains                 the same, so semi-honest                joint integers
items of pools         not compared                          under one MAC key                       have names, which are compared
=====================  ====================================  ======================================  ==================================
"""

from __future__ import annotations

from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError
from keyquorum.model.protocols import Protocol
from keyquorum.sharing.shares import Run

from .base import PrivateNumbers
from .contributed import ContributedNumbers
from .lift import Lifted
from .proven import ProvenNumbers
from .pseudorandom import PseudorandomNumbers

KINDS: dict[str, type[PrivateNumbers]] = {"contributed": ContributedNumbers, "proven": ProvenNumbers, "pseudorandom": PseudorandomNumbers}
"""By what protocols say in the engine's table (:attr:`.Protocol.private_numbers`)."""


def kind_of_protocol(can: Protocol) -> type[PrivateNumbers]:
    """What a protocol says. Raises CommitteeError if a protocol for malicious parties says something else than its sharing allows: a party could give
    other numbers unseen."""
    needed = "proven" if can.macs else "pseudorandom" if can.verifies_products else None
    if can.private_numbers != needed and (needed is not None or can.adversary == "malicious"):
        raise CommitteeError(f"{can.name}: {can.private_numbers} private numbers are not for malicious parties: correct the protocol's descriptor")
    return KINDS[can.private_numbers]


def kind_of(committee: Committee) -> type[PrivateNumbers]:
    """What a committee's protocol says. Raises CommitteeError as :func:`kind_of_protocol`, and for a semi-honest subset of a committee for malicious
    parties."""
    if committee.whole.capabilities.adversary == "malicious" and committee.capabilities.adversary != "malicious":
        raise CommitteeError(f"{committee.protocol}: private numbers of a subset are semi-honest, and the committee is for malicious parties")
    return kind_of_protocol(committee.capabilities)


def numbers_of(run: Run) -> PrivateNumbers:
    """The private numbers of a plan."""
    return kind_of(run.context.committee)(run)


__all__ = [
    "KINDS",
    "ContributedNumbers",
    "Lifted",
    "PrivateNumbers",
    "ProvenNumbers",
    "PseudorandomNumbers",
    "kind_of",
    "kind_of_protocol",
    "numbers_of",
]
