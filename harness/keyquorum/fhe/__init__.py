"""The bridge to Microsoft SEAL: parameter sets, SEAL's bytes, keys, decoding. No MPC here."""
