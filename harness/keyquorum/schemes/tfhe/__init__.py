"""TFHE: keys with which unmodified TFHE-rs evaluates, and decryption of its LWE ciphertexts by an exact rounding with items of a pool."""
