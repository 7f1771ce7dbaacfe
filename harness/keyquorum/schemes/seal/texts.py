"""What people are told of BFV, BGV and CKKS of SEAL."""

from __future__ import annotations

from pathlib import Path

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext
from keyquorum.schemes.base import EXACT
from keyquorum.schemes.counts import decryptions_used
from keyquorum.schemes.holding import shares_in
from keyquorum.schemes.keys import Plain
from keyquorum.schemes.texts import Texts

from .key import SealKeyInfo
from .masked import MASKED, masked_limit, most_masked
from .noise import default_bits
from .policy import promise
from .precision import key_precision


class SealTexts(Texts[SealKeyInfo, ParameterSet, Ciphertext]):
    """Texts about keys for SEAL."""

    title = "SEAL"

    def parameter_set(self, parameters: ParameterSet) -> tuple[str, Plain]:
        p = parameters
        primes = [q.bit_length() for q in p.coeff_modulus]
        plain = f" t={p.plain_modulus}" if p.plain_modulus else f" scale=2^{p.scale_bits} noise=2^{default_bits(p)}"
        own = {"plain_modulus": p.plain_modulus} if p.plain_modulus else {"scale_bits": p.scale_bits, "noise_bits": default_bits(p)}
        line = f"{p.scheme:4} N={p.ring_degree:<6} [{','.join(map(str, primes))}]{plain} security={p.security}"
        return line, {"scheme": p.scheme, "ring_degree": p.ring_degree, "prime_bits": primes, **own, "security": p.security}

    def file(self, parameters: ParameterSet) -> str:
        p = parameters
        bits = ",".join(str(q.bit_length()) for q in p.coeff_modulus)
        return f"{p.scheme}, N = {p.ring_degree}, primes of {bits} bits, security {p.security}"

    def key(self, info: SealKeyInfo) -> list[str]:
        p = info.parameters
        return [
            f"key {info.key_id}, {p.scheme} {p.name}, N = {p.ring_degree}",
            f"relinearisation key: {'yes' if info.relin else 'no'}; Galois elements: {list(info.galois_elements) or 'none'}",
        ]

    def noise(self, info: SealKeyInfo) -> str:
        return f", error law {info.error_law}"

    def state(self, folder: Path, info: SealKeyInfo) -> list[str]:
        counted = (folder / "decryptions.json").exists()
        if info.parameters.scheme != "ckks":
            if not counted:
                return []
            most = most_masked(info.parameters)
            return [f"{decryptions_used(folder, info)} of {most:,} decryptions by {MASKED} used; those of {EXACT} are not counted"]
        lines = [promise(info.policy)]
        if counted or list(shares_in(folder).glob("share-*.kqs")):  # not a copy of the public files
            lines = [f"{lines[0]}; {decryptions_used(folder, info)} of {info.policy.decryptions} decryptions used"]
        lines += [f"WARNING: {weakness}" for weakness in info.policy.weaknesses(info.parameters)]
        lines.append(f"at scale 2^{info.parameters.scale_bits}: {key_precision(info).text()}")
        if info.policy.approvals:
            lines.append("ciphertexts must be approved at every party (keyquorum approve), with a noise up to that bound")
        return lines

    def made(self, key: str, folder: Path, info: SealKeyInfo) -> tuple[list[str], Plain]:
        lines, details = super().made(key, folder, info)
        if info.parameters.scheme == "ckks":
            lines += [f"{info.parameters.name}, scale 2^{info.parameters.scale_bits}: {key_precision(info).text()}", promise(info.policy)]
        return lines, details

    def masked_limit(self, parameters: ParameterSet) -> str:
        return masked_limit(parameters)
