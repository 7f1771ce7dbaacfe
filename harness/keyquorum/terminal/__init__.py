"""What commands and benchmarks print on a terminal: results, errors, costs, progress."""
