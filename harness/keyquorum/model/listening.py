"""Failures of listeners: which of them pass."""

from __future__ import annotations

import errno

PAUSE = 0.1
"""Seconds until the next try after the system refused a connection."""
PASSING = frozenset({
    errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED, errno.EINTR, errno.EAGAIN, errno.EPERM, errno.EPROTO,
    errno.ENETDOWN, errno.ENOPROTOOPT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EOPNOTSUPP, errno.ENETUNREACH,
})  # fmt: skip
"""Failures of accept that say nothing of the listener: a lack that passes, or a connection that is gone again (accept(2))."""
