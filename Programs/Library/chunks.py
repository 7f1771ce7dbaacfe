"""Long vectors in pieces, so that memory stays bounded."""

from Compiler.library import for_range, start_timer, stop_timer


def in_chunks(size, chunk, body):
    """body(m) for size // chunk pieces of m = chunk entries, one after another, then for the rest.

    Every piece is timed (timer 1: nothing that is made in pieces depends on a ciphertext), and so done before the next one.
    """

    def piece(m):
        start_timer(1)
        body(m)
        stop_timer(1)

    if size >= chunk:

        @for_range(size // chunk)
        def _(i):
            piece(chunk)

    if size % chunk:
        piece(size % chunk)
