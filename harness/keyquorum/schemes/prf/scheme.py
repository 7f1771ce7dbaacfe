"""Keys of the pseudorandom function behind the interface of schemes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain, Ring
from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import KeyScheme
from keyquorum.schemes.keys import KeyMaterial, Plain, SecretVector

from .evaluations import JOURNAL, counted, read_journal, start_evaluations
from .inspect import KINDS
from .key import PRF_SETS, LegendreParameters, PrfKeyInfo, PrfParameters, prf_parameters, sharing_of
from .keygen import PrfRequest, generate
from .policy import HOUR
from .texts import PrfTexts

SEAL_OPTIONS = ("relin", "galois_elements", "error_law", "policy")
"""Options of :func:`keyquorum.api.keygen` that have defaults, and no meaning here."""


class PrfScheme(KeyScheme[PrfKeyInfo, PrfParameters, PrfRequest]):
    """AES-128, or the Legendre PRF, under a shared key."""

    texts = PrfTexts()
    names = ("prf",)
    order = 4
    subset_vectors = 1

    def set_names(self) -> list[str]:
        return list(PRF_SETS)

    def load(self, name_or_path: str | Path, warn: bool = True) -> PrfParameters:
        # All sets are shipped.
        return prf_parameters(str(name_or_path))

    def vectors_for(self, info: PrfKeyInfo, committee: Committee) -> tuple[SecretVector, ...]:
        if isinstance(info.parameters, LegendreParameters):
            return super().vectors_for(info, committee)
        (vector,) = info.secrets
        return (SecretVector(sharing_of(committee).domain, vector.length),)

    def passed_on(self, info: PrfKeyInfo, held: Sequence[SecretVector], committee: Committee, burned: bool = False) -> tuple[Domain | None, ...]:
        """Bits that one committee holds modulo 2, and the other one in a ring, are dealt modulo 2; so are those in a ring that come without MACs, as they may be other numbers."""
        wanted = self.vectors_for(info, committee)
        if len(held) == 1 and held[0].length == wanted[0].length:
            domains = {held[0].domain, wanted[0].domain}
            if domains == {Ring(1), Ring(64)} or (burned and domains == {Ring(64)}):
                return (Ring(1),)
        return super().passed_on(info, held, committee)

    def request(self, parameters: PrfParameters, options: Mapping[str, object]) -> PrfRequest:
        for name in ("galois_elements", "policy"):
            if options.get(name):
                raise ParameterError(f"{name} is for keys of SEAL, and {parameters.name} is a set of {self.title}: leave it out")
        unknown = sorted(set(options) - set(SEAL_OPTIONS))
        if unknown:
            raise ParameterError(f"{unknown[0]} is no option of keys of {self.title}, which have none: leave it out")
        return PrfRequest(parameters)

    def request_from_job(self, job: Plain) -> PrfRequest:
        return PrfRequest.from_json(job)

    def key_from_json(self, data: Plain) -> PrfKeyInfo:
        return PrfKeyInfo.from_json(data)

    def generate(self, context: PartyContext, request: PrfRequest, folder: Path | None = None) -> KeyMaterial[PrfKeyInfo]:
        return generate(context, request)

    def start(self, folder: Path, info: PrfKeyInfo, used: int = 0, recent: Sequence[Json] = ()) -> None:
        start_evaluations(folder, info.key_id, used, [counted(line) for line in recent])

    def recent(self, folder: Path, info: PrfKeyInfo) -> list[Json]:
        now = time.time()
        return [dict(vars(line)) for line in read_journal(folder / JOURNAL, info.key_id).lines if line.time > now - HOUR]

    def check_recent(self, line: Json) -> None:
        counted(line)

    def used(self, folder: Path, info: PrfKeyInfo) -> int:
        return read_journal(folder / JOURNAL, info.key_id).total

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def check_backend(self, parameters: PrfParameters, backend: str, link: str | None) -> None:
        if backend != "embedded" or link is not None:
            raise ParameterError(f"{parameters.name}: keys of {self.title} are made on the embedded engine: leave out --backend and --link")


SCHEME = PrfScheme()
