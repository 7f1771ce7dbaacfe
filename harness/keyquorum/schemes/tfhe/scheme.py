"""TFHE behind the interface of schemes. Its ciphertexts are LWE ciphertexts under the ring secret, and are decrypted as those of LWE keys are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from keyquorum.fhe.lwe import LweCiphertexts, TfheParameters, is_lwe
from keyquorum.fhe.tfhe import KeyFile
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import MASKED, MASKED_ONE
from keyquorum.schemes.holding import require_shares
from keyquorum.schemes.keys import KeyMaterial, SecretVector
from keyquorum.schemes.lwe.field_variant import LweFieldVariant
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.seeded_keys import SeededScheme

from .inspect import KINDS
from .key import TFHE_KEYS, TfheKeyInfo, sharing_of
from .keygen import TfheRequest, generate
from .texts import TfheTexts

ERRS = "the noise of an evaluated ciphertext (2^49 of 2^59) makes it wrong once in about 1,200 decryptions, and its errors leak the secret"
REFUSED = {
    MASKED: ERRS,
    MASKED_ONE: ERRS,
    "round_flood": "noise that hides 2^49 by 40 bits does not fit below 2^59",
}
"""Roundings without use for ciphertexts that TFHE-rs evaluated, and why."""


class TfheScheme(SeededScheme[TfheKeyInfo, TfheParameters, TfheRequest, KeyFile]):
    """Keys for TFHE-rs, and decryption of its ciphertexts."""

    texts = TfheTexts()
    names = ("tfhe",)
    order = 2
    job_fields: ClassVar[Mapping[str, type]] = {"noise_method": str}
    keys = TFHE_KEYS
    metadata = TfheKeyInfo
    request_type = TfheRequest
    subset_vectors = 1

    def generate(self, context: PartyContext, request: TfheRequest, folder: Path | None = None) -> KeyMaterial[TfheKeyInfo]:
        return generate(context, request, folder)

    def vectors_for(self, info: TfheKeyInfo, committee: Committee) -> tuple[SecretVector, ...]:
        return require_shares(info.secrets, committee)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def encrypted(self, folder: Path, info: TfheKeyInfo, values: Any) -> LweCiphertexts:
        # TFHE-rs encrypts, under its own form of the public key.
        raise ParameterError(f"{info.parameters.name}: TFHE-rs encrypts for keys of TFHE: use keyquorum tfhe encrypt, or TFHE-rs itself")

    def parse(self, info: TfheKeyInfo, data: bytes, what: str, rounding: str) -> LweCiphertexts:
        if not is_lwe(data):
            raise CiphertextError(f"{what}: neither LWE ciphertexts nor a ciphertext that TFHE-rs's safe_serialize wrote: write it by safe_serialize")
        return super().parse(info, data, what, rounding)

    def sharing(self, committee: Committee, parameters: TfheParameters) -> Sharing:
        return sharing_of(committee, parameters)

    def variant(self, committee: Committee, rounding: str, parameters: TfheParameters, width: int, levels: int) -> LweVariant | LweFieldVariant:
        if rounding in REFUSED:
            raise ParameterError(
                f"{parameters.name}: {rounding} is not for these ciphertexts, {REFUSED[rounding]}: take round_ltz_circuit or round_ltz_table"
            )
        return super().variant(committee, rounding, parameters, width, levels)


SCHEME = TfheScheme()
