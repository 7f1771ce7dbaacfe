"""What schemes and plans share: private randomness, roundings of shared phases, and their preprocessing."""
