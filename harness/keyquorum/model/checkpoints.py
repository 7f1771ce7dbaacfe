"""Named points of the code at which a test may stop a process: `reached` does nothing unless a test has set a hook."""

from __future__ import annotations

from collections.abc import Callable

hook: Callable[[str], None] | None = None


def reached(name: str) -> None:
    """Calls the hook, if there is one."""
    if hook is not None:
        hook(name)
