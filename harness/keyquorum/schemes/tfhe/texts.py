"""What people are told of TFHE."""

from __future__ import annotations

from pathlib import Path

from keyquorum.fhe.lwe import TfheParameters
from keyquorum.fhe.lwe_sets import security_of
from keyquorum.fhe.tfhe import KEY_FILES
from keyquorum.schemes.keys import Plain
from keyquorum.schemes.seeded_keys import SeededTexts

from .key import TfheKeyInfo


class TfheTexts(SeededTexts[TfheKeyInfo, TfheParameters]):
    """Texts about TFHE."""

    title = "TFHE"

    def parameter_set(self, parameters: TfheParameters) -> tuple[str, Plain]:
        p = parameters
        message = p.plain_bits - p.carry_bits
        line = f"tfhe n={p.lwe_dimension:<6} N={p.dimension} q=2^64 message={message} carry={p.carry_bits} padding={p.padding_bits}"
        names = ("scheme", "lwe_dimension", "dimension", "modulus", "plain_bits", "carry_bits", "padding_bits", "lwe_noise", "glwe_noise")
        return line, {**{name: getattr(p, name) for name in names}, **security_of(p)}

    def key(self, info: TfheKeyInfo) -> list[str]:
        p = info.parameters
        return [
            f"TFHE key {info.key_id}, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, q = 2^64, {p.plain_bits} bits a block",
            f"public keys for TFHE-rs: {', '.join(info.files)}",
        ]

    def made(self, key: str, folder: Path, info: TfheKeyInfo) -> tuple[list[str], Plain]:
        lines = [
            f"key {key}: shares of both secrets; public keys for TFHE-rs in {folder}: {', '.join(KEY_FILES.names)}",
            f"keyquorum tfhe keys {folder} OUT makes keys of TFHE-rs from them",
        ]
        return lines, {"public": [folder / name for name in KEY_FILES.names]}

    def masked_limit(self, parameters: TfheParameters) -> str:
        # There is no such rounding.
        return ""
