"""Multi-key BGV, a baseline: each party has a key of its own, and ciphertexts grow with the number of parties. It shows what joint keys save; no command
makes such keys.

The scheme is the multi-key BGV that paper 001 measures (Paillet, Chakraborty, Checri, ICISSP 2024), of Chen, Zhang and Wang (TCC 2017), with the
relinearisation of Chen, Dai, Kim and Song (CCS 2019). :mod:`.ring`: arithmetic; :mod:`.gadgets`: decompositions; :mod:`.scheme`: keys and ciphertexts;
:mod:`.relinearisation`; :mod:`.rgsw`: the products of which paper 001 makes evaluation keys; :mod:`.joint`: decryption by a committee.
"""
