"""Plain data: parties, committees, keys, domains and errors. No MPC and no FHE here."""
