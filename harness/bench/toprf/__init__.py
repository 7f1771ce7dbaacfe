"""The threshold OPRF: AES-128 and the Legendre PRF under a shared key, published baselines, and shares for subsets."""
