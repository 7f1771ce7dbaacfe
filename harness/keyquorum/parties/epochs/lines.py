"""Lines of ``epochs.journal``: one for each statement that the party signed or heard, and for own steps without one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from keyquorum.model import journal
from keyquorum.model.epoch import NAME_DIGITS, Stage, Who
from keyquorum.model.errors import EpochError
from keyquorum.model.plain import Json, is_hex, json_loads


def journal_label(who: Who) -> str:
    """What checksums of a party's journal begin with."""
    return f"epochs {who}"


def journal_text(epoch: str, own: bool, said: Json) -> str:
    """A line of today. ``own``: whether this party did it."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"date": date, "epoch": epoch, "own": own, "said": said}, separators=(",", ":"))


def read_journal(path: Path, who: Who) -> list[Json]:
    """The lines of a journal of epochs. A torn end is left out: nothing depended on it. Raises EpochError if a whole line is damaged."""
    texts, _ = journal.whole_lines(journal_label(who), path.read_bytes() if path.exists() else b"")
    try:
        if texts is None:
            raise ValueError("its checksum is wrong")
        lines = [json_loads(text) for text in texts]
        for line in lines:
            if not is_hex(line["epoch"], NAME_DIGITS) or not isinstance(line["own"], bool) or not isinstance(line["said"], dict):
                raise ValueError("an entry is not proper")
            datetime.fromisoformat(line["date"])
            Stage(line["said"]["kind"])
    except (ValueError, KeyError, TypeError) as error:
        raise EpochError(
            f"{path}: a line is damaged ({error}), so what this party signed is not known: restore the newest backup of this file"
        ) from None
    return lines
