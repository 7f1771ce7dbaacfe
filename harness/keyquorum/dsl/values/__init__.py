"""Secret and public values: numbers, bits and vectors of them, and how they are compared, shuffled and stored."""
