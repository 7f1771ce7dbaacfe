"""Other libraries beside KeyQuorum in one run, at the same ring degree, plaintext modulus, number of parties and cores."""
