"""Joint generation of LWE keys: a secret of random bits that exists as shares only, and its public key.

In a key folder: ``lwe.json`` (metadata, the same at every party), ``public.lwepk`` (the public key), ``share-0.kqs``, this party's shares of the
secret, and under MACs ``mac-0.kqs``, its share of their key with the test of all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from keyquorum._engine import ShareFile
from keyquorum.dsl import Persistence
from keyquorum.fhe.lwe import LWE_SETS, LweParameters, lwe_parameters
from keyquorum.fhe.lwe_public import PUBLIC_FILE, LwePublicKey, expand_mask, public_noise, read_lwe_public_key, residues
from keyquorum.model.committee import AUTHENTICATED, Committee, write_atomically
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import Json, is_count, is_hex, json_loads
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext

from .keys import NewKey, read_mac, read_public_file, write_mac


@dataclass(frozen=True)
class LweKeyInfo:
    """Metadata of an LWE key. ``key_id``: 32 hexadecimal digits; ``files``: SHA-256 of each public file (none: the key is of before public keys)."""

    key_id: str
    parameters: str
    protocol: str
    parties: int
    threshold: int
    files: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> Json:
        """Plain data. Keys of before public keys have no ``files``."""
        return {name: value for name, value in asdict(self).items() if name != "files" or value}

    @property
    def digest(self) -> bytes:
        """32 bytes that identify the key with its files."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).digest()

    def header(self, party: int) -> Json:
        """Header of this party's share file."""
        set_ = lwe_parameters(self.parameters)
        return {
            "protocol": self.protocol,
            "domain": f"F_{set_.prime}" if set_.prime else "Z2^64",
            "parties": self.parties,
            "threshold": self.threshold,
            "party": party,
            "key_id": self.key_id,
            "length": set_.dimension,
        }


def _sets(prime: bool) -> str:
    """Names of the parameter sets modulo a prime, or modulo 2^64."""
    return ", ".join(name for name, p in LWE_SETS.items() if bool(p.prime) == prime)


def sharing_of(committee: Committee, parameters: LweParameters) -> tuple[str, str]:
    """Protocol and domain of the secret's shares; refuses a committee that cannot share modulo q."""
    if parameters.prime:
        if committee.authenticated:
            raise ParameterError(
                f"{committee.protocol}: phases modulo a prime are scaled share by share, which MACs do not follow: take one of {_sets(False)}"
            )
        return committee.field_protocol, f"F_{parameters.prime}"
    if committee.ring_protocol is None:
        raise ParameterError(
            f"{committee.protocol} shares over prime fields alone, {parameters.name} is modulo 2^64: take {_sets(True)}, or another committee"
        )
    return committee.ring_protocol, "Z2^64"


def make_lwe_key(context: PartyContext, parameters: LweParameters, seed: bytes | None = None) -> tuple[LweKeyInfo, Persistence]:
    """Makes a secret jointly; every party calls this. Rounds and bytes are those of `sample_bits`. ``seed``: INSECURE, tests."""
    committee = context.committee
    protocol, domain = sharing_of(committee, parameters)
    described = json.dumps([asdict(parameters), committee.protocol, committee.size, committee.threshold]).encode()
    context.session.compare("LWE key parameters", hashlib.sha256(described).digest())
    key_id = hashlib.sha256(b"keyquorum LWE key" + context.session.toss(32) + described).hexdigest()[:32]
    share = Persistence()
    with context.phase("secret"):
        context.backend.run(protocol, domain, "sample_bits", [parameters.dimension], threshold=committee.threshold, persistence=share, seed=seed)
    info = LweKeyInfo(key_id, parameters.name, committee.protocol, committee.size, committee.threshold)
    return info, share


