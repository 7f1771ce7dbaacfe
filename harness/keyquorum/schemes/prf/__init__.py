"""A pseudorandom function under a shared key: AES-128, evaluated on shared bits for receivers who alone learn input and output."""
