"""FHEW behind the interface of schemes. Its ciphertexts are LWE ciphertexts under the ring secret, and are decrypted as those of LWE keys are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from keyquorum.fhe.fhew import PUBLIC, FhewKeyFile
from keyquorum.fhe.fhew_evaluation import encrypt
from keyquorum.fhe.lwe import FhewParameters, LweCiphertexts
from keyquorum.fhe.lwe_public import integers
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.lwe.field_variant import LweFieldVariant
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.seeded_keys import SeededScheme

from .inspect import KINDS
from .key import FHEW_KEYS, FhewKeyInfo, sharing_of
from .keygen import FhewRequest, generate
from .texts import FhewTexts

FLOODED = "round_flood"


class FhewScheme(SeededScheme[FhewKeyInfo, FhewParameters, FhewRequest, FhewKeyFile]):
    """Keys of FHEW-like schemes modulo a prime, and decryption of their ciphertexts."""

    texts = FhewTexts()
    names = ("fhew",)
    order = 3
    job_fields: ClassVar[Mapping[str, type]] = {"noise": str}
    keys = FHEW_KEYS
    metadata = FhewKeyInfo
    request_type = FhewRequest

    def generate(self, context: PartyContext, request: FhewRequest, folder: Path | None = None) -> KeyMaterial[FhewKeyInfo]:
        return generate(context, request, folder)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def encrypted(self, folder: Path, info: FhewKeyInfo, values: Any) -> LweCiphertexts:
        public = self.keys.load_file(folder, info, PUBLIC)
        return encrypt(public, integers(public.parameters, values))

    def sharing(self, committee: Committee, parameters: FhewParameters) -> Sharing:
        return sharing_of(committee, parameters)

    def variant(self, committee: Committee, rounding: str, parameters: FhewParameters, width: int, levels: int) -> LweVariant | LweFieldVariant:
        if rounding == FLOODED:
            raise ParameterError(
                f"{parameters.name}: {rounding} is not for these ciphertexts, their noise is not small beside the distance of two messages: "
                "take round_ltz_circuit, round_ltz_table or round_mask_open"
            )
        return super().variant(committee, rounding, parameters, width, levels)


SCHEME = FhewScheme()
