"""The choice of a party's backend."""

from __future__ import annotations

from pathlib import Path

from keyquorum._engine import Session
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.links import parse

from .base import Backend
from .embedded import Embedded
from .mpspdz.checkout import Checkout
from .mpspdz.party import MpSpdz

BACKENDS = ("embedded", "mp-spdz")


def check_backend(name: str, committee: Committee, mp_spdz: str | Path | None = None) -> None:
    """Refuses a backend that cannot run a committee's protocol on this host, before any process starts. Raises ParameterError or BackendError."""
    if name not in BACKENDS:
        raise ParameterError(f"unknown backend {name!r}: choose one of {', '.join(BACKENDS)}")
    if name == "embedded":
        return
    checkout = Checkout.find(mp_spdz)
    for protocol in committee.protocols:
        checkout.binary(protocol)


def open_backend(name: str, session: Session, committee: Committee, mp_spdz: str | Path | None = None, link: str = "") -> Backend:
    """The backend of a party with a session. ``mp_spdz``: the checkout on this host (default: MP_SPDZ_HOME); ``link``: simulated
    links of connections that are not the session's."""
    check_backend(name, committee, mp_spdz)
    if name == "embedded":
        return Embedded(session)
    return MpSpdz(session, committee, Checkout.find(mp_spdz), link=parse(link) if link else None)
