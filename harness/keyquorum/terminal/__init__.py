"""Output of commands and benchmarks on a terminal: results, errors, costs, progress."""
