"""Joint generation of keys of a pseudorandom function, which exist as shares only: random bits and their round keys of AES-128, or random elements."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call
from keyquorum.programs.signatures import aes_keys, legendre_keys
from keyquorum.schemes.generation import Generation, Preamble
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Plain

from .key import LegendreParameters, PrfKeyInfo, PrfParameters, parameters_from_json, sharing_of

PREAMBLE = Preamble("PRF key parameters", b"keyquorum PRF key")


@dataclass(frozen=True)
class PrfRequest(KeyRequest):
    """A key to be made. It has no options.

    The key generation is one program, in which no party inputs anything and nothing is opened: where products are verified, it holds against malicious parties
    as every single program does."""

    verified: ClassVar[bool] = True
    parameters: PrfParameters

    @staticmethod
    def from_json(data: Plain) -> PrfRequest:
        """Inverse of :meth:`to_json`."""
        return PrfRequest(parameters_from_json(data["parameters"]))

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee without shares of bits, or of long elements."""
        sharing_of(committee, self.parameters)


def _program(parameters: PrfParameters) -> Call:
    if isinstance(parameters, LegendreParameters):
        return legendre_keys(bits=parameters.polynomials, degree=parameters.degree)
    return aes_keys()


def generate(context: PartyContext, request: PrfRequest) -> KeyMaterial[PrfKeyInfo]:
    """Makes a key jointly; every party calls this. Rounds and bytes are those of `aes_keys` or `legendre_keys`. Nothing is opened."""
    sharing = sharing_of(context.committee, request.parameters)
    with Generation(context, request, PREAMBLE, [asdict(request.parameters)]) as made:
        with context.phase("key"):
            made.run.over(sharing).run(_program(request.parameters), made.keep(ShareVector()))
        return made.finish(PrfKeyInfo)


__all__ = ["PrfRequest", "generate"]
