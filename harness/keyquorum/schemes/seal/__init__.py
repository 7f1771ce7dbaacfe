"""BFV, BGV and CKKS: keys for unmodified Microsoft SEAL, and joint decryption of its ciphertexts."""
