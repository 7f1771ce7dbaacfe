"""TFHE-rs with one key beside a committee's keys for it, where the bridge is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keyquorum import api
from keyquorum.deploy.tfhe_bridge import bridge, run_bridge
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.errors import KeyQuorumError
from keyquorum.sweep.peers import PeerMissingError

from ..runner import committee_of
from .base import Pair, Peer, Setting, Spent
from .ours import IO_TIMEOUT, add_run

DIFFERS = "One party makes the keys alone; the committee's parties are processes over TLS, and nobody ever has the key. CPU of TFHE-rs is not known."


class SingleTfhe(Peer):
    """TFHE-rs, one party."""

    @property
    def name(self) -> str:
        """See :class:`Peer`."""
        return "TFHE-rs"

    @property
    def sets(self) -> Sequence[str]:
        """The shipped set."""
        return tuple(TFHE_SETS)

    @property
    def quick_sets(self) -> Sequence[str]:
        """None: a key takes long."""
        return ()

    def model(self, parameters: str) -> str:
        """One party has the key."""
        return "single-key"

    def version(self) -> str:
        """The bridge pins TFHE-rs."""
        try:
            bridge()
        except KeyQuorumError:
            return ""
        return "TFHE-rs 1.8.2"

    def pairs(self, setting: Setting) -> Iterator[Pair]:
        """Key generation."""
        try:
            bridge()
        except KeyQuorumError as error:
            raise PeerMissingError(str(error)) from error
        parameters, theirs, ours = TFHE_SETS[setting.parameters], Spent(), Spent()
        with committee_of(ADDITIVE, setting.parties) as committee:
            for run in range(setting.runs + 1):
                [seconds] = map(float, run_bridge(["time-keys"]))
                reports = api.keygen(committee, f"key-{run}", setting.parameters, io_timeout=IO_TIMEOUT).reports
                if run:  # the first one loads code
                    theirs.add(seconds, float("nan"))
                    add_run(ours, reports)
        bits = float(parameters.modulus.bit_length() - 1)
        yield Pair("keys", parameters.dimension, 1 << parameters.plain_bits, (bits, bits), theirs, ours, DIFFERS)


__all__ = ["SingleTfhe"]
