"""LWE behind the interface of schemes: keys of a binary secret, with a public key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keyquorum.fhe.lwe import LWE_SETS, LweParameters, lwe_parameters
from keyquorum.fhe.lwe_public import PUBLIC_FILE, integers
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.outputs import save_file
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import EncryptedFile
from keyquorum.schemes.keys import KeyMaterial, Plain

from .ciphertexts import LweCiphertextScheme
from .inspect import KINDS
from .key import LweKeyInfo, load_lwe_public_key, sharing_of
from .keygen import LweRequest, generate


class LweScheme(LweCiphertextScheme[LweKeyInfo, LweParameters, LweRequest]):
    """Keys of plain LWE."""

    title = "LWE"
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

    def describe_set(self, parameters: LweParameters) -> tuple[str, Plain]:
        p = parameters
        modulus = f"{p.prime.bit_length()}-bit prime" if p.prime else "2^64"
        line = f"lwe  n={p.dimension:<6} q={modulus} p={1 << p.plain_bits} padding={p.padding_bits} noise<2^{p.noise_bits}"
        names = ("scheme", "dimension", "modulus", "plain_bits", "padding_bits", "noise_bits")
        return line, {name: getattr(p, name) for name in names}

    def generate(self, context: PartyContext, request: LweRequest, seed: bytes | None = None, folder: Path | None = None) -> KeyMaterial[LweKeyInfo]:
        return generate(context, request, seed)

    def key_from_json(self, data: Plain) -> LweKeyInfo:
        return LweKeyInfo.from_json(data)

    def check_public(self, folder: Path, info: LweKeyInfo) -> None:
        if info.files:
            load_lwe_public_key(folder, info)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def describe_key(self, info: LweKeyInfo) -> list[str]:
        p = info.parameters
        q = f"{p.prime}" if p.prime else "2^64"
        public = ", ".join(info.files) or "none: it was made before there were any"
        return [f"LWE key {info.key_id}, {p.name}, n = {p.dimension}, q = {q}, {p.plain_bits} bits a message", f"public key: {public}"]

    def describe_shares(self, info: LweKeyInfo) -> str:
        return f"a share of LWE, {', '.join(info.files) or 'without a public key'}"

    def made(self, key: str, folder: Path, info: LweKeyInfo) -> tuple[list[str], Plain]:
        public = folder / PUBLIC_FILE
        return [f"key {key}: shares of an LWE secret, public key {public}"], {"public": public}

    def sharing(self, committee: Committee, parameters: LweParameters) -> Sharing:
        return sharing_of(committee, parameters)

    def encrypt_to(self, folder: Path, info: LweKeyInfo, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        # Each value is an LWE ciphertext.
        if bound is not None:
            raise ParameterError("--bound is for CKKS, and this is a key of LWE: leave it out")
        public = load_lwe_public_key(folder, info)
        data = public.encrypt(integers(public.parameters, values)).to_bytes(public.key_id)
        save_file(output, data)
        return EncryptedFile(output, data, info)

    def masked_limit(self, parameters: LweParameters) -> str:
        return (
            "LWE decryptions are not counted: take it for noise that the receiver cannot relate to the secret, as that of fresh ciphertexts of others"
        )


SCHEME = LweScheme()
