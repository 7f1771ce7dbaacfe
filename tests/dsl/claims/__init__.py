"""What the supported language (docs/pages/dsl.md) builds on, claim by claim: on the embedded engine where it applies, and on MP-SPDZ
where MP_SPDZ_HOME is set.

Elsewhere: values of expressions, containers and control flow in tests/dsl and, on both engines, tests/differential; share files
in tests/backends/test_shares.py and test_on_mpspdz.py; programs of the collection in tests/programs/test_mpspdz.py.
"""
