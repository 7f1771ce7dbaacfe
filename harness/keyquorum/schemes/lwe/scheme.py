"""LWE behind the interface of schemes: keys of a binary secret, with a public key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keyquorum.fhe.lwe import LWE_SETS, LweCiphertexts, LweParameters, lwe_parameters
from keyquorum.fhe.lwe_public import integers
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.inspected import Kind
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.holding import require_shares
from keyquorum.schemes.keys import KeyMaterial, Plain, SecretVector

from .ciphertexts import LweCiphertextScheme
from .inspect import KINDS
from .key import LweKeyInfo, load_lwe_public_key, sharing_of
from .keygen import LweRequest, generate
from .texts import LweTexts


class LweScheme(LweCiphertextScheme[LweKeyInfo, LweParameters, LweRequest]):
    """Keys of plain LWE."""

    texts = LweTexts()
    names = ("lwe",)
    order = 1
    subset_vectors = 1
    verified = True
    metadata = LweKeyInfo
    request_type = LweRequest

    def set_names(self) -> list[str]:
        return list(LWE_SETS)

    def named(self, name: str) -> LweParameters:
        return lwe_parameters(name)

    def load(self, name_or_path: str | Path, warn: bool = True) -> LweParameters:
        return lwe_parameters(str(name_or_path))

    def vectors_for(self, info: LweKeyInfo, committee: Committee) -> tuple[SecretVector, ...]:
        # With MACs the phases are scaled, modulo a prime they cannot be.
        return super().vectors_for(info, committee) if info.parameters.prime else require_shares(info.secrets, committee)

    def generate(self, context: PartyContext, request: LweRequest, folder: Path | None = None) -> KeyMaterial[LweKeyInfo]:
        return generate(context, request)

    def key_from_json(self, data: Plain) -> LweKeyInfo:
        return LweKeyInfo.from_json(data)

    def check_public(self, folder: Path, info: LweKeyInfo) -> None:
        if info.files:
            load_lwe_public_key(folder, info)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def sharing(self, committee: Committee, parameters: LweParameters) -> Sharing:
        return sharing_of(committee, parameters)

    def encrypted(self, folder: Path, info: LweKeyInfo, values: Any) -> LweCiphertexts:
        public = load_lwe_public_key(folder, info)
        return public.encrypt(integers(public.parameters, values))


SCHEME = LweScheme()
