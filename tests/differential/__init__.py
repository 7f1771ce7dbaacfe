"""Random small programs: clear-text integers, the embedded engine and MP-SPDZ must agree on every one of them."""
