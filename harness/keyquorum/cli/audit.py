"""audit verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import is_hex
from keyquorum.parties.audit.verify import Verified, fingerprint_beside, party_fingerprint, verify
from keyquorum.terminal.output import emit, printed

from .app import App

app = App(help="The audit log of a served party.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Adds the commands."""
    parent.add_typer(app, name="audit")


@app.command("verify")
def check(
    files: Annotated[list[Path], typer.Argument(help="The log. Of one that was moved away all files, the oldest first.", show_default=False)],
    committee: Annotated[
        Path | None,
        typer.Option(help="Folder with the committee.toml that has the party's fingerprint (default: that of the log).", show_default=False),
    ] = None,
    party: Annotated[int | None, typer.Option(help="Whose log it is, with --committee.", show_default=False)] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(help="A chain that an earlier verification printed, which the log must still have; repeat.", show_default=False),
    ] = None,
) -> None:
    """Verify that no line of an audit log was changed, removed or moved, and that the party signed it.

    Lines are chained by hashes, and the party signs the last line of every write. Lines after the last signed one are reported as not signed yet. Lines that are missing at the end are noticed by the file LOG.head
    beside the log, and by --known.
    """
    if (committee is None) != (party is None):
        raise ParameterError("--committee and --party say together whose log it is: give both, or none")
    for chain in known or []:
        if not is_hex(chain, 64):
            raise ParameterError(f"--known {chain}: give 64 hexadecimal digits, as an earlier verification printed them")
    expected = party_fingerprint(committee, party) if committee is not None and party is not None else fingerprint_beside(files[-1])
    found = verify(files, expected, known or [])
    for line in _lines(found, expected):
        printed.print(line, markup=False)
    emit(
        {
            "first": found.first, "lines": found.head.number - found.first, "chain": found.head.chain, "unsigned": found.unsigned, "torn": found.torn,
            "earlier": found.earlier, "certificates": found.certificates, "compared": expected is not None,
        }
    )  # fmt: skip


def _lines(found: Verified, expected: str | None) -> list[str]:
    count = found.head.number - found.first
    lines = [f"{count:,} lines, chained: {found.first} to {found.head.number - 1}" if count else "no line of a chain"]
    if count:
        lines.append(f"the last chain, for --known later: {found.head.chain}")
    if found.unsigned:
        lines.append(f"not signed yet: the last {found.unsigned:,} lines")
    if found.torn:
        lines.append(f"{found.torn:,} lines are torn, as a full disk leaves them: nothing was answered for one")
    if found.earlier:
        lines.append(f"{found.earlier:,} lines before the chain, of an earlier build: whether they were changed is not known")
    for certificate in found.certificates:
        lines.append(
            f"signed under the certificate {certificate}, "
            + ("as committee.toml has it" if expected else "compare it with committee.toml, or name --committee")
        )
    return lines
