"""Every program on every protocol it declares, on the embedded engine and on MP-SPDZ: same inputs, same outputs, costs side by side."""
