"""The link checker of ``make docs``: what it finds, and that the repository's own Markdown is right."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    """A module of Scripts."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "Scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def links() -> ModuleType:
    return script("check_links")


def test_the_markdown_of_the_repository_has_no_dead_link(links: ModuleType) -> None:
    assert list(links.check_markdown(ROOT)) == []


def test_make_docs_checks_links() -> None:
    recipe = re.search(r"^docs: build\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    steps = recipe[1].splitlines()
    assert [i for i, step in enumerate(steps) if "check_links.py" in step] > [i for i, step in enumerate(steps) if "mkdocs build" in step]


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('<a href="b.html#there">x</a> <a href="#here">x</a> <a href="https://example.org/x">x</a>', ""),
        ('<a href="c.html">x</a>', "c.html: no such file in the site"),
        ('<img src="c.png">', "c.png: no such file in the site"),
        ('<script src="../a.html"></script>', "../a.html: no such file in the site"),
        ('<a href="b.html#nowhere">x</a>', "b.html#nowhere: no such anchor"),
        ('<a href="#nowhere">x</a>', "#nowhere: no such anchor"),
        ('<a href="https://example">x</a>', "https://example: no address"),
        ('<a href="htps://example.org">x</a>', "scheme 'htps'"),
        ('<a href="mailto:somebody">x</a>', "no mail address"),
        ("b - <a, s> + offset", "<a,> is no tag of HTML"),
    ],
)
def test_dead_links_of_a_site_are_found(links: ModuleType, tmp_path: Path, body: str, wrong: str) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "a.html").write_text("outside")
    (site / "a.html").write_text(f'<html><body>\n<p id="here">{body}</p></body></html>')
    (site / "b.html").write_text('<html><body id="there"></body></html>')
    found = list(links.check_site(site))
    assert (wrong in found[0] and found[0].startswith("a.html:2: ") and len(found) == 1) if wrong else found == [], found


def test_an_empty_site_is_no_success(links: ModuleType, tmp_path: Path) -> None:
    assert links.main([str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[x](b.md#two-words) [x](#here) `[x](no.md)` <https://example.org>", ""),
        ("```text\n[x](no.md)\n```", ""),
        ("[x](no.md)", "a.md:3: no.md: no such file"),
        ("![x](no.png)", "a.md:3: no.png: no such file"),
        ("[x](b.md#two)", "a.md:3: b.md#two: no such heading"),
        ("[x](/etc/passwd)", "no such file in the repository"),
        ("[x](http://nowhere)", "no address"),
    ],
)
def test_dead_links_of_markdown_are_found(links: ModuleType, tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "a.md").write_text(f"# Here\n\n{text}\n")
    (tmp_path / "b.md").write_text("## Two `words`!\n")
    found = list(links.check_markdown(tmp_path, ["*.md"]))
    assert (len(found) == 1 and wrong in found[0]) if wrong else found == [], found


def test_headers_of_programs_are_escaped() -> None:
    """Prose alone: in code a < is shown as it is."""
    table = script("program_table")
    assert table.escaped("b - <a, s> for x < 1 & y, `<b>`, &lt;") == "b - &lt;a, s> for x < 1 & y, `<b>`, &amp;lt;"
