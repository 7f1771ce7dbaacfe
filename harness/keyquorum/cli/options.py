"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum.backends import BACKENDS
from keyquorum.model.links import FORMS
from keyquorum.model.subset import parse_numbers

BackendName = Annotated[str, typer.Option("--backend", help=f"Engine that runs the programs: {' or '.join(BACKENDS)}; the same at all parties.")]
MpSpdzFolder = Annotated[
    Path | None,
    typer.Option("--mp-spdz", help="Built checkout of MP-SPDZ (default: MP_SPDZ_HOME).", show_default=False),
]
Parties = Annotated[
    str | None,
    typer.Option(
        "--parties", help="Parties that do it without the others, as 0,2, with shares of keyquorum share (default: all).", show_default=False
    ),
]
LinkSpec = Annotated[
    str | None,
    typer.Option("--link", help=f"Simulate links between the parties: {FORMS}.", show_default=False),
]


def chosen(parties: str | None) -> tuple[int, ...] | None:
    """The numbers of ``--parties``; None for all. Raises ParameterError."""
    return None if parties is None else parse_numbers(parties)
