"""LWE: binary secrets modulo 2^64 or a prime, compact public keys, and decryption by a rounding with items of a pool."""
