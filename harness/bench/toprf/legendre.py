"""The Legendre PRF under a shared key, beside AES: the job of the system ``legendre``."""

from __future__ import annotations

import numpy as np

from keyquorum._engine import legendre_symbols
from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.programs import Layout
from keyquorum.programs.signatures import legendre_keys, legendre_prf
from keyquorum.schemes.prf.key import LEGENDRE, sharing_of
from keyquorum.schemes.prf.legendre import SYMBOLS

from .runs import Once, measured

LEGENDRE_METHODS = {"degree-1": 1, "degree-2": 2}
LEGENDRE_BATCHES = (1, 64, 1024)


@party_job("bench:toprf-legendre", {"degree": int, "batch": int})
def legendre_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:toprf-legendre``: 128 symbols of ``batch`` points several times; medians of this party. ``wrong``: points of the last batch whose symbols
    are not those of the opened keys and points."""
    size, degree = job["batch"], job["degree"]
    (protocol, domain), p = sharing_of(context.committee, LEGENDRE), LEGENDRE.prime
    layout = Layout(points=size, constants=SYMBOLS, slopes=SYMBOLS)
    call = legendre_prf(
        size=size,
        bits=SYMBOLS,
        degree=degree,
        destination="share",
        points=layout["points"],
        constants=layout["constants"],
        slopes=layout["slopes"] if degree == 2 else None,
    )

    def opened(shares: ShareVector, start: int) -> bytes:
        engine, count = context.session.engine(protocol, domain, "open"), shares.length - start
        return engine.read_wide(engine.open(engine.import_(shares.export(start, count), count)))

    def once() -> Once[ShareVector]:
        """Points, constant terms and coefficients, all random."""
        file = ShareVector()
        context.backend.run(protocol, domain, legendre_keys(bits=layout.length, degree=1), shares=file, mode=Mode(keep=True))

        def online() -> ShareVector:
            context.backend.run(protocol, domain, call, shares=file, mode=Mode(keep=True))
            return file

        return Once(online)

    figures, file = measured(context, once)
    raw = opened(file, 0)
    values = [int.from_bytes(raw[i : i + 16], "little") for i in range(0, len(raw), 16)]
    points, constants, slopes = values[:size], values[size : size + SYMBOLS], values[size + SYMBOLS : layout.length]
    if degree == 1:
        wanted = [x + b for x in points for b in constants]
    else:
        wanted = [x * (x + a) + b for x in points for b, a in zip(constants, slopes, strict=True)]
    clear = legendre_symbols(p, b"".join((v % p).to_bytes(16, "little") for v in wanted))
    wrong = (clear != legendre_symbols(p, raw[16 * layout.length :])).reshape(size, -1).any(axis=1)
    return {**figures, "wrong": int(np.count_nonzero(wrong))}


__all__ = ["LEGENDRE_BATCHES", "LEGENDRE_METHODS"]
