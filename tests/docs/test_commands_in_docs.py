"""Commands that the documents name: every subcommand and every option exists, also where nothing runs them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from keyquorum.cli import app

from .test_links import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs" / "pages").rglob("*.md"), ROOT / "Programs" / "README.md", ROOT / "examples" / "README.md"])
ROOT_COMMAND: Any = typer.main.get_command(app)


def mentions(text: str) -> Iterator[tuple[int, list[str]]]:
    """Lines of code blocks and spans of code that begin with ``keyquorum``: number of the line, words after it."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
            continue
        for found in [line.strip()] if fenced else re.findall(r"`([^`]*)`", line):
            if re.match(r"keyquorum [a-z-]", found):
                code = re.sub(r"\$\([^)]*\)", "X", found)
                yield number, [word for word in shlex.split(code, comments=True)[1:] if word != "&"]


def wrong(words: list[str]) -> str:
    """What does not exist among the words of a command; empty if all does."""
    command, words = ROOT_COMMAND, list(words)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        name = words.pop(0)
        if name not in command.commands:
            return "" if name.isupper() else f"no command {name!r}"
        command = command.commands[name]
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
    for word in words:
        option = word.split("=")[0] if word.startswith("--") else word[:2]
        if re.match(r"--?[A-Za-z]", word) and option not in known:
            return f"no option {option}"
    return ""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_and_option_exists(path: Path) -> None:
    found = [
        f"{path.name}:{number}: {reason}: keyquorum {' '.join(words)}" for number, words in mentions(path.read_text()) if (reason := wrong(words))
    ]
    assert found == []


def test_the_documents_have_commands_and_wrong_ones_are_found() -> None:
    assert sum(1 for path in DOCUMENTS for _ in mentions(path.read_text())) > 150
    for text, reason in (
        ("`keyquorum exprot c`", "no command 'exprot'"),
        ("```sh\nkeyquorum decrypt c k x --too 1  # x\n```", "no option --too"),
        ("`keyquorum pool fil`", "no command 'fil'"),
        ("`keyquorum init -X`", "no option -X"),
    ):
        ((_, words),) = mentions(text)
        assert wrong(words) == reason
    ((_, words),) = mentions("`keyquorum trust c 1 $(keyquorum fingerprint c)`")
    assert wrong(words) == "" and words == ["trust", "c", "1", "X"]
