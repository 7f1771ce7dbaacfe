"""What schemes and plans share: runs of programs on shares, private numbers and their lift to other domains, roundings of shared phases, and their preprocessing."""
