"""Exact statistics between two registers (BFV, with unmodified SEAL through seal-python).

A clinic knows the number of visits of each person, an insurer the number of days that each was ill. They are the two parties of the committee:
neither can decrypt without the other, and both follow the protocol. Both learn the exact sums and covariance, but no row of the other's register.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import keyquorum
import numpy as np
import seal

ROWS = 64  # persons that both registers have, in the same order; a power of two
MOST = 31  # visits or days: sums of products stay below t = 65537
STEPS = [1 << k for k in range(ROWS.bit_length() - 1)]


class Key:
    """The public files of the joint key, as SEAL loads them."""

    def __init__(self, made: keyquorum.KeygenResult) -> None:
        self.made, self.set = made, made.info.parameters
        chosen = seal.EncryptionParameters(seal.scheme_type.bfv)
        chosen.set_poly_modulus_degree(self.set.ring_degree)
        chosen.set_coeff_modulus([seal.Modulus(q) for q in self.set.coeff_modulus])
        chosen.set_plain_modulus(self.set.plain_modulus)
        self.context = seal.SEALContext(chosen, True, seal.sec_level_type.tc128)
        self.public = self.context.from_public_str((made.folder / "public.key").read_bytes())
        self.relin = self.context.from_relin_str((made.folder / "relin.key").read_bytes())
        self.galois = self.context.from_galois_str((made.folder / "galois.key").read_bytes())

    def encrypt(self, register: np.ndarray) -> seal.Ciphertext:
        """The register repeats over all slots, so that every slot of a sum over rows has the whole sum, and none a partial one."""
        slots = np.tile(register, self.set.ring_degree // ROWS)
        return seal.Encryptor(self.context, self.public).encrypt(seal.BatchEncoder(self.context).encode(slots))

    def sum(self, ciphertext: seal.Ciphertext) -> seal.Ciphertext:
        """The sum over the rows, in every slot."""
        evaluator = seal.Evaluator(self.context)
        for step in STEPS:
            ciphertext = evaluator.add(ciphertext, evaluator.rotate_rows(ciphertext, step, self.galois))
        return ciphertext


def main() -> None:
    visits, days = np.random.default_rng().integers(0, MOST + 1, (2, ROWS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        committee = keyquorum.init(folder / "committee", parties=2, protocol="semi")
        elements = keyquorum.galois_elements(keyquorum.load_parameters("bfv-8192"), STEPS)
        key = Key(keyquorum.keygen(committee, "key", "bfv-8192", galois_elements=elements))

        x, y = key.encrypt(visits), key.encrypt(days)  # each owner encrypts its own register
        evaluator = seal.Evaluator(key.context)
        xy = evaluator.relinearize(evaluator.multiply(x, y), key.relin)
        names = ["x", "y", "xy"]
        for name, ciphertext in zip(names, (x, y, xy), strict=True):
            last = evaluator.mod_switch_to(key.sum(ciphertext), key.context.last_parms_id())  # the cheapest level to decrypt
            (folder / f"{name}.ct").write_bytes(last.to_string())

        for party in (0, 1):
            files = [folder / f"{name}-{party}.plain" for name in names]
            keyquorum.decrypt(committee, "key", [folder / f"{name}.ct" for name in names], party, files)
            sums = [int(keyquorum.decode(committee, "key", file, count=1)[0]) % key.set.plain_modulus for file in files]
            covariance = Fraction(sums[2], ROWS) - Fraction(sums[0], ROWS) * Fraction(sums[1], ROWS)
            print(f"party {party}: {sums[0]} visits, {sums[1]} days, covariance {covariance} = {float(covariance):.4f}")
            assert sums == [visits.sum(), days.sum(), (visits * days).sum()], "the sums differ from those in the clear"
            assert abs(float(covariance) - np.cov(visits, days, bias=True)[0, 1]) < 1e-9


if __name__ == "__main__":
    main()
