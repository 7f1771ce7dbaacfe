"""FHEW: keys of FHEW-like schemes modulo a prime (Ajax), and exact decryption of what was evaluated with them."""
