"""LWE behind the interface of schemes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import Persistence
from keyquorum.fhe.lwe import LWE_SETS, LweCiphertexts, LweParameters, file_scheme, lwe_parameters, messages_to_bytes, read_lwe, read_messages
from keyquorum.fhe.lwe_public import PUBLIC_FILE, integers
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.outputs import save_file
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import Decrypted, EncryptedFile, Scheme, Words
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Parameters, Plain
from keyquorum.sharing.field_variant import FieldVariant, over_fields
from keyquorum.sharing.rounding import RoundingGroup
from keyquorum.sharing.variants import PaddedOutput, Variant, combine, combine_modulo

from .field_variant import FIELD, LweFieldVariant, field_variant, words_of_messages
from .inspect import KINDS
from .key import LweKeyInfo, load_lwe_public_key, sharing_of
from .keygen import LweRequest, generate
from .phases import lwe_phases, phases_modulo_q
from .variant import LweVariant, messages_of, padded_output

Ints = NDArray[np.int64]

MOST_CIPHERTEXTS = 4096
"""Most LWE ciphertexts of a request: up to 64 MiB. Receivers send longer files in parts."""
NUMBER = 8
"""Bytes of a message in JSON, at most: it has up to 16 bits."""
NOISE_IN_VIEW = ("round_mask_open", "round_flood")
"""Roundings whose results depend on the noise."""
SEAL_OPTIONS = {"galois_elements": "--step is for Galois keys of SEAL", "policy": "a policy is for CKKS"}


def _own(parameters: Parameters) -> LweParameters:
    assert isinstance(parameters, LweParameters)
    return parameters


@dataclass(frozen=True)
class LweDecrypted(Decrypted):
    """What a receiver gets of a file of LWE ciphertexts: the messages, with their padding bits, and the bytes of the plaintext file (JSON)."""

    messages: Ints


class LweScheme(Scheme[LweKeyInfo, LweCiphertexts]):
    """Files of LWE ciphertexts under binary secrets, decrypted by a rounding with items of a pool."""

    title = "LWE"
    names = ("lwe",)
    order = 1
    batch = 1024
    most_asked = MOST_CIPHERTEXTS
    names_key = True
    subset_vectors = 1
    verified = True
    metadata: ClassVar[type[LweKeyInfo]] = LweKeyInfo
    """Class of the metadata of keys."""
    options: ClassVar[tuple[str, ...]] = ()
    """Names of the options of requests."""
    request_type: ClassVar[type[LweRequest]] = LweRequest
    """Class of requests for keys."""

    def set_names(self) -> list[str]:
        """See :class:`.Scheme`."""
        return list(LWE_SETS)

    def load(self, name_or_path: str | Path, warn: bool = True) -> LweParameters:
        """See :class:`.Scheme`. There are shipped sets alone."""
        return lwe_parameters(str(name_or_path))

    def describe_set(self, parameters: Parameters) -> tuple[str, Plain]:
        """See :class:`.Scheme`."""
        p = _own(parameters)
        modulus = f"{p.prime.bit_length()}-bit prime" if p.prime else "2^64"
        line = f"lwe  n={p.dimension:<6} q={modulus} p={1 << p.plain_bits} padding={p.padding_bits} noise<2^{p.noise_bits}"
        names = ("scheme", "dimension", "modulus", "plain_bits", "padding_bits", "noise_bits")
        return line, {name: getattr(p, name) for name in names}

    def request(self, parameters: Parameters, options: Mapping[str, object]) -> LweRequest:
        """See :class:`.Scheme`. ``relin`` and ``error_law``, which have defaults, are not looked at."""
        for option, reason in SEAL_OPTIONS.items():
            if options.get(option):
                raise ParameterError(f"{reason}, and {parameters.name} is a set of {self.title}: leave it out")
        unknown = sorted(set(options) - {"relin", "error_law", *SEAL_OPTIONS, *self.options})
        if unknown:
            raise ParameterError(
                f"{unknown[0]} is no option of keys of {self.title}, which have {' and '.join(self.options) or 'none'}: leave it out"
            )
        return self.request_type(_own(parameters))

    def request_from_job(self, job: Plain) -> LweRequest:
        """See :class:`.Scheme`."""
        return LweRequest.from_json(job)

    def generate(self, context: PartyContext, request: KeyRequest, seed: bytes | None = None, folder: Path | None = None) -> KeyMaterial[LweKeyInfo]:
        """See :class:`.Scheme`."""
        assert isinstance(request, LweRequest)
        return generate(context, request, seed)

    def key_from_json(self, data: Plain) -> LweKeyInfo:
        """See :class:`.Scheme`."""
        return LweKeyInfo.from_json(data)

    def check_public(self, folder: Path, info: LweKeyInfo) -> None:
        """See :class:`.Scheme`."""
        if info.files:
            load_lwe_public_key(folder, info)

    def kinds(self) -> tuple[Kind, ...]:
        """See :class:`.Scheme`."""
        return KINDS

    def describe_key(self, info: LweKeyInfo) -> list[str]:
        """See :class:`.Scheme`."""
        p = info.parameters
        q = f"{p.prime}" if p.prime else "2^64"
        public = ", ".join(info.files) or "none: it was made before there were any"
        return [f"LWE key {info.key_id}, {p.name}, n = {p.dimension}, q = {q}, {p.plain_bits} bits a message", f"public key: {public}"]

    def describe_shares(self, info: LweKeyInfo) -> str:
        """See :class:`.Scheme`."""
        return f"a share of LWE, {', '.join(info.files) or 'without a public key'}"

    def made(self, key: str, folder: Path, info: LweKeyInfo) -> tuple[list[str], Plain]:
        """See :class:`.Scheme`."""
        public = folder / PUBLIC_FILE
        return [f"key {key}: shares of an LWE secret, public key {public}"], {"public": public}

    def check_backend(self, parameters: Parameters, backend: str, link: str | None) -> None:
        """See :class:`.Scheme`."""
        if backend != "embedded" or link is not None:
            raise ParameterError(
                f"{parameters.name}: keys of {self.title} are made on the embedded engine, without simulated links: leave out --backend and --link"
            )

    def encrypt_to(self, folder: Path, info: LweKeyInfo, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        """See :class:`.Scheme`. An LWE ciphertext a value."""
        if bound is not None:
            raise ParameterError("--bound is for CKKS, and this is a key of LWE: leave it out")
        public = load_lwe_public_key(folder, info)
        data = public.encrypt(integers(public.parameters, values)).to_bytes(public.key_id)
        save_file(output, data)
        return EncryptedFile(output, data, info)

    def decode_file(self, info: LweKeyInfo, path: Path, count: int = 0) -> tuple[NDArray[np.int64], None]:
        """See :class:`.Scheme`."""
        if count < 0:
            raise ParameterError(f"{count} values: choose how many to print, or 0 for all")
        messages = np.array(read_messages(path)[0], dtype=np.int64)
        return (messages[:count] if count else messages), None

    def recognises(self, head: bytes) -> bool:
        """See :class:`.Scheme`."""
        return file_scheme(head) in self.names

    def parse(self, info: LweKeyInfo, data: bytes, what: str, rounding: str) -> LweCiphertexts:
        """See :class:`.Scheme`. The file names its key."""
        ciphertexts, key_id = read_lwe(data, what)
        if key_id != info.key_id or ciphertexts.parameters != info.parameters:
            raise CiphertextError(f"{what} is encrypted under another key ({key_id}), not {info.key_id}: name that key")
        ciphertexts.check_rounding(rounding, what)
        return ciphertexts

    def read_ciphertext(self, info: LweKeyInfo, path: Path, data: bytes, rounding: str) -> LweCiphertexts:
        """See :class:`.Scheme`."""
        return self.parse(info, data, str(path), rounding)

    def check_decryption(self, info: LweKeyInfo, ciphertexts: Sequence[LweCiphertexts], receiver: int, rounding: str) -> None:
        """See :class:`.Scheme`."""
        if not 0 <= receiver < info.parties:
            raise ParameterError(f"there is no party {receiver}: choose a receiver from 0 to {info.parties - 1}")

    def plaintext_size(self, info: LweKeyInfo, ciphertext: LweCiphertexts) -> int:
        """See :class:`.Scheme`."""
        return NUMBER * ciphertext.count + 64 + sum(len(name) + 4 for name in ciphertext.types)

    def item_count(self, info: LweKeyInfo, ciphertext: LweCiphertexts) -> int:
        """See :class:`.Scheme`."""
        return ciphertext.count

    def describe_plaintext(self, ciphertext: LweCiphertexts) -> str:
        """See :class:`.Scheme`."""
        return f"{ciphertext.count} messages"

    def pooled(self, info: LweKeyInfo, wanted: bool) -> bool:
        """See :class:`.Scheme`."""
        return True

    def phases(
        self, context: PartyContext, group: RoundingGroup, info: LweKeyInfo, shares: Sequence[Persistence], variant: Variant,
        ciphertexts: Sequence[LweCiphertexts], keep: bool = False,
    ) -> Words:  # fmt: skip
        """See :class:`.Scheme`. Over prime fields alone [1, parts, items]: modulo q."""
        joined = ciphertexts[0] if len(ciphertexts) == 1 else LweCiphertexts(
            info.parameters, np.concatenate([c.a for c in ciphertexts]), np.concatenate([c.b for c in ciphertexts])
        )  # fmt: skip
        with context.phase("phase"):
            if isinstance(variant, FieldVariant):
                return phases_modulo_q(context, group, shares[0], joined)
            return lwe_phases(context, group, shares[0], joined)

    def plaintexts(self, info: LweKeyInfo, ciphertexts: Sequence[LweCiphertexts], words: Words) -> list[LweDecrypted]:
        """See :class:`.Scheme`. JSON: :func:`.messages_to_bytes`."""
        messages, at = messages_of(info.parameters, words), 0
        found = []
        for ciphertext in ciphertexts:
            own = messages[at : at + ciphertext.count]
            found.append(LweDecrypted(messages_to_bytes(own, ciphertext.types), own))
            at += ciphertext.count
        return found

    def check_served(self, committee: Committee, rounding: str) -> None:
        """See :class:`.Scheme`."""
        if (committee.verifies_products or committee.authenticated) and rounding in NOISE_IN_VIEW:
            others = "round_ltz_circuit" if over_fields(committee) else "round_ltz_circuit or round_ltz_table"
            raise ParameterError(
                f"{rounding} tells of the noise, and so of the secret key, to receivers outside: {committee.protocol} serves LWE with {others}"
            )

    def unit(self, parameters: Parameters) -> int:
        """See :class:`.Scheme`."""
        return 1

    def request_limit(self, parameters: Parameters) -> int:
        """See :class:`.Scheme`."""
        return MOST_CIPHERTEXTS * 8 * (_own(parameters).dimension + 1) + 4096

    def key_of(self, data: bytes, what: str) -> LweKeyInfo:
        """See :class:`.Scheme`. Of a committee that is not known."""
        ciphertexts, key_id = read_lwe(data, what)
        return self.metadata(key_id=key_id, parameters=ciphertexts.parameters, protocol="", parties=1, threshold=0)

    def request_parts(self, info: LweKeyInfo, data: bytes, ciphertext: LweCiphertexts) -> Iterator[tuple[bytes, int]]:
        """See :class:`.Scheme`."""
        for first in range(0, ciphertext.count, MOST_CIPHERTEXTS):
            part = ciphertext.part(first, min(first + MOST_CIPHERTEXTS, ciphertext.count))
            yield data if part.count == ciphertext.count else part.to_bytes(info.key_id), part.count

    def message_modulus(self, parameters: Parameters, committee: Committee) -> int:
        """See :class:`.Scheme`."""
        return FIELD if over_fields(committee) else 0

    def combine(self, parameters: Parameters, shares: Sequence[Words], modulus: int) -> Words:
        """See :class:`.Scheme`."""
        if modulus:
            return words_of_messages(_own(parameters), combine_modulo(shares, modulus))
        return combine(shares, _own(parameters).ring_bits)

    def padded(self, parameters: Parameters) -> PaddedOutput:
        """See :class:`.Scheme`."""
        return padded_output(_own(parameters))

    def words_of(self, parameters: Parameters, messages: Words) -> Words:
        """See :class:`.Scheme`."""
        words: Words = messages << np.uint64(_own(parameters).noise_length)
        return words

    def variant(self, committee: Committee, rounding: str, parameters: Parameters, width: int, levels: int) -> LweVariant | LweFieldVariant:
        """See :class:`.Scheme`."""
        own = _own(parameters)
        sharing_of(committee, own)
        if over_fields(committee):
            return field_variant(committee, rounding, own)
        triples = rounding == "round_ltz_circuit" and committee.rounds_with_triples
        return LweVariant(
            rounding,
            own,
            width,
            levels,
            triples and not committee.authenticated,
            committee.authenticated,
            committee.verifies_products,
            committee.size,
        )

    def masked_limit(self, parameters: Parameters) -> str:
        """See :class:`.Scheme`."""
        return (
            "LWE decryptions are not counted: take it for noise that the receiver cannot relate to the secret, as that of fresh ciphertexts of others"
        )


SCHEME = LweScheme()
