"""FHEW behind the interface of schemes. Its ciphertexts are LWE ciphertexts under the ring secret, and are decrypted as those of LWE keys are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from keyquorum.fhe.fhew import PUBLIC, FhewKeyFile, evaluated_deviation
from keyquorum.fhe.fhew_evaluation import encrypt
from keyquorum.fhe.lwe import FhewParameters
from keyquorum.fhe.lwe_public import integers
from keyquorum.fhe.lwe_sets import security_of
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.outputs import save_file
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import EncryptedFile
from keyquorum.schemes.keys import KeyMaterial, Plain
from keyquorum.schemes.lwe.field_variant import LweFieldVariant
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.seeded_keys import SeededScheme

from .inspect import KINDS
from .key import FHEW_KEYS, FhewKeyInfo, sharing_of
from .keygen import FhewRequest, generate

FLOODED = "round_flood"


class FhewScheme(SeededScheme[FhewKeyInfo, FhewParameters, FhewRequest, FhewKeyFile]):
    """Keys of FHEW-like schemes modulo a prime, and decryption of their ciphertexts."""

    title = "FHEW"
    names = ("fhew",)
    order = 3
    job_fields: ClassVar[Mapping[str, type]] = {"noise": str}
    keys = FHEW_KEYS
    metadata = FhewKeyInfo
    request_type = FhewRequest

    def describe_set(self, parameters: FhewParameters) -> tuple[str, Plain]:
        p = parameters
        line = f"fhew n={p.lwe_dimension:<6} N={p.dimension} q={p.prime.bit_length()}-bit prime p={1 << p.plain_bits}, the highest bit a carry"
        names = ("scheme", "lwe_dimension", "dimension", "modulus", "plain_bits", "variance", "switch_deviation", "samples", "source")
        return line, {**{name: getattr(p, name) for name in names}, **security_of(p)}

    def generate(
        self, context: PartyContext, request: FhewRequest, seed: bytes | None = None, folder: Path | None = None
    ) -> KeyMaterial[FhewKeyInfo]:
        return generate(context, request, seed, folder)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def describe_key(self, info: FhewKeyInfo) -> list[str]:
        p = info.parameters
        return [
            f"FHEW key {info.key_id}, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, q = {p.prime}, {p.plain_bits} bits a message",
            f"public keys: {', '.join(info.files)}",
        ]

    def describe_noise(self, info: FhewKeyInfo) -> str:
        return info.noise_plan.text()

    def describe_shares(self, info: FhewKeyInfo) -> str:
        return f"2 shares of FHEW, {', '.join(info.files)}"

    def made(self, key: str, folder: Path, info: FhewKeyInfo) -> tuple[list[str], Plain]:
        plan = info.noise_plan
        lines = [
            f"key {key}: shares of both secrets; public keys in {folder}: {', '.join(self.keys.files.names)}",
            f"noise: {plan.text()}",
        ]
        return lines, {"public": [folder / name for name in self.keys.files.names], "noise": plan.noise, "growth": plan.growth}

    def encrypt_to(self, folder: Path, info: FhewKeyInfo, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        # Each value is an LWE ciphertext.
        if bound is not None:
            raise ParameterError("--bound is for CKKS, and this is a key of FHEW: leave it out")
        public = self.keys.load_file(folder, info, PUBLIC)
        data = encrypt(public, integers(public.parameters, values)).to_bytes(public.key_id)
        save_file(output, data)
        return EncryptedFile(output, data, info)

    def sharing(self, committee: Committee, parameters: FhewParameters) -> Sharing:
        return sharing_of(committee, parameters)

    def variant(self, committee: Committee, rounding: str, parameters: FhewParameters, width: int, levels: int) -> LweVariant | LweFieldVariant:
        if rounding == FLOODED:
            raise ParameterError(
                f"{parameters.name}: {rounding} is not for these ciphertexts, their noise is not small beside the distance of two messages: "
                "take round_ltz_circuit, round_ltz_table or round_mask_open"
            )
        return super().variant(committee, rounding, parameters, width, levels)

    def masked_limit(self, parameters: FhewParameters) -> str:
        # E|e| = sqrt(2/pi) deviations, of the distance of two messages
        wrong = 0.79788456 * evaluated_deviation(parameters, 2.0) / parameters.delta
        return (
            f"wrong once in about {1 / wrong:.1e} decryptions of an evaluated ciphertext, when the mask and the noise carry; FHEW decryptions are not "
            "counted: take it for noise that the receiver cannot relate to the secret"
        )


SCHEME = FhewScheme()
