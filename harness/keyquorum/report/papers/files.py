"""Reading of the data files beside the published figures."""

from __future__ import annotations

from pathlib import Path

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json, read_text, toml_loads
from keyquorum.model.resources import resource_folder


class RuleError(KeyQuorumError):
    """A data file beside the published figures is wrong: the text names the file, the entry and the correction."""


def folder() -> Path:
    """The folder of published figures."""
    return resource_folder("params/published")


def read_toml(path: Path) -> Json:
    """A data file. Raises RuleError if it cannot be read."""
    try:
        return toml_loads(read_text(path))
    except (OSError, ValueError) as error:
        raise RuleError(f"{path}: not readable as TOML ({error}): correct it, or reinstall keyquorum") from error
