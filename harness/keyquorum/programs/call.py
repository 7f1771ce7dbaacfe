"""A program with its arguments, and the named segments of the share file that it reads and appends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keyquorum.model.errors import ParameterError


@dataclass(frozen=True)
class Segment:
    """Consecutive shares of a share file: ``length`` of them, from position ``start`` on."""

    start: int
    length: int

    def __post_init__(self) -> None:
        if self.start < 0 or self.length < 0:
            raise ParameterError(f"there is no segment of {self.length} shares at position {self.start}")

    @property
    def slice(self) -> slice:
        """Indices of the segment in a vector of one word a share."""
        return slice(self.start, self.start + self.length)

    def rows(self, first: int, last: int, size: int) -> Segment:
        """The rows ``first`` .. ``last`` - 1 of a segment that consists of rows of ``size`` shares."""
        part = Segment(self.start + first * size, (last - first) * size)
        if first < 0 or part.slice.stop > self.slice.stop:
            raise ParameterError(f"rows {first} to {last} of {size} shares are not in a segment of {self.length} shares")
        return part


class Layout:
    """The segments of a share file by name, in their order in the file."""

    def __init__(self, **lengths: int) -> None:
        self._segments: dict[str, Segment] = {}
        for name, length in lengths.items():
            self.add(name, length)

    @property
    def length(self) -> int:
        """Shares of all segments."""
        return sum(segment.length for segment in self._segments.values())

    @property
    def first(self) -> Segment:
        """The first segment; there must be one."""
        return next(iter(self._segments.values()))

    def copy(self) -> Layout:
        """An independent copy."""
        return Layout(**{name: segment.length for name, segment in self._segments.items()})

    def add(self, name: str, length: int) -> Segment:
        """A further segment at the end. Raises ParameterError if there is one of that name."""
        if name in self._segments:
            raise ParameterError(f"the share file has a segment {name!r} already")
        self._segments[name] = segment = Segment(self.length, length)
        return segment

    def append(self, call: Call, **names: str) -> None:
        """What a program appends, which has just run on the share file. ``names``: other names for some of its segments.
        Raises ParameterError if the header of the program does not state their sizes."""
        for name, length in call.writes.items():
            if length is None:
                raise ParameterError(f"{call.program}: the header does not state how many shares {name} has")
            if length:
                self.add(names.get(name, name), length)

    def __getitem__(self, name: str) -> Segment:
        if name not in self._segments:
            raise ParameterError(f"the share file has no segment {name!r}: it has {', '.join(self._segments) or 'none'}")
        return self._segments[name]


@dataclass(frozen=True)
class Call:
    """A run of a program. Functions of :mod:`.signatures` make calls.

    ``program``: a name of the collection, or the path of a file. ``args``: in MP-SPDZ's order. ``writes``: the segments that it appends to the
    share file, and their lengths in shares, None where the header does not state it."""

    program: str
    args: Sequence[object] = ()
    writes: Mapping[str, int | None] = field(default_factory=dict, compare=False)

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments as they stand on MP-SPDZ's command line."""
        return tuple(map(str, self.args))


def position(program: str, name: str, segment: Segment | None, default: int, length: int | None) -> int:
    """Where a program reads the shares ``name``: the segment's start, or ``default``. Raises ParameterError if the segment has another length
    than the program reads; ``length`` is None where that depends on the protocol."""
    if segment is None:
        return default
    if length is not None and segment.length != length:
        raise ParameterError(f"{program} reads {length} shares of {name}: the segment has {segment.length}")
    return segment.start


def given(*values: tuple[object, object]) -> list[object]:
    """Optional arguments (value, default) without the last ones that have their defaults."""
    needed = max((i + 1 for i, (value, default) in enumerate(values) if value != default), default=0)
    return [value for value, _ in values[:needed]]
