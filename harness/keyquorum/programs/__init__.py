"""Programs as Python calls: the headers of ``Programs/Source`` are read here, and each gives a function in :mod:`.signatures`."""

from .call import Call, Layout, Segment

__all__ = ["Call", "Layout", "Segment"]
