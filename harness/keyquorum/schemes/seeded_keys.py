"""Keys of the libraries that evaluate LWE ciphertexts: TFHE's and FHEW's.

A key has two secrets: z, the coefficients of a ring secret, under which ciphertexts are decrypted, and a short secret s. It has a public file of each
kind of its library, with a seed of masks and bodies (:mod:`keyquorum.fhe.seeded_files`). What differs is in the packages: sets, noise, programs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from keyquorum.fhe.lwe import LweCiphertexts, Words
from keyquorum.fhe.lwe_sets import set_of_file, shipped_set
from keyquorum.fhe.seeded_files import SEED_BYTES, F, P, SeededForm
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.inspected import Candidate, Kind, Report
from keyquorum.model.plain import is_hex

from .generation import Generation, Preamble, digest_first
from .key_folder import METADATA, holds_a_key, load_key, load_public_file
from .keys import KeyInfo, Plain, R, SecretVector
from .lwe.ciphertexts import LweCiphertextScheme
from .lwe.key import domain_of
from .lwe.texts import LweCiphertextTexts

I = TypeVar("I", bound="SeededKeyInfo[Any]")  # noqa: E741
Write = Callable[[Words], None]
"""Takes the next words of the bodies of a file."""


@dataclass(frozen=True, kw_only=True)
class SeededKeyInfo(KeyInfo, Generic[P]):
    """Metadata of a key."""

    parameters: P

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """z and s."""
        domain = domain_of(self.parameters)
        return (SecretVector(domain, self.parameters.dimension), SecretVector(domain, self.parameters.lwe_dimension))


@dataclass(frozen=True)
class SeededKeys(Generic[I, P, F]):
    """The keys of a library. ``title``: of its scheme; ``metadata``: their class; ``files``: the form of their public files; ``example``: a set, for
    errors."""

    title: str
    metadata: type[I]
    files: SeededForm[P, F]
    example: str

    def named(self, name: str) -> P:
        """The shipped set of a name. Raises ParameterError."""
        if name not in self.files.sets:
            raise ParameterError(f"unknown parameter set of {self.title} {name!r}: choose one of {', '.join(self.files.sets)}")
        return self.files.sets[name]

    def from_json(self, data: Plain) -> I:
        """Inverse of :meth:`.KeyInfo.to_json`; the parameter set must be the one of its name."""
        info = self.metadata(**{**data, "parameters": shipped_set(data["parameters"], self.named)})
        info.check_types()
        if set(info.files) != set(self.files.names) or not all(is_hex(digest, 64) for digest in info.files.values()):
            raise ValueError("entries of other types")
        return info

    def load(self, folder: Path) -> I:
        """The metadata of a key. Raises KeyFileError for a key of another scheme."""
        info = load_key(folder)
        if not isinstance(info, self.metadata):
            raise KeyFileError(
                f"{folder}: a key of {info.parameters.scheme.upper()}, not of {self.title}: name a key that keyquorum keygen -p {self.example} made"
            )
        return info

    def load_file(self, folder: Path, info: I, kind: str) -> F:
        """A public file of a key, checked against its metadata. Raises KeyFileError."""
        path = folder / self.files.name(kind)
        found = self.files.read(load_public_file(folder, info, path.name), str(path))
        if (found.kind, found.key_id, found.parameters) != (kind, info.key_id, info.parameters):
            raise KeyFileError(f"{path} is of another key: copy that of this key from another party")
        return found

    def inspected(self, writer: str) -> Kind:
        """The public files to ``keyquorum inspect``. ``writer``: the module that writes them."""
        return Kind(self.files.what, lambda candidate: candidate.head[:8] == self.files.magic, self._report, (writer,))

    def _report(self, candidate: Candidate) -> Report:
        path, checked, unit = candidate.path, "sha256", self.files.unit
        key = self.files.read(candidate.data, str(path))
        if holds_a_key(path.parent):
            self.load_file(path.parent, self.load(path.parent), key.kind)
            checked = f"sha256, also of {METADATA}"
        p = key.parameters
        library = self.files.what.removeprefix("public ")
        lines = [
            f"{key.kind} {library}, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, {key.bodies.size:,} {unit} of bodies",
            f"of key {key.key_id}, masks from the seed {key.seed.hex()}",
        ]
        details = {"parameters": p.name, "key_kind": key.kind, "key_id": key.key_id, "seed": key.seed.hex(), unit: key.bodies.size}
        return Report(lines, checked, details)

    @property
    def preamble(self) -> Preamble:
        """How their generations begin."""
        return Preamble(f"{self.title} key parameters", f"keyquorum {self.title} key".encode(), digest_first, toss=64, phase="set-up")

    def make_files(self, frame: Generation[R], parameters: P, makers: Mapping[str, Callable[[bytes, Write], None]]) -> None:
        """Makes the public files of a key, and compares the transcript, which the checksums of the files enter. ``makers``: each makes the bodies of a
        kind from the seed of its masks."""
        for kind in self.files.kinds:
            seed = hashlib.shake_256(f"keyquorum {self.title} masks {kind}".encode() + frame.tossed).digest(SEED_BYTES)
            with frame.file(self.files.name(kind)) as file:
                writer = self.files.writer(file, parameters, kind, frame.key_id, seed)
                makers[kind](seed, writer.write)
                frame.transcript.add(writer.finish())
        with frame.phase("check"):
            frame.compare()


class SeededTexts(LweCiphertextTexts[I, P]):
    """Texts about such keys."""

    def shares(self, info: I) -> str:
        return f"2 shares of {self.title}, {', '.join(info.files)}"


class SeededScheme(LweCiphertextScheme[I, P, R], Generic[I, P, R, F]):
    """A scheme of such keys."""

    keys: SeededKeys[I, P, F]

    def set_names(self) -> list[str]:
        return list(self.keys.files.sets)

    def named(self, name: str) -> P:
        return self.keys.named(name)

    def load(self, name_or_path: str | Path, warn: bool = True) -> P:
        if isinstance(name_or_path, Path):
            return set_of_file(name_or_path, self.named)
        return self.named(name_or_path)

    def key_from_json(self, data: Plain) -> I:
        return self.keys.from_json(data)

    def check_public(self, folder: Path, info: I) -> None:
        for kind in self.keys.files.kinds:
            self.keys.load_file(folder, info, kind)

    def check_made(self, folder: Path, info: I) -> None:
        # Sizes, headers, checksums, the range of the bodies, and that they look uniform.
        for kind in self.keys.files.kinds:
            self.keys.files.check(folder / self.keys.files.name(kind), kind, info.key_id, info.parameters)

    def vectors_needed(self, info: I, ciphertexts: Sequence[LweCiphertexts]) -> int:
        # Only the ring secret is needed.
        return 1


__all__ = ["SeededKeyInfo", "SeededKeys", "SeededScheme", "SeededTexts", "Write"]
