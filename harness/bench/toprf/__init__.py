"""AES-128 under a shared key, the pseudorandom function of a threshold OPRF, beside the figures of paper 003 (params/published/003_table1_oprf.csv).

Systems H and H-128 are the paper's evaluation on LWE ciphertexts without its dealer (:mod:`.lwe`): H with the paper's dimension, H-128 with about 128
bits of security; ``method`` is the rounding, ``wrong`` the blocks that differ from `aes_blocks`.

System F is TFHE-rs's evaluation under jointly made keys (:mod:`.tfhe`); its row is left out where the bridge is not built.

System legendre: the Legendre PRF of 128 symbols (`legendre_prf`), the other function of the service; a block is 16 bytes of output under both. ``method`` is
the degree of its polynomials: ``degree-2`` is what is served, ``degree-1`` the construction of eprint 2024/544. Its random squares are in the online figures.

System native: ``circuit`` evaluates S-boxes by ANDs (`aes_blocks`), ``table`` by one-hot vectors that were made before (`aes_hot`, `aes_blocks_table`). Every party is a
process of this host, over TLS. Blocks and results are shared, as those of a client: its messages to and from the parties are not in the figures.

``ms``: a batch online, the median of several, at the slowest party, without the correlated randomness that it used; ``mb``: what a party sends in it.
``offline_ms``, ``offline_mb``: correlated randomness of a batch (``circuit``: triples where products take them, ``table``: one-hot vectors). ``per_s`` and
``offline_per_s``: blocks a second. ``wrong``: blocks of the last batch that their inverse does not give back. ``busy``: cores that did other work at the
start. Writes results/toprf.csv.

    python -m bench.toprf [--system native] [--method table] [--protocol semi2k] [--parties 2,4] [--batch 1,64,4096] [--link none,rtt=1]
"""
