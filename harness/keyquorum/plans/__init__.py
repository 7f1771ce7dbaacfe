"""Plans: key generation and decryption as lists of programs and local steps. With :mod:`keyquorum.schemes`, which they call, the only floor that knows both MPC and FHE."""

JOBS = {
    "keygen": "keygen", "decrypt": "decrypt", "pool_fill": "pool_jobs", "toprf_fill": "pool_jobs", "share": "share", "toprf_encrypt": "round_keys", "refresh_shares": "epochs.refresh",
    "recover": "epochs.recover", "reshare": "epochs.reshare", "epoch_prove": "epochs.prove", "program": "program",
}  # fmt: skip
"""Jobs of parties, and the modules of this package that define them (:mod:`keyquorum.parties.jobs`)."""
