"""Temporary failures of listeners."""

from __future__ import annotations

import errno

PAUSE = 0.1
"""Seconds until the next try after the system refused a connection."""
PASSING = frozenset({
    errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED, errno.EINTR, errno.EAGAIN, errno.EPERM, errno.EPROTO,
    errno.ENETDOWN, errno.ENOPROTOOPT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EOPNOTSUPP, errno.ENETUNREACH,
})  # fmt: skip
"""Errors of accept(2) after which the listener goes on: a temporary lack of resources, or a connection that ended before it was accepted."""
