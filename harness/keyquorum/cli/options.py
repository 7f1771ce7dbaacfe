"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum.backends import BACKENDS
from keyquorum.model.links import FORMS

BackendName = Annotated[str, typer.Option("--backend", help=f"Engine that runs the programs: {' or '.join(BACKENDS)}; the same at all parties.")]
MpSpdzFolder = Annotated[
    Path | None,
    typer.Option("--mp-spdz", help="Built checkout of MP-SPDZ (default: MP_SPDZ_HOME).", show_default=False),
]
LinkSpec = Annotated[
    str | None,
    typer.Option("--link", help=f"Simulate links between the parties: {FORMS}.", show_default=False),
]
