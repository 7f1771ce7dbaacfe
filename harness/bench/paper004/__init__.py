"""Sampling, conversion, keys and decryption beside the figures of GMPFHE (params/published/004_*.csv)."""
