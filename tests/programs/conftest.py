"""Assertions of the helper modules explain themselves."""

import pytest

pytest.register_assert_rewrite("tests.programs.running", "tests.programs.distributions", "tests.programs.mpspdz")
