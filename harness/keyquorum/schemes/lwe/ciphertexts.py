"""LWE ciphertexts behind the interface of schemes, under keys of any scheme: LWE, TFHE and FHEW have keys of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import LweCiphertexts, LweParameters, file_scheme, messages_to_bytes, read_lwe, read_messages
from keyquorum.fhe.lwe_sets import shipped_set
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain, Sharing
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.outputs import save_file
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import MASKED, MASKED_ONE, Decrypted, EncryptedFile, Scheme, Words
from keyquorum.schemes.keys import K, Plain, R
from keyquorum.sharing.field_variant import FieldVariant, over_fields
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.variants import PaddedOutput, Variant, combine, combine_modulo

from .field_variant import FIELD, LweFieldVariant, field_variant, words_of_messages
from .key import domain_of
from .mask_open_one import mask_open_one
from .phases import lwe_phases, phases_modulo_q
from .variant import LweVariant, messages_of, padded_output

Ints = NDArray[np.int64]
L = TypeVar("L", bound=LweParameters)

MOST_CIPHERTEXTS = 4096
"""Most LWE ciphertexts of a request: up to 64 MiB. Receivers send longer files in parts."""
NUMBER = 8
"""Bytes of a message in JSON, at most: it has up to 16 bits."""
NOISE_IN_VIEW = (MASKED, MASKED_ONE, "round_flood")
"""Roundings whose results depend on the noise."""
SEAL_OPTIONS = {"galois_elements": "--step is for Galois keys of SEAL", "policy": "a policy is for CKKS"}


@dataclass(frozen=True)
class LweDecrypted(Decrypted):
    """What a receiver gets of a file of LWE ciphertexts: the messages, with their padding bits, and the bytes of the plaintext file (JSON)."""

    messages: Ints


class LweCiphertextScheme(Scheme[K, L, R, LweCiphertexts], Generic[K, L, R]):
    """Files of LWE ciphertexts, decrypted by a rounding with items of a pool. Parameter sets are shipped, and keys are made on the embedded engine.

    ``metadata``, ``request_type``: classes of the metadata of keys, and of requests, made of a set and of the
    options that ``job_fields`` names, texts.
    """

    batch = 1024
    most_asked = MOST_CIPHERTEXTS
    names_key = True
    metadata: type[K]
    request_type: Callable[..., R]

    # Sets and requests

    @abstractmethod
    def named(self, name: str) -> L:
        """The shipped set of a name. Raises ParameterError."""

    def parameters_from_json(self, data: Plain) -> L:
        """A parameter set from plain data. Raises ParameterError for a set that is not the shipped one of its name."""
        return shipped_set(data, self.named)

    def request(self, parameters: L, options: Mapping[str, object]) -> R:
        # ``relin`` and ``error_law`` have defaults: they are not looked at.
        for option, reason in SEAL_OPTIONS.items():
            if options.get(option):
                raise ParameterError(f"{reason}, and {parameters.name} is a set of {self.title}: leave it out")
        unknown = sorted(set(options) - {"relin", "error_law", *SEAL_OPTIONS, *self.job_fields})
        if unknown:
            raise ParameterError(
                f"{unknown[0]} is no option of keys of {self.title}, which have {' and '.join(self.job_fields) or 'none'}: leave it out"
            )
        made = self.request_type(parameters, **{name: str(options[name]) for name in self.job_fields if name in options})
        made.check()
        return made

    def request_from_job(self, job: Plain) -> R:
        return self.request_type(self.parameters_from_json(job["parameters"]), **{name: job[name] for name in self.job_fields})

    def check_backend(self, parameters: L, backend: str, link: str | None) -> None:
        if backend != "embedded":
            raise ParameterError(f"{parameters.name}: keys of {self.title} are made on the embedded engine: leave out --backend")

    @abstractmethod
    def sharing(self, committee: Committee, parameters: L) -> Sharing:
        """Protocol and domain of the secrets' shares. Raises ParameterError for a committee that cannot share modulo q."""

    # Files

    @abstractmethod
    def encrypted(self, folder: Path, info: K, values: Any) -> LweCiphertexts:
        """A fresh ciphertext of each value, under the public key in ``folder``. Raises ValuesError, ParameterError or KeyFileError."""

    def encrypt_to(self, folder: Path, info: K, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        if bound is not None:
            raise ParameterError(f"--bound is for CKKS, and this is a key of {self.title}: leave it out")
        data = self.encrypted(folder, info, values).to_bytes(info.key_id)
        save_file(output, data)
        return EncryptedFile(output, data, info)

    def decode_file(self, info: K, path: Path, count: int = 0) -> tuple[NDArray[np.int64], None]:
        if count < 0:
            raise ParameterError(f"{count} values: choose how many to print, or 0 for all")
        messages = np.array(read_messages(path)[0], dtype=np.int64)
        return (messages[:count] if count else messages), None

    def recognises(self, head: bytes) -> bool:
        return file_scheme(head) in self.names

    def parse(self, info: K, data: bytes, what: str, rounding: str) -> LweCiphertexts:
        # The file names its key.
        ciphertexts, key_id = read_lwe(data, what)
        if key_id != info.key_id or ciphertexts.parameters != info.parameters:
            raise CiphertextError(f"{what} is encrypted under another key ({key_id}), not {info.key_id}: name that key")
        ciphertexts.check_rounding(rounding, what)
        return ciphertexts

    def plaintext_size(self, info: K, ciphertext: LweCiphertexts) -> int:
        return NUMBER * ciphertext.count + 64 + sum(len(name) + 4 for name in ciphertext.types)

    def item_count(self, info: K, ciphertext: LweCiphertexts) -> int:
        return ciphertext.count

    def pooled(self, info: K, wanted: bool) -> bool:
        return True

    def secret_domain(self, parameters: L) -> Domain:
        return domain_of(parameters)

    def phases(
        self, context: PartyContext, group: RoundingGroup, info: K, shares: Sequence[ShareVector], variant: Variant,
        ciphertexts: Sequence[LweCiphertexts], keep: bool = False,
    ) -> Words:  # fmt: skip
        # Over prime fields alone [1, parts, items]: modulo q.
        joined = ciphertexts[0] if len(ciphertexts) == 1 else LweCiphertexts(
            ciphertexts[0].parameters, np.concatenate([c.a for c in ciphertexts]), np.concatenate([c.b for c in ciphertexts])
        )  # fmt: skip
        with context.phase("phase"):
            if isinstance(variant, FieldVariant):
                return phases_modulo_q(context, group, shares[0], joined)
            return lwe_phases(context, group, shares[0], joined)

    def plaintexts(self, info: K, ciphertexts: Sequence[LweCiphertexts], words: Words) -> list[LweDecrypted]:
        messages, at = messages_of(ciphertexts[0].parameters, words), 0
        found = []
        for ciphertext in ciphertexts:
            own = messages[at : at + ciphertext.count]
            found.append(LweDecrypted(messages_to_bytes(own, ciphertext.types), own))
            at += ciphertext.count
        return found

    def check_served(self, committee: Committee, rounding: str) -> None:
        if committee.whole.capabilities.adversary == "malicious" and rounding in NOISE_IN_VIEW:
            others = "round_ltz_circuit" if over_fields(committee) else "round_ltz_circuit or round_ltz_table"
            raise ParameterError(
                f"{rounding} tells of the noise, and so of the secret key, to receivers outside: {committee.protocol} serves LWE with {others}"
            )

    def request_limit(self, parameters: L) -> int:
        return MOST_CIPHERTEXTS * 8 * (parameters.dimension + 1) + 4096

    def key_of(self, data: bytes, what: str) -> K:
        # The committee is not known.
        ciphertexts, key_id = read_lwe(data, what)
        return self.metadata(key_id=key_id, parameters=ciphertexts.parameters, protocol="", parties=1, threshold=0)

    def request_parts(self, info: K, data: bytes, ciphertext: LweCiphertexts) -> Iterator[tuple[bytes, int]]:
        for first in range(0, ciphertext.count, MOST_CIPHERTEXTS):
            part = ciphertext.part(first, min(first + MOST_CIPHERTEXTS, ciphertext.count))
            yield data if part.count == ciphertext.count else part.to_bytes(info.key_id), part.count

    def message_modulus(self, parameters: L, committee: Committee) -> int:
        return FIELD if over_fields(committee) else 0

    def combine(self, parameters: L, shares: Sequence[Words], modulus: int) -> Words:
        if modulus:
            return words_of_messages(parameters, combine_modulo(shares, modulus))
        return combine(shares, parameters.ring_bits)

    def padded(self, parameters: L) -> PaddedOutput:
        return padded_output(parameters)

    def words_of(self, parameters: L, messages: Words) -> Words:
        words: Words = messages << np.uint64(parameters.noise_length)
        return words

    def variant(self, committee: Committee, rounding: str, parameters: L, width: int, levels: int) -> LweVariant | LweFieldVariant:
        self.sharing(committee, parameters)
        if over_fields(committee):
            return field_variant(committee, rounding, parameters)
        if rounding == MASKED_ONE:
            return mask_open_one(committee, parameters)
        triples = rounding == "round_ltz_circuit" and committee.rounds_with_triples
        return LweVariant(rounding, parameters, width, levels, triples, kind_of(committee), committee.size)


__all__ = ["LweCiphertextScheme", "LweDecrypted"]
