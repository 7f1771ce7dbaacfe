"""What people are told of LWE."""

from __future__ import annotations

from pathlib import Path
from typing import Generic

from keyquorum.fhe.lwe import LweCiphertexts, LweParameters
from keyquorum.fhe.lwe_public import PUBLIC_FILE
from keyquorum.schemes.keys import K, P, Plain
from keyquorum.schemes.texts import Texts

from .key import LweKeyInfo


class LweCiphertextTexts(Texts[K, P, LweCiphertexts], Generic[K, P]):
    """Texts about a scheme whose ciphertexts are LWE ciphertexts."""

    def plaintext(self, ciphertext: LweCiphertexts) -> str:
        return f"{ciphertext.count} messages"


class LweTexts(LweCiphertextTexts[LweKeyInfo, LweParameters]):
    """Texts about plain LWE."""

    title = "LWE"

    def parameter_set(self, parameters: LweParameters) -> tuple[str, Plain]:
        p = parameters
        modulus = f"{p.prime.bit_length()}-bit prime" if p.prime else "2^64"
        line = f"lwe  n={p.dimension:<6} q={modulus} p={1 << p.plain_bits} padding={p.padding_bits} noise<2^{p.noise_bits}"
        names = ("scheme", "dimension", "modulus", "plain_bits", "padding_bits", "noise_bits")
        return line, {name: getattr(p, name) for name in names}

    def key(self, info: LweKeyInfo) -> list[str]:
        p = info.parameters
        q = f"{p.prime}" if p.prime else "2^64"
        public = ", ".join(info.files) or "none: it was made before there were any"
        return [f"LWE key {info.key_id}, {p.name}, n = {p.dimension}, q = {q}, {p.plain_bits} bits a message", f"public key: {public}"]

    def shares(self, info: LweKeyInfo) -> str:
        return f"a share of LWE, {', '.join(info.files) or 'without a public key'}"

    def made(self, key: str, folder: Path, info: LweKeyInfo) -> tuple[list[str], Plain]:
        public = folder / PUBLIC_FILE
        return [f"key {key}: shares of an LWE secret, public key {public}"], {"public": public}
