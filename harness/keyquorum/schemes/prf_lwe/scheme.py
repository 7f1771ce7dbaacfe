"""Keys of AES on LWE ciphertexts behind the interface of schemes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import KeyScheme
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Parameters, Plain

from .inspect import KINDS
from .key import PUBLIC_FILE, PUBLIC_KEY, GateKeyInfo, load_public_key, load_round_keys
from .keygen import GateRequest, generate
from .parameters import NAMES, GateParameters, gate_parameters, parameters_path

COMMON_OPTIONS = ("relin", "galois_elements", "error_law", "policy")
"""Options of :func:`keyquorum.api.keygen` that have defaults, and no meaning here."""


class GateScheme(KeyScheme[GateKeyInfo]):
    """AES-128 on LWE ciphertexts."""

    title = "PRF on LWE ciphertexts"
    names = ("prf-lwe",)
    order = 5
    instead = "evaluate the function with keyquorum gates"

    def set_names(self) -> list[str]:
        """See :class:`.KeyScheme`."""
        return list(NAMES)

    def load(self, name_or_path: str | Path, warn: bool = True) -> GateParameters:
        """See :class:`.KeyScheme`. There are shipped sets alone."""
        found = gate_parameters(Path(name_or_path).stem)
        if isinstance(name_or_path, Path) and name_or_path.read_bytes() != parameters_path(found.name).read_bytes():
            raise ParameterError(f"{name_or_path} is not the set {found.name} of this version: there are shipped sets alone, take one by its name")
        return found

    def describe_set(self, parameters: Parameters) -> tuple[str, Plain]:
        """See :class:`.KeyScheme`."""
        p = _own(parameters)
        only = "" if p.security_bits >= 128 else ", for comparison only"
        line = f"prf-lwe  AES on LWE ciphertexts, n={p.dimension} q=2^{p.modulus_bits} noise<=2^{p.noise_bound}, about {p.security_bits} bits{only}"
        names = ("scheme", "dimension", "modulus", "noise_bound", "security_bits")
        return line, {name: getattr(p, name) for name in names}

    def request(self, parameters: Parameters, options: Mapping[str, object]) -> GateRequest:
        """See :class:`.KeyScheme`."""
        for name in ("galois_elements", "policy"):
            if options.get(name):
                raise ParameterError(f"{name} is for keys of SEAL, and {parameters.name} is a set of {self.title}: leave it out")
        unknown = sorted(set(options) - set(COMMON_OPTIONS))
        if unknown:
            raise ParameterError(f"{unknown[0]} is no option of keys of {self.title}, which have none: leave it out")
        return GateRequest(_own(parameters))

    def request_from_job(self, job: Plain) -> GateRequest:
        """See :class:`.KeyScheme`."""
        return GateRequest.from_json(job)

    def key_from_json(self, data: Plain) -> GateKeyInfo:
        """See :class:`.KeyScheme`."""
        return GateKeyInfo.from_json(data)

    def generate(self, context: PartyContext, request: KeyRequest, seed: bytes | None = None, folder: Path | None = None) -> KeyMaterial[GateKeyInfo]:
        """See :class:`.KeyScheme`."""
        assert isinstance(request, GateRequest)
        return generate(context, request, seed)

    def check_public(self, folder: Path, info: GateKeyInfo) -> None:
        """See :class:`.KeyScheme`."""
        load_round_keys(folder, info)
        if PUBLIC_KEY in info.files:
            load_public_key(folder, info)

    def kinds(self) -> tuple[Kind, ...]:
        """See :class:`.KeyScheme`."""
        return KINDS

    def describe_key(self, info: GateKeyInfo) -> list[str]:
        """See :class:`.KeyScheme`."""
        p = info.parameters
        return [
            f"{self.title}: key {info.key_id}, {p.name}, n = {p.dimension}, about {p.security_bits} bits",
            f"encrypted round keys and public key: {', '.join(info.files)}",
        ]

    def describe_shares(self, info: GateKeyInfo) -> str:
        """See :class:`.KeyScheme`."""
        return f"shares of an LWE secret and of a key of AES, {', '.join(info.files)}"

    def made(self, key: str, folder: Path, info: GateKeyInfo) -> tuple[list[str], Plain]:
        """See :class:`.KeyScheme`."""
        public = folder / PUBLIC_FILE
        return [f"key {key}: shares of an LWE secret and of a key of AES-128, encrypted round keys {public}"], {"public": public}

    def check_backend(self, parameters: Parameters, backend: str, link: str | None) -> None:
        """See :class:`.KeyScheme`."""
        if backend != "embedded" or link is not None:
            raise ParameterError(f"{parameters.name}: keys of {self.title} are made on the embedded engine: leave out --backend and --link")


def _own(parameters: Parameters) -> GateParameters:
    assert isinstance(parameters, GateParameters)
    return parameters


SCHEME = GateScheme()
