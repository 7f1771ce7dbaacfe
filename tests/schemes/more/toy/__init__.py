"""A scheme outside of the package, for tests: LWE of dimension 16, which hides nothing."""
