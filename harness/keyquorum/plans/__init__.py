"""Plans: key generation and decryption as lists of programs and local steps. The only floor that knows both MPC and FHE."""
