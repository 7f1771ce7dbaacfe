"""Keys of the pseudorandom function behind the interface of schemes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import KeyScheme
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Parameters, Plain

from .evaluations import JOURNAL, read_journal, start_evaluations
from .inspect import KINDS
from .key import PRF_SETS, LegendreParameters, PrfKeyInfo, PrfParameters, prf_parameters
from .keygen import PrfRequest, generate
from .policy import POLICY, read_policy

SEAL_OPTIONS = ("relin", "galois_elements", "error_law", "policy")
"""Options of :func:`keyquorum.api.keygen` that have defaults, and no meaning here."""


class PrfScheme(KeyScheme[PrfKeyInfo, PrfParameters, PrfRequest]):
    """AES-128, or the Legendre PRF, under a shared key."""

    title = "PRF"
    names = ("prf",)
    order = 4
    instead = "evaluate the function with keyquorum toprf"
    subset_vectors = 1

    def set_names(self) -> list[str]:
        """See :class:`.KeyScheme`."""
        return list(PRF_SETS)

    def load(self, name_or_path: str | Path, warn: bool = True) -> PrfParameters:
        """See :class:`.KeyScheme`. There are shipped sets alone."""
        return prf_parameters(str(name_or_path))

    def describe_set(self, parameters: Parameters) -> tuple[str, Plain]:
        """See :class:`.KeyScheme`."""
        assert isinstance(parameters, PrfParameters)
        if isinstance(parameters, LegendreParameters):
            line = f"prf  Legendre symbols of {parameters.polynomials} polynomials of degree {parameters.degree} modulo 2^127 - 1 (keyquorum toprf)"
            return line, asdict(parameters)
        line = f"prf  AES, key of {parameters.key_bits} bits, blocks of {parameters.block_bits} bits (keyquorum toprf)"
        return line, {"scheme": parameters.scheme, "key_bits": parameters.key_bits, "block_bits": parameters.block_bits}

    def request(self, parameters: Parameters, options: Mapping[str, object]) -> PrfRequest:
        """See :class:`.KeyScheme`."""
        assert isinstance(parameters, PrfParameters)
        for name in ("galois_elements", "policy"):
            if options.get(name):
                raise ParameterError(f"{name} is for keys of SEAL, and {parameters.name} is a set of {self.title}: leave it out")
        unknown = sorted(set(options) - set(SEAL_OPTIONS))
        if unknown:
            raise ParameterError(f"{unknown[0]} is no option of keys of {self.title}, which have none: leave it out")
        return PrfRequest(parameters)

    def request_from_job(self, job: Plain) -> PrfRequest:
        """See :class:`.KeyScheme`."""
        return PrfRequest.from_json(job)

    def key_from_json(self, data: Plain) -> PrfKeyInfo:
        """See :class:`.KeyScheme`."""
        return PrfKeyInfo.from_json(data)

    def generate(self, context: PartyContext, request: KeyRequest, seed: bytes | None = None, folder: Path | None = None) -> KeyMaterial[PrfKeyInfo]:
        """See :class:`.KeyScheme`."""
        assert isinstance(request, PrfRequest)
        return generate(context, request, seed)

    def start(self, folder: Path, info: PrfKeyInfo) -> None:
        """See :class:`.KeyScheme`. An empty count of evaluations."""
        start_evaluations(folder, info.key_id)

    def kinds(self) -> tuple[Kind, ...]:
        """See :class:`.KeyScheme`."""
        return KINDS

    def describe_key(self, info: PrfKeyInfo) -> list[str]:
        """See :class:`.KeyScheme`."""
        return [f"PRF key {info.key_id}, {info.parameters.name}", "no public files: keyquorum toprf evaluates the function"]

    def describe_state(self, folder: Path, info: PrfKeyInfo) -> list[str]:
        """See :class:`.KeyScheme`. Count and policy at a party; a copy of the metadata has neither."""
        if not (folder / JOURNAL).exists() and not (folder / "share-0.kqs").exists():
            return []
        lines = [f"{read_journal(folder / JOURNAL, info.key_id).total:,} evaluations counted"]
        if (folder / POLICY).exists():
            lines.append(f"policy: {read_policy(folder / POLICY, info.key_id).text()}")
        return lines

    def describe_shares(self, info: PrfKeyInfo) -> str:
        """See :class:`.KeyScheme`."""
        return "a share of a PRF key"

    def made(self, key: str, folder: Path, info: PrfKeyInfo) -> tuple[list[str], Plain]:
        """See :class:`.KeyScheme`."""
        return [f"key {key}: shares of a key of {_title(info)}, which no party has; keyquorum toprf serve evaluates under it"], {}

    def check_backend(self, parameters: Parameters, backend: str, link: str | None) -> None:
        """See :class:`.KeyScheme`."""
        if backend != "embedded" or link is not None:
            raise ParameterError(f"{parameters.name}: keys of {self.title} are made on the embedded engine: leave out --backend and --link")


def _title(info: PrfKeyInfo) -> str:
    return "the Legendre PRF" if isinstance(info.parameters, LegendreParameters) else "AES-128"


SCHEME = PrfScheme()
