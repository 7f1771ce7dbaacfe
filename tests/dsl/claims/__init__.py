"""Claims of docs/pages/dsl.md about the language, one test each: on the embedded engine where the claim applies, and on MP-SPDZ
if MP_SPDZ_HOME is set.

Elsewhere: values of expressions, containers and control flow in tests/dsl and, on both engines, tests/differential; share files
in tests/backends/test_shares.py and test_on_mpspdz.py; programs of the collection in tests/programs/test_mpspdz.py.
"""
