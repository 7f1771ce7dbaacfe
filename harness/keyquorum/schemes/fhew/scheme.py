"""FHEW behind the interface of schemes. Its ciphertexts are LWE ciphertexts under the ring secret, and are decrypted as those of LWE keys are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from keyquorum.fhe.fhew import KINDS as FILE_KINDS
from keyquorum.fhe.fhew import PUBLIC, check_key_file, evaluated_deviation, file_name
from keyquorum.fhe.fhew_evaluation import encrypt
from keyquorum.fhe.lwe import FHEW_SETS, FhewParameters, LweCiphertexts
from keyquorum.fhe.lwe_public import integers
from keyquorum.fhe.lwe_sets import security_of, set_of_file
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.outputs import save_file
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import EncryptedFile, Scheme
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Parameters, Plain
from keyquorum.schemes.lwe.field_variant import LweFieldVariant
from keyquorum.schemes.lwe.key import LweKeyInfo
from keyquorum.schemes.lwe.scheme import LweScheme
from keyquorum.schemes.lwe.variant import LweVariant

from .inspect import KINDS
from .key import FILES, FhewKeyInfo, fhew_parameters, load_key_file, sharing_of
from .keygen import FhewRequest, generate

FLOODED = "round_flood"


def _own(thing: object) -> FhewParameters:
    assert isinstance(thing, FhewParameters)
    return thing


def _info(thing: object) -> FhewKeyInfo:
    assert isinstance(thing, FhewKeyInfo)
    return thing


class FhewScheme(LweScheme):
    """Keys of FHEW-like schemes modulo a prime, and decryption of their ciphertexts."""

    title = "FHEW"
    names = ("fhew",)
    order = 3
    job_fields: ClassVar[Mapping[str, type]] = {"noise": str}
    options = ("noise",)
    subset_vectors = 0  # prime fields
    verified = False
    metadata = FhewKeyInfo
    request_type = FhewRequest

    def set_names(self) -> list[str]:
        """See :class:`.Scheme`."""
        return list(FHEW_SETS)

    def load(self, name_or_path: str | Path, warn: bool = True) -> FhewParameters:
        """See :class:`.Scheme`. There are shipped sets alone."""
        if isinstance(name_or_path, Path):
            return set_of_file(name_or_path, fhew_parameters)
        return fhew_parameters(name_or_path)

    def describe_set(self, parameters: Parameters) -> tuple[str, Plain]:
        """See :class:`.Scheme`."""
        p = _own(parameters)
        line = f"fhew n={p.lwe_dimension:<6} N={p.dimension} q={p.prime.bit_length()}-bit prime p={1 << p.plain_bits}, the highest bit a carry"
        names = ("scheme", "lwe_dimension", "dimension", "modulus", "plain_bits", "variance", "switch_deviation", "samples", "source")
        return line, {**{name: getattr(p, name) for name in names}, **security_of(p)}

    def request(self, parameters: Parameters, options: Mapping[str, object]) -> FhewRequest:
        """See :class:`.Scheme`. ``noise``: one of :data:`.NOISES`; left to the committee by default."""
        super().request(parameters, options)
        made = FhewRequest(_own(parameters), str(options.get("noise", "")))
        made.check()
        return made

    def request_from_job(self, job: Plain) -> FhewRequest:
        """See :class:`.Scheme`."""
        return FhewRequest.from_json(job)

    def generate(self, context: PartyContext, request: KeyRequest, seed: bytes | None = None, folder: Path | None = None) -> KeyMaterial[LweKeyInfo]:
        """See :class:`.Scheme`."""
        assert isinstance(request, FhewRequest)
        return generate(context, request, seed, folder)  # type: ignore[return-value]  # metadata are read only

    def key_from_json(self, data: Plain) -> FhewKeyInfo:
        """See :class:`.Scheme`."""
        return FhewKeyInfo.from_json(data)

    def check_public(self, folder: Path, info: LweKeyInfo) -> None:
        """See :class:`.Scheme`."""
        for kind in FILE_KINDS:
            load_key_file(folder, _info(info), kind)

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
            f"FHEW key {info.key_id}, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, q = {p.prime}, {p.plain_bits} bits a message",
            f"public keys: {', '.join(info.files)}",
        ]

    def describe_noise(self, info: LweKeyInfo) -> str:
        """See :class:`.Scheme`."""
        return _info(info).noise_plan.text()

    def describe_shares(self, info: LweKeyInfo) -> str:
        """See :class:`.Scheme`."""
        return f"2 shares of FHEW, {', '.join(info.files)}"

    def made(self, key: str, folder: Path, info: LweKeyInfo) -> tuple[list[str], Plain]:
        """See :class:`.Scheme`."""
        plan = _info(info).noise_plan
        lines = [
            f"key {key}: shares of both secrets; public keys in {folder}: {', '.join(FILES)}",
            f"noise: {plan.text()}",
        ]
        return lines, {"public": [folder / name for name in FILES], "noise": plan.noise, "growth": plan.growth}

    def encrypt_to(self, folder: Path, info: LweKeyInfo, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        """See :class:`.Scheme`. An LWE ciphertext a value."""
        if bound is not None:
            raise ParameterError("--bound is for CKKS, and this is a key of FHEW: leave it out")
        public = load_key_file(folder, _info(info), PUBLIC)
        data = encrypt(public, integers(public.parameters, values)).to_bytes(public.key_id)
        save_file(output, data)
        return EncryptedFile(output, data, info)

    def vectors_needed(self, info: LweKeyInfo, ciphertexts: Sequence[LweCiphertexts]) -> int:
        """See :class:`.Scheme`. The ring secret alone."""
        return 1

    def variant(self, committee: Committee, rounding: str, parameters: Parameters, width: int, levels: int) -> LweVariant | LweFieldVariant:
        """See :class:`.Scheme`. Refuses flooding, which hides nothing of the noise of an evaluated ciphertext."""
        own = _own(parameters)
        if rounding == FLOODED:
            raise ParameterError(
                f"{own.name}: {rounding} is not for these ciphertexts, their noise is not small beside the distance of two messages: "
                "take round_ltz_circuit, round_ltz_table or round_mask_open"
            )
        sharing_of(committee, own)
        return super().variant(committee, rounding, parameters, width, levels)

    def masked_limit(self, parameters: Parameters) -> str:
        """See :class:`.Scheme`."""
        own = _own(parameters)
        # E|e| = sqrt(2/pi) deviations, of the distance of two messages
        wrong = 0.79788456 * evaluated_deviation(own, 2.0) / own.delta
        return (
            f"wrong once in about {1 / wrong:.1e} decryptions of an evaluated ciphertext, when the mask and the noise carry; FHEW decryptions are not "
            "counted: take it for noise that the receiver cannot relate to the secret"
        )


SCHEME: Scheme[Any, Any] = FhewScheme()
