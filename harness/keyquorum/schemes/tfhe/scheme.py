"""TFHE behind the interface of schemes. Its ciphertexts are LWE ciphertexts under the ring secret, and are decrypted as those of LWE keys are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from keyquorum.fhe.lwe import TFHE_SETS, LweCiphertexts, TfheParameters, is_lwe
from keyquorum.fhe.lwe_sets import security_of, set_of_file
from keyquorum.fhe.tfhe import KINDS as FILE_KINDS
from keyquorum.fhe.tfhe import check_key_file, file_name
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import EncryptedFile, Scheme
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Parameters, Plain
from keyquorum.schemes.lwe.field_variant import LweFieldVariant
from keyquorum.schemes.lwe.key import LweKeyInfo
from keyquorum.schemes.lwe.scheme import LweScheme
from keyquorum.schemes.lwe.variant import LweVariant

from .inspect import KINDS
from .key import FILES, TfheKeyInfo, load_key_file, sharing_of, tfhe_parameters
from .keygen import TfheRequest, generate
from .noise import BITS

REFUSED = {
    "round_mask_open": "the noise of an evaluated ciphertext (2^49 of 2^59) makes it wrong once in about 1,200 decryptions, and its errors leak the secret",
    "round_flood": "noise that hides 2^49 by 40 bits does not fit below 2^59",
}
"""Roundings without use for ciphertexts that TFHE-rs evaluated, and why."""


def _own(thing: object) -> TfheParameters:
    assert isinstance(thing, TfheParameters)
    return thing


class TfheScheme(LweScheme):
    """Keys for TFHE-rs, and decryption of its ciphertexts."""

    title = "TFHE"
    names = ("tfhe",)
    order = 2
    job_fields: ClassVar[Mapping[str, type]] = {"noise_method": str}
    options = ("noise_method",)
    verified = False
    metadata = TfheKeyInfo
    request_type = TfheRequest

    def set_names(self) -> list[str]:
        """See :class:`.Scheme`."""
        return list(TFHE_SETS)

    def load(self, name_or_path: str | Path, warn: bool = True) -> TfheParameters:
        """See :class:`.Scheme`. There are shipped sets alone."""
        if isinstance(name_or_path, Path):
            return set_of_file(name_or_path, tfhe_parameters)
        return tfhe_parameters(name_or_path)

    def describe_set(self, parameters: Parameters) -> tuple[str, Plain]:
        """See :class:`.Scheme`."""
        p = _own(parameters)
        message = p.plain_bits - p.carry_bits
        line = f"tfhe n={p.lwe_dimension:<6} N={p.dimension} q=2^64 message={message} carry={p.carry_bits} padding={p.padding_bits}"
        names = ("scheme", "lwe_dimension", "dimension", "modulus", "plain_bits", "carry_bits", "padding_bits", "lwe_noise", "glwe_noise")
        return line, {**{name: getattr(p, name) for name in names}, **security_of(p)}

    def request(self, parameters: Parameters, options: Mapping[str, object]) -> TfheRequest:
        """See :class:`.Scheme`. ``noise_method``: one of :data:`.noise.METHODS`, ``bits`` by default."""
        super().request(parameters, options)
        made = TfheRequest(_own(parameters), str(options.get("noise_method", BITS)))
        made.check()
        return made

    def request_from_job(self, job: Plain) -> TfheRequest:
        """See :class:`.Scheme`."""
        return TfheRequest.from_json(job)

    def generate(self, context: PartyContext, request: KeyRequest, seed: bytes | None = None, folder: Path | None = None) -> KeyMaterial[LweKeyInfo]:
        """See :class:`.Scheme`."""
        assert isinstance(request, TfheRequest)
        return generate(context, request, seed, folder)  # type: ignore[return-value]  # metadata are read only

    def key_from_json(self, data: Plain) -> TfheKeyInfo:
        """See :class:`.Scheme`."""
        return TfheKeyInfo.from_json(data)

    def check_public(self, folder: Path, info: LweKeyInfo) -> None:
        """See :class:`.Scheme`."""
        assert isinstance(info, TfheKeyInfo)
        for kind in FILE_KINDS:
            load_key_file(folder, info, kind)

    def check_made(self, folder: Path, info: LweKeyInfo) -> None:
        """See :class:`.Scheme`: sizes, headers and checksums, the range of the bodies, and that they look uniform."""
        for kind in FILE_KINDS:
            check_key_file(folder / file_name(kind), kind, info.key_id, _own(info.parameters))

    def kinds(self) -> tuple[Kind, ...]:
        """See :class:`.Scheme`."""
        return KINDS

    def describe_key(self, info: LweKeyInfo) -> list[str]:
        """See :class:`.Scheme`."""
        p = _own(info.parameters)
        return [
            f"TFHE key {info.key_id}, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, q = 2^64, {p.plain_bits} bits a block",
            f"public keys for TFHE-rs: {', '.join(info.files)}",
        ]

    def describe_shares(self, info: LweKeyInfo) -> str:
        """See :class:`.Scheme`."""
        return f"2 shares of TFHE, {', '.join(info.files)}"

    def made(self, key: str, folder: Path, info: LweKeyInfo) -> tuple[list[str], Plain]:
        """See :class:`.Scheme`."""
        lines = [
            f"key {key}: shares of both secrets; public keys for TFHE-rs in {folder}: {', '.join(FILES)}",
            f"keyquorum tfhe keys {folder} OUT makes keys of TFHE-rs from them",
        ]
        return lines, {"public": [folder / name for name in FILES]}

    def encrypt_to(self, folder: Path, info: LweKeyInfo, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        """See :class:`.Scheme`. TFHE-rs encrypts, under its own form of the public key."""
        raise ParameterError(f"{info.parameters.name}: TFHE-rs encrypts for keys of TFHE: use keyquorum tfhe encrypt, or TFHE-rs itself")

    def parse(self, info: LweKeyInfo, data: bytes, what: str, rounding: str) -> LweCiphertexts:
        """See :class:`.Scheme`. Names the function of TFHE-rs that writes what is taken."""
        if not is_lwe(data):
            raise CiphertextError(f"{what}: neither LWE ciphertexts nor a ciphertext that TFHE-rs's safe_serialize wrote: write it by safe_serialize")
        return super().parse(info, data, what, rounding)

    def vectors_needed(self, info: LweKeyInfo, ciphertexts: Sequence[LweCiphertexts]) -> int:
        """See :class:`.Scheme`. The ring secret alone."""
        return 1

    def variant(self, committee: Committee, rounding: str, parameters: Parameters, width: int, levels: int) -> LweVariant | LweFieldVariant:
        """See :class:`.Scheme`. Refuses the roundings that are wrong, or hide nothing, for evaluated ciphertexts."""
        own = _own(parameters)
        if rounding in REFUSED:
            raise ParameterError(
                f"{own.name}: {rounding} is not for these ciphertexts, {REFUSED[rounding]}: take round_ltz_circuit or round_ltz_table"
            )
        sharing_of(committee, own)
        return super().variant(committee, rounding, parameters, width, levels)

    def masked_limit(self, parameters: Parameters) -> str:
        """See :class:`.Scheme`. There is no such rounding."""
        return ""


SCHEME: Scheme[Any, Any] = TfheScheme()
