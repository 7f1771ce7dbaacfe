"""GHS behind the interface of schemes. Its keys are for comparisons: no library loads them, and nothing here evaluates under them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from keyquorum.fhe.ghs import SET_NAMES, GhsParameters, load_set
from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import KeyScheme
from keyquorum.schemes.keys import KeyMaterial, Plain

from .inspect import KINDS
from .key import NOISES, GhsKeyInfo, check_file
from .keygen import GhsRequest, generate, request_from_json
from .texts import GhsTexts

SEAL_OPTIONS = ("relin", "galois_elements", "error_law", "policy")
"""Options of :func:`keyquorum.api.keygen` that have defaults, and no meaning here."""


class GhsScheme(KeyScheme[GhsKeyInfo, GhsParameters, GhsRequest]):
    """Keys of BGV modulo cyclotomic polynomials."""

    texts = GhsTexts()
    names = ("ghs",)
    order = 5
    job_fields: ClassVar[Mapping[str, type]] = {"noise": str}

    def set_names(self) -> list[str]:
        return list(SET_NAMES)

    def load(self, name_or_path: str | Path, warn: bool = True) -> GhsParameters:
        return load_set(name_or_path)

    def request(self, parameters: GhsParameters, options: Mapping[str, object]) -> GhsRequest:
        for name in ("galois_elements", "policy"):
            if options.get(name):
                raise ParameterError(f"{name} is for keys of SEAL, and {parameters.name} is a set of {self.title}: leave it out")
        unknown = sorted(set(options) - {*SEAL_OPTIONS, *self.job_fields})
        if unknown:
            raise ParameterError(f"{unknown[0]} is no option of keys of {self.title}, which have noise: leave it out")
        made = GhsRequest(parameters, str(options.get("noise", NOISES[0])))
        made.check()
        return made

    def request_from_job(self, job: Plain) -> GhsRequest:
        return request_from_json(job)

    def key_from_json(self, data: Plain) -> GhsKeyInfo:
        return GhsKeyInfo.from_json(data)

    def generate(self, context: PartyContext, request: GhsRequest, folder: Path | None = None) -> KeyMaterial[GhsKeyInfo]:
        return generate(context, request, folder)

    def check_public(self, folder: Path, info: GhsKeyInfo) -> None:
        for kind in info.parameters.kinds:
            check_file(folder, info, kind)

    def check_made(self, folder: Path, info: GhsKeyInfo) -> None:
        self.check_public(folder, info)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def check_backend(self, parameters: GhsParameters, backend: str, link: str | None) -> None:
        if backend != "embedded":
            raise ParameterError(f"{parameters.name}: keys of {self.title} are made on the embedded engine: leave out --backend")


SCHEME = GhsScheme()
