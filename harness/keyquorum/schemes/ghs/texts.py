"""What people are told of GHS."""

from __future__ import annotations

from pathlib import Path

from keyquorum.fhe.ghs import GhsParameters, file_name
from keyquorum.fhe.ghs_ciphertexts import GhsCiphertext
from keyquorum.schemes.keys import Plain
from keyquorum.schemes.texts import Texts

from .key import GhsKeyInfo


class GhsTexts(Texts[GhsKeyInfo, GhsParameters, GhsCiphertext]):
    """Texts about GHS."""

    title = "GHS"

    def parameter_set(self, parameters: GhsParameters) -> tuple[str, Plain]:
        p = parameters
        keys = len(p.targets("switching"))
        line = f"ghs m={p.order} phi(m)={p.degree} {len(p.primes)} primes, {keys} switching keys, weight {p.weight}, for comparisons only"
        return line, {"scheme": p.scheme, "order": p.order, "degree": p.degree, "primes": list(p.primes), "weight": p.weight, "source": p.source}

    def key(self, info: GhsKeyInfo) -> list[str]:
        p = info.parameters
        return [
            f"GHS key {info.key_id}, {p.name}, m = {p.order}, {len(p.primes)} primes, {p.secrets} {'secrets' if p.secrets > 1 else 'secret'} of weight {p.weight}",
            f"public keys: {', '.join(info.files)}",
        ]

    def noise(self, info: GhsKeyInfo) -> str:
        return f", noise: {info.noise}"

    def shares(self, info: GhsKeyInfo) -> str:
        return f"{len(info.secrets)} {'shares' if len(info.secrets) > 1 else 'share'} of GHS, {', '.join(info.files)}"

    def made(self, key: str, folder: Path, info: GhsKeyInfo) -> tuple[list[str], Plain]:
        names = [file_name(kind) for kind in info.parameters.kinds]
        lines = [f"key {key}: shares of the secret; public keys in {folder}: {', '.join(names)}", f"noise: {info.noise}"]
        return lines, {"public": [folder / name for name in names], "noise": info.noise}

    def plaintext(self, ciphertext: GhsCiphertext) -> str:
        return f"{ciphertext.parts.shape[-1]} bits"
