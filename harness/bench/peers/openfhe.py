"""OpenFHE's threshold FHE: keys of n parties, partial decryptions and their fusion, all in one process without a network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.sweep import peers

from .base import Pair, Peer, Setting, Spent
from .ours import log2_q, quorum

TIMEOUT = 600.0
FLOODED, FIXED = "flooded", "fixed-noise"
DIFFERS = {
    "keys": "Public and relinearisation key; theirs in one process without a network, ours processes over TLS that make the noise jointly.",
    "decryption": "Theirs adds {noise} and works at its whole modulus, in one process; ours {ours}, at the lowest level, processes over TLS.",
}
NOISE = {
    FLOODED: "flooding noise (NOISE_FLOODING_MULTIPARTY, which makes its modulus longer)",
    FIXED: "noise of a fixed size (no flooding mode for CKKS)",
}


class OpenFhe(Peer):
    """OpenFHE."""

    @property
    def name(self) -> str:
        """See :class:`Peer`."""
        return "OpenFHE"

    @property
    def sets(self) -> Sequence[str]:
        """Sets of each scheme with N = 16384: flooding needs more bits than N = 8192 allows."""
        return ("bfv-16384", "bgv-16384", "ckks-16384")

    def model(self, parameters: str) -> str:
        """Flooding is a mode of BFV and BGV."""
        return FIXED if parameters.startswith("ckks") else FLOODED

    def version(self) -> str:
        """See :class:`Peer`."""
        return peers.version("openfhe")

    def pairs(self, setting: Setting) -> Iterator[Pair]:
        """Keys and decryption. OpenFHE chooses its primes: of its moduli of this ring the longest is taken that is not longer than ours."""
        parameters = load_parameters(setting.parameters)
        numbers = (setting.parties, parameters.ring_degree, math.floor(log2_q(parameters)), setting.runs)
        found = peers.openfhe([parameters.scheme, *map(str, numbers)], TIMEOUT, setting.cores)
        with quorum(setting) as ours:
            theirs = {name: Spent() for name in ("keys", "encryption", "decryption")}
            for phases in found["runs"]:
                for name, seconds, cpu in phases:
                    theirs[name].add(seconds, cpu)
            how = "floods" if parameters.scheme == "ckks" else "rounds exactly, with its preprocessing"
            for name, spent in (("keys", ours.keys), ("decryption", ours.decryption())):
                text = DIFFERS[name].format(noise=NOISE[self.model(setting.parameters)], ours=how)
                bits = float(found["log2_q"]), log2_q(parameters)
                yield Pair(name, int(found["ring_degree"]), parameters.plain_modulus, bits, theirs[name], spent, text)


__all__ = ["OpenFhe"]
