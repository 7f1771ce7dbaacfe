"""Secret vectors in the share file."""

from __future__ import annotations

from functools import partial
from weakref import ref

from ..context import Dynamic, Ints, current
from ..errors import CompilerError, VectorMismatch
from .base import checked_size, public_int, read
from .clear import Element, regint, secret_type


class Stored(Element):
    """Vectors of shares that may be in the share file."""

    __slots__ = ("__weakref__", "_place")
    _place: int
    """Of a vector from the share file: its position there."""

    @classmethod
    def read_from_file(cls, start: object, n_items: int = 1, crash_if_missing: bool = True, size: int = 1) -> tuple[regint, list[Dynamic]]:
        """``n_items`` vectors of ``size`` shares from position ``start`` of the share file on.

        Returns the final position (-1 if that is the end of the file; -2 if there is no file, which stops the program
        unless ``crash_if_missing`` is false) and the vectors.
        """
        run = current()
        at, count, length = public_int(start, "read_from_file"), checked_size(n_items), checked_size(size)
        shares = run.io.shares
        shares.require_own()
        if run.io.writes_pending:
            run.settle()
        if not shares.exists:
            if crash_if_missing:
                raise CompilerError("Persistence not found: no shares were stored for this program")
            return regint(-2), [secret_type()(size=length) for _ in range(count)]
        vectors = [cls._stored(at + i * length, length) for i in range(count)]
        stop = at + count * length
        return regint(-1 if stop == shares.length else stop), vectors

    @classmethod
    def _stored(cls, start: int, size: int) -> Dynamic:
        """Shares of the share file, imported at their first use."""
        run = current()
        shares, engine = run.io.shares, run.engine
        shares.check(engine, start, size)
        vector = cls._lazy(size, lambda: engine.import_(shares.read(engine, start, size), size))
        vector._is_stored_at(start)
        return vector

    def _is_stored_at(self, start: int) -> None:
        """Notes the position of this vector in the share file. It is read at its first use, and at the latest before it would be overwritten."""
        self._place = start
        current().io.unread.append(ref(self))

    @property
    def _unread(self) -> bool:
        """Whether this is a vector of the share file that was not read as a whole yet."""
        return self._value is None and hasattr(self, "_place")

    def _pick_stored(self, indices: Ints) -> Dynamic:
        """The elements at these indices without reading the others; None if the vector was read already."""
        if not self._unread:
            return None
        run = current()
        data = run.io.shares.pick(run.engine, self._place, indices)
        return secret_type()._wrap(run.engine.import_(data, len(indices)))

    @classmethod
    def write_to_file(cls, shares: object, position: object = None) -> None:
        """Appends the shares of a vector (or of a list of vectors of one size) to the share file, or stores them from
        ``position`` on."""
        run = current()
        run.io.shares.require_own()
        items = [read(s) for s in (shares if isinstance(shares, (list, tuple)) else [shares])]
        for item in items:
            if not isinstance(item, secret_type()):
                raise CompilerError(f"write_to_file stores sint, not {type(item).__name__}")
            if item.size != items[0].size:
                raise VectorMismatch(f"write_to_file stores vectors of one size, not {items[0].size} and {item.size}")
        at = -1 if position is None else public_int(position, "write_to_file")
        for item in items:
            value = run.to_secret(item.value)
            run.io.writes_pending = True
            run.defer(partial(run.io.store, run.engine, value, at))
            at = at if at < 0 else at + item.size