def make_lwe_public_key(context: PartyContext, info: LweKeyInfo, share: Persistence, seed: bytes | None = None) -> LwePublicKey:
    """Makes the public key of a secret jointly; every party calls this. The noise exists as shares only, and the body is opened to all, who compare
    it. Rounds and bytes are those of `sample_tuniform` and `lwe_public_key`. ``seed``: INSECURE, tests."""
    committee, parameters = context.committee, lwe_parameters(info.parameters)
    protocol, domain = sharing_of(committee, parameters)
    mask_seed = hashlib.shake_256(b"keyquorum LWE public key" + context.session.toss(64)).digest(64)
    n, working = parameters.dimension, share.copy()
    with context.phase("noise"):
        context.backend.run(
            protocol, domain, "sample_tuniform", [n, public_noise(parameters).bound_bits], threshold=committee.threshold, persistence=working,
            seed=seed,
        )  # fmt: skip
    with context.phase("public key"):
        opened = context.backend.run(
            protocol, domain, "lwe_public_key", [n], threshold=committee.threshold, public=[expand_mask(parameters, mask_seed).view(np.int64)],
            persistence=working, seed=seed,
        ).words  # fmt: skip
        working.wipe()
        made = LwePublicKey(parameters, info.key_id, mask_seed, residues(parameters, opened))
        context.session.compare("public key of LWE", hashlib.sha256(made.to_bytes()).digest())
    return made


def lwe_keygen_job(context: PartyContext, job: Json) -> Json:
    """The job ``lwe_keygen``. Keys: ``key``, ``parameters`` (a name). The key counts when every party has stored its shares and the public key."""
    folder = context.committee.key_folder(context.party, job["key"])
    with NewKey(context, job["key"]) as new:
        info, share = make_lwe_key(context, lwe_parameters(job["parameters"]))
        public = make_lwe_public_key(context, info, share).to_bytes()
        ShareFile.write(str(new.folder / "share-0.kqs"), info.header(context.party), share.export())
        write_mac(new.folder / "mac-0.kqs", info.header(context.party), share)
        share.wipe()
        write_atomically(new.folder / PUBLIC_FILE, public)
        info = replace(info, files={PUBLIC_FILE: hashlib.sha256(public).hexdigest()})
        context.session.compare("stored LWE key", info.digest)
        write_lwe_info(new.folder, info)
        new.publish()
        context.session.compare("end of the key generation", info.digest)
    return {"key_id": info.key_id, "folder": str(folder)}


def write_lwe_info(folder: Path, info: LweKeyInfo) -> None:
    """Stores the metadata of an LWE key; from now on the key counts."""
    write_atomically(folder / "lwe.json", json.dumps(info.to_json(), indent=1).encode() + b"\n")


def load_lwe_key(folder: Path) -> LweKeyInfo:
    """Reads the metadata of an LWE key."""
    path = folder / "lwe.json"
    if not path.exists():
        raise KeyFileError(f"{folder}: no LWE key here (no lwe.json): make one with keyquorum keygen -p lwe64-p2")
    try:
        info = LweKeyInfo(**json_loads(path.read_text()))
        lwe_parameters(info.parameters)
        files = info.files
        known = isinstance(files, dict) and all(isinstance(name, str) and is_hex(digest, 64) for name, digest in files.items())
        if not (known and is_hex(info.key_id, 32) and isinstance(info.protocol, str) and is_count(info.parties) and is_count(info.threshold)):
            raise ValueError("entries of other types")
    except (ValueError, TypeError, ParameterError) as error:
        raise KeyFileError(f"{path}: not the metadata of an LWE key ({error}): restore it from a backup") from None
    return info


def load_lwe_public_key(folder: Path, info: LweKeyInfo) -> LwePublicKey:
    """The public key of an LWE key, checked against its metadata. Raises :class:`KeyFileError`, which says what to do where there is none."""
    if PUBLIC_FILE not in info.files:
        raise KeyFileError(
            f"{folder}: this LWE key has no public key, as it was made before there were any: make a new one with keyquorum keygen -p {info.parameters}"
        )
    key = read_lwe_public_key(read_public_file(folder, info.files, PUBLIC_FILE), str(folder / PUBLIC_FILE))
    if key.key_id != info.key_id or key.parameters.name != info.parameters:
        raise KeyFileError(f"{folder / PUBLIC_FILE} is of another key: copy that of this key from another party")
    return key


def load_lwe_share(folder: Path, info: LweKeyInfo, party: int) -> Persistence:
    """This party's shares of the secret; refuses damaged and foreign files, and those under a burned MAC key."""
    mac_key.check_key_folder(folder, info.protocol)
    header = info.header(party)
    data = np.frombuffer(ShareFile.read(str(folder / "share-0.kqs"), header), dtype="<u8")
    words = 2 if info.protocol in AUTHENTICATED else 1
    share = Persistence.from_words(data.reshape(-1, header["length"] * words).copy(), words)
    read_mac(folder / "mac-0.kqs", header, share)
    return share
