"""AES-128 on LWE ciphertexts with encrypted look-up tables: the threshold OPRF of Singh, Patranabis and Mukhopadhyay (2024) without its dealer."""
