"""Every program on every protocol that has what it needs, on the embedded engine and on MP-SPDZ: same inputs, same outputs, costs side by side."""
