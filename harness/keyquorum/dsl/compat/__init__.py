"""What is there for programs of MP-SPDZ's users alone: no program of this project uses it."""
