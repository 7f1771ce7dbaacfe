"""The estimate of the primal attack: it has the published levels, and grows with noise and dimension."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from keyquorum.fhe.lwe_sets import SECURITY

ROOT = Path(__file__).resolve().parent.parent


def loaded() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("lwe_security", ROOT / "Scripts" / "lwe_security.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["lwe_security"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = loaded()


@pytest.mark.parametrize(("instance", "level"), script.known(), ids=lambda value: getattr(value, "name", value))
def test_published_levels(instance: object, level: int) -> None:
    assert abs(script.bits(instance)[0] - level) < 3


def test_every_set_has_128_bits_and_is_in_the_docs_and_its_file() -> None:
    page = "\n".join((ROOT / "docs" / "pages" / f"{name}.md").read_text() for name in ("tfhe", "fhew"))
    for instance in script.instances():
        cost, beta = script.bits(instance)
        assert cost >= 128 or (round(cost) == 128 and instance.name == "ajax53, s")  # as the instances with a published level of 128
        row = next(line for line in page.splitlines() if line.startswith(f"| {instance.name} |"))
        assert row.endswith(f"| {beta} | {cost:.0f} |")
        name, secret = instance.name.split(", ")
        assert round(cost) == (SECURITY[name].short if secret == "s" else SECURITY[name].ring)


def test_every_set_of_lwe_has_128_bits_and_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "pages" / "decryption.md").read_text().split("\n## ")
    table = next(section for section in text if section.startswith("Sets and roundings"))
    rows = {line.split(" | ")[0].strip("| `"): line.split(" | ") for line in table.splitlines() if line.startswith("| `lwe")}
    costs = {instance.name: script.bits(instance)[0] for instance in script.plain()}
    assert min(costs.values()) >= 128 and {name: row[4] for name, row in rows.items()} == {name: f"{cost:.0f}" for name, cost in costs.items()}


def test_more_noise_and_a_larger_dimension_cost_more() -> None:
    one, _ = script.known()[0]
    cost = script.bits(one)[0]
    for harder in (replace(one, noise=2 * one.noise), replace(one, dimension=650), replace(one, samples=200)):
        assert script.bits(harder)[0] > cost + 1
