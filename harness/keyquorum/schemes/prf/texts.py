"""What people are told of keys of the pseudorandom function."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from keyquorum.schemes.holding import shares_in
from keyquorum.schemes.keys import Plain
from keyquorum.schemes.texts import KeyTexts

from .evaluations import JOURNAL, read_journal
from .key import LegendreParameters, PrfKeyInfo, PrfParameters
from .policy import POLICY, read_policy


class PrfTexts(KeyTexts[PrfKeyInfo, PrfParameters]):
    """Texts about AES-128 and the Legendre PRF under a shared key."""

    title = "PRF"
    instead = "evaluate the function with keyquorum toprf"

    def parameter_set(self, parameters: PrfParameters) -> tuple[str, Plain]:
        if isinstance(parameters, LegendreParameters):
            line = f"prf  Legendre symbols of {parameters.polynomials} polynomials of degree {parameters.degree} modulo 2^127 - 1 (keyquorum toprf)"
            return line, asdict(parameters)
        line = f"prf  AES, key of {parameters.key_bits} bits, blocks of {parameters.block_bits} bits (keyquorum toprf)"
        return line, {"scheme": parameters.scheme, "key_bits": parameters.key_bits, "block_bits": parameters.block_bits}

    def key(self, info: PrfKeyInfo) -> list[str]:
        return [f"PRF key {info.key_id}, {info.parameters.name}", "no public files: keyquorum toprf evaluates the function"]

    def state(self, folder: Path, info: PrfKeyInfo) -> list[str]:
        # A party has a count and a policy; a copy of the metadata has neither.
        if not (folder / JOURNAL).exists() and not (shares_in(folder) / "share-0.kqs").exists():
            return []
        lines = [f"{read_journal(folder / JOURNAL, info.key_id).total:,} evaluations counted"]
        if (folder / POLICY).exists():
            lines.append(f"policy: {read_policy(folder / POLICY, info.key_id).text()}")
        return lines

    def shares(self, info: PrfKeyInfo) -> str:
        return "a share of a PRF key"

    def made(self, key: str, folder: Path, info: PrfKeyInfo) -> tuple[list[str], Plain]:
        return [f"key {key}: shares of a key of {_title(info)}, which no party has; keyquorum toprf serve evaluates under it"], {}


def _title(info: PrfKeyInfo) -> str:
    return "the Legendre PRF" if isinstance(info.parameters, LegendreParameters) else "AES-128"
