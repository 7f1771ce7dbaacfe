"""Options that several commands have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from keyquorum import api
from keyquorum.backends import BACKENDS
from keyquorum.model.errors import ParameterError
from keyquorum.model.links import FORMS
from keyquorum.model.subset import parse_numbers
from keyquorum.schemes import more_set_names
from keyquorum.serve.client import LONGEST_WAIT

from . import completion

Folder = Annotated[Path, typer.Argument(help="Committee folder.", show_default=False)]
Key = Annotated[str, typer.Argument(help="Name of the key.", show_default=False, autocompletion=completion.keys)]
NewKey = Annotated[str, typer.Argument(help="Name of the new key.", show_default=False)]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)]
BackendName = Annotated[str, typer.Option("--backend", help=f"Engine that runs the programs: {' or '.join(BACKENDS)}; the same at all parties.")]
MpSpdzFolder = Annotated[
    Path | None,
    typer.Option("--mp-spdz", help="Built checkout of MP-SPDZ (default: MP_SPDZ_HOME).", show_default=False),
]
Parties = Annotated[
    str | None,
    typer.Option(
        "--parties",
        help="Parties that do it without the others, as 0,2, t + 1 of shamir or rep-field, 2t + 1 of Shamir's sharing for malicious parties, or with shares of keyquorum share; served also any (default: all).",
        show_default=False,
    ),
]
LinkSpec = Annotated[
    str | None,
    typer.Option("--link", help=f"Simulate links between the parties: {FORMS}.", show_default=False),
]

# decrypt
Ciphertexts = Annotated[
    list[Path], typer.Argument(help="Ciphertexts of SEAL, of LWE, or of TFHE-rs; all are decrypted in the same rounds.", show_default=False)
]
Receiver = Annotated[int | None, typer.Option("--to", help="The party that learns the result.", show_default=False)]
Plaintexts = Annotated[
    list[Path] | None,
    typer.Option(
        "--output", "-o", help="Where the receiver writes: a folder, or a file for each ciphertext (default: CIPHERTEXT.plain).", show_default=False
    ),
]
Served = Annotated[bool, typer.Option("--committee", help="LWE, BFV, BGV: ask the served committee (keyquorum serve); the result comes to us alone.")]
OwnIdentity = Annotated[Path | None, typer.Option(help="--committee: our identity, made by keyquorum receiver.", show_default=False)]
Addresses = Annotated[
    list[str] | None,
    typer.Option(help="--committee: HOST:PORT of every party, in order; repeat (default: those of this host).", show_default=False),
]
LongWait = Annotated[float, typer.Option(help="--committee: seconds to wait for parties that do not listen yet, or are not connected.")]
ExactOrMasked = Annotated[
    str | None,
    typer.Option(
        help="BFV, BGV, LWE: round_ltz_circuit (exact; the default), or round_mask_open, whose errors reveal something of the key: a few decryptions, counted.",
        show_default=False,
    ),
]
FromPool = Annotated[bool, typer.Option("--pool", help="BFV, BGV: take the masks from the committee's pool; LWE does always.")]
CheckNoise = Annotated[
    bool,
    typer.Option(
        "--check-noise",
        help="BFV, BGV: decrypt only if a joint check, which opens one bit, finds less than half of the noise that may be. Few failures are allowed.",
    ),
]

# keygen
ParameterSetName = Annotated[
    str,
    typer.Option(
        "--params",
        "-p",
        help=f"Parameter set: a name (see keyquorum parameters; also {', '.join(more_set_names())}) or a TOML file.",
        autocompletion=completion.parameter_sets,
    ),
]
NewCommittee = Annotated[
    str | None,
    typer.Option(
        help="reshare, at old members: the committee that gets all keys, as its folder or its digest, asked over a channel you trust.",
        show_default=False,
    ),
]
OldCommittee = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="reshare, at new members: the committee whose keys come, as its folder or its digest, asked over a channel you trust.",
        show_default=False,
    ),
]
Steps = Annotated[
    list[int] | None, typer.Option("--step", "-s", help="Rotation step to make a Galois key for; 0: conjugation or column swap. Repeat.")
]
FloodBits = Annotated[
    int | None,
    typer.Option(
        help="CKKS: s, the bits of the flooding, all decryptions together. An adversary's advantage is about 2^(-s/2 - 3). Below 30: weak (default: 30).",
        show_default=False,
    ),
]
Decryptions = Annotated[
    int | None,
    typer.Option(help="CKKS: decryptions that the key may ever serve; four times as many cost a bit of precision (default: 16).", show_default=False),
]
NoiseBits = Annotated[
    int | None,
    typer.Option(
        help="CKKS: log2 of the bound on the root mean square of a ciphertext's noise, over its coefficients (default: that of the parameter set).",
        show_default=False,
    ),
]
Approvals = Annotated[bool, typer.Option(help="CKKS: every party decrypts only ciphertexts that were approved at it (keyquorum approve).")]
SchemeOptions = Annotated[
    list[str] | None, typer.Option("--option", help="NAME=VALUE: an option of the set's scheme that is none of the above. Repeat.")
]


class Place(TypedDict):
    """Options of a job that say where its programs run, as functions of :mod:`keyquorum.api` take them."""

    backend: str
    mp_spdz: Path | None
    link: str | None


class Decryption(Place):
    """Options of :func:`keyquorum.api.decrypt` and of its job."""

    pool: bool
    parties: tuple[int, ...] | None
    check_noise: bool


@dataclass(frozen=True)
class Asking:
    """How a receiver asks a served committee. ``places``: addresses of the parties; None: those of this host. ``wait``: seconds to wait for parties."""

    identity: Path
    places: list[tuple[str, int]] | None
    wait: float

    @staticmethod
    def of(identity: Path | None, at: list[str] | None, wait: float) -> Asking:
        """From the options. Raises ParameterError."""
        if not 0 <= wait <= LONGEST_WAIT:
            raise ParameterError(f"--wait {wait:g}: choose 0 to {LONGEST_WAIT:g} seconds")
        if identity is None:
            raise ParameterError("no identity: make one with keyquorum receiver, and name it with --identity")
        return Asking(identity, None if at is None else [api.address(text) for text in at], wait)


def chosen(parties: str | None) -> tuple[int, ...] | None:
    """The numbers of ``--parties``; None for all. Raises ParameterError."""
    return None if parties is None else parse_numbers(parties)
