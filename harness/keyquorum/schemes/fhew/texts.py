"""What people are told of FHEW."""

from __future__ import annotations

from pathlib import Path

from keyquorum.fhe.fhew import KEY_FILES, evaluated_deviation
from keyquorum.fhe.lwe import FhewParameters
from keyquorum.fhe.lwe_sets import security_of
from keyquorum.schemes.keys import Plain
from keyquorum.schemes.seeded_keys import SeededTexts

from .key import FhewKeyInfo


class FhewTexts(SeededTexts[FhewKeyInfo, FhewParameters]):
    """Texts about FHEW."""

    title = "FHEW"

    def parameter_set(self, parameters: FhewParameters) -> tuple[str, Plain]:
        p = parameters
        line = f"fhew n={p.lwe_dimension:<6} N={p.dimension} q={p.prime.bit_length()}-bit prime p={1 << p.plain_bits}, the highest bit a carry"
        names = ("scheme", "lwe_dimension", "dimension", "modulus", "plain_bits", "variance", "switch_deviation", "samples", "source")
        return line, {**{name: getattr(p, name) for name in names}, **security_of(p)}

    def key(self, info: FhewKeyInfo) -> list[str]:
        p = info.parameters
        return [
            f"FHEW key {info.key_id}, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, q = {p.prime}, {p.plain_bits} bits a message",
            f"public keys: {', '.join(info.files)}",
        ]

    def noise(self, info: FhewKeyInfo) -> str:
        return f", noise: {info.noise_plan.text()}"

    def made(self, key: str, folder: Path, info: FhewKeyInfo) -> tuple[list[str], Plain]:
        plan = info.noise_plan
        lines = [
            f"key {key}: shares of both secrets; public keys in {folder}: {', '.join(KEY_FILES.names)}",
            f"noise: {plan.text()}",
        ]
        return lines, {"public": [folder / name for name in KEY_FILES.names], "noise": plan.noise, "growth": plan.growth}

    def masked_limit(self, parameters: FhewParameters) -> str:
        # E|e| = sqrt(2/pi) deviations, of the distance of two messages
        wrong = 0.79788456 * evaluated_deviation(parameters, 2.0) / parameters.delta
        return (
            f"wrong once in about {1 / wrong:.1e} decryptions of an evaluated ciphertext, when the mask and the noise carry; FHEW decryptions are not "
            "counted: take it for noise that the receiver cannot relate to the secret"
        )
