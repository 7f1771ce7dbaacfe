"""The command ``completion``, and the sources of completed values. The scripts and their protocol are Typer's."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

from keyquorum.fhe.seal import OPERATIONS
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.schemes import parameter_set_names
from keyquorum.schemes.key_folder import holds_a_key
from keyquorum.terminal.output import emit, printed

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_KEYQUORUM_COMPLETE"
"""The variable with which a shell asks for completions."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("completion")(completion)


def prepare() -> None:
    """Lets this process answer a shell that asks for completions."""
    completion_init()


def completion(
    shell: Annotated[str, typer.Argument(help=f"One of {', '.join(SHELLS)}.", show_default=False, autocompletion=lambda: list(SHELLS))],
) -> None:
    """Print a script that makes a shell complete commands, options, names of keys and parameter sets.

    bash: keyquorum completion bash > ~/.local/share/bash-completion/completions/keyquorum; zsh: > a file _keyquorum in a folder of fpath; fish:
    > ~/.config/fish/completions/keyquorum.fish
    """
    if shell not in SHELLS:
        raise ParameterError(f"no completion for {shell!r}: choose one of {', '.join(SHELLS)}")
    script = get_completion_script(prog_name="keyquorum", complete_var=VARIABLE, shell=shell)
    printed.print(script, markup=False)
    emit({"shell": shell, "script": script})


def _beginning(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def parameter_sets(incomplete: str) -> list[str]:
    """Names of shipped parameter sets."""
    return _beginning(parameter_set_names(), incomplete)


def operations(incomplete: str) -> list[str]:
    """Operations of keyquorum eval."""
    return _beginning(list(OPERATIONS), incomplete)


def protocols(incomplete: str) -> list[str]:
    """Protocols of committees."""
    return _beginning(list(COMMITTEES), incomplete)


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Keys of the committee whose folder was typed before."""
    with suppress(KeyQuorumError, OSError):
        committee = Committee.load(Path(ctx.params["folder"]))
        folders = [committee.party_folder(i) / "keys" for i in committee.local_parties()]
        return _beginning(sorted({path.name for folder in folders for path in folder.glob("*") if holds_a_key(path)}), incomplete)
    return []
