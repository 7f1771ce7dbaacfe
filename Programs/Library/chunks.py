"""Long vectors in pieces, so that memory stays bounded."""

from Compiler.library import for_range


def in_chunks(size, chunk, body):
    """body(m) for size // chunk pieces of m = chunk entries, one after another, then for the rest."""
    if size // chunk == 1:
        body(chunk)
    elif size >= chunk:
        @for_range(size // chunk)
        def _(i):
            body(chunk)
    if size % chunk:
        body(size % chunk)
