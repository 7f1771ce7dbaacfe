"""The documentation for readers: the site is built as by ``make docs``, and searched as by a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api

from tests.commands import run

from .test_links import ROOT, script

BROWSER = """
// As much of a browser as search/main.js asks for, on a site without a server.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, asked, ...typed] = process.argv.slice(2);  // the first is in the address, the others are typed after it
function element(tag) {
  return {tag, children: [], textContent: "", href: "", listeners: {},
    get firstChild() { return this.children[0] || null; },
    appendChild(child) { this.children.push(child); return child; },
    removeChild(child) { this.children.splice(this.children.indexOf(child), 1); },
    addEventListener(name, f) { this.listeners[name] = f; }};
}
const known = {"mkdocs-search-results": element("div"), "mkdocs-search-query": element("input")};
const head = element("head"), waiting = [];
head.appendChild = (child) => waiting.push(child);
const scope = {base_url: ".", console, window: {location: {search: "?q=" + encodeURIComponent(asked).replace(/%20/g, "+")}},
  document: {head, createElement: element, getElementById: (id) => known[id] || null}};
vm.createContext(scope);
const run = (name) => vm.runInContext(fs.readFileSync(path.join(site, name), "utf8"), scope, {filename: name});
run("search/main.js");
while (waiting.length) { const next = waiting.shift(); run(next.src); next.onload(); }
const results = known["mkdocs-search-results"], field = known["mkdocs-search-query"];
const shown = () => ({text: results.textContent, found: results.children.map((a) => [a.children[0].children[0].href, a.children[1].textContent])});
const said = [shown()];
for (const text of typed) { results.textContent = ""; field.value = text; field.listeners.keyup(); said.push(shown()); }
console.log(JSON.stringify(said));
"""


class Text(HTMLParser):
    """The text of a page, its headings with the anchors, and its code blocks, by language."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.headings, self.code = "", list[tuple[str, str]](), list[tuple[str, str]]()
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((tag, given.get("id") or ""))
        if tag == "code" and self._open[-1:] == ["pre"]:
            self.code.append((given.get("class") or "", ""))
        if tag not in ("link", "meta", "input", "img", "br", "hr"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open[-2:] == ["pre", "code"]:
            self.code[-1] = (self.code[-1][0], self.code[-1][1] + data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed: make build")
    pytest.importorskip("mkdocstrings", reason="the extra docs is not installed: make build")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-f", ROOT / "docs" / "mkdocs.yml", "--strict", "-q", "-d", folder],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def page(site: Path, name: str) -> Text:
    return Text((site / name).read_text())


def test_no_link_is_dead_and_no_tag_is_unknown(site: Path) -> None:
    assert list(script("check_links").check_site(site)) == []


def test_the_index_has_every_page_and_every_page_the_field(site: Path) -> None:
    index = json.loads((site / "search" / "index.js").read_text().removeprefix("var keyquorumIndex = ").rstrip(";\n"))
    indexed = {document["location"].split("#")[0] for document in index["docs"]}
    pages = {str(p.relative_to(site)) for p in site.rglob("*.html")} - {"404.html", "search.html"}
    assert pages == indexed and "tutorial.html" in pages and "project/SECURITY.html" in pages
    for name in pages:
        text = (site / name).read_text()
        assert re.search(r'<form [^>]*action="[./]*search.html"', text) and re.search(r'src="[./]*search/main.js"', text), name
    assert not re.search(r"Worker|XMLHttpRequest|fetch\(", (site / "search" / "main.js").read_text()), "which pages opened from disk may not use"


FOUND = {
    "flooding: (what": "ckks.html",
    "fingerprint": "tutorial.html#2-trust",
    "backups": "tutorial.html#8-backups",
    "round_ltz_circuit": "programs.html#round_ltz_circuit",
    "star openings": "networks.html#star-openings",
    "keygen_needs": "python.html",
}
"""What is asked, and a page that is found. The first is asked by the address of the page, the others are typed."""
Answers = dict[str, dict[str, Any]]


def asked_of(site: Path, folder: Path, *texts: str) -> Answers:
    """What the search page shows, in a JavaScript engine, on files alone."""
    if shutil.which("node") is None:
        pytest.skip("no JavaScript engine (node) is installed")
    (folder / "browser.js").write_text(BROWSER)
    done = subprocess.run(["node", folder / "browser.js", site, *texts], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(texts, json.loads(done.stdout), strict=True))


@pytest.fixture(scope="module")
def answers(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return asked_of(site, tmp_path_factory.mktemp("browser"), *FOUND, "xyzzyx", "")


@pytest.mark.parametrize(("asked", "expected"), FOUND.items())
def test_search_finds_and_links(site: Path, answers: Answers, asked: str, expected: str) -> None:
    found = answers[asked]["found"]
    assert any(href.startswith(f"./{expected}") for href, _ in found[:10]), found[:10]
    for href, excerpt in found:
        name, _, anchor = href.partition("#")
        assert (site / name).is_file() and (not anchor or f'id="{anchor}"' in (site / name).read_text()), href
        assert len(excerpt) < 260


def test_search_says_when_there_is_nothing(answers: Answers) -> None:
    for asked, said in (("xyzzyx", "No results found"), ("", "")):
        assert answers[asked] == {"text": said, "found": []}


def test_the_python_page_begins_with_an_example_and_functions(site: Path) -> None:
    """The example is a code block; functions come before classes and constants; every public name is there."""
    shown = page(site, "python.html")
    language, code = shown.code[0]
    assert language == "language-python" and code == example() and ">>>" not in shown.text and "doctest" not in shown.text
    names = [anchor.removeprefix("keyquorum.api.") for _, anchor in shown.headings if anchor.startswith("keyquorum.")]
    assert names[0] == "init"
    assert set(api.__all__) <= set(names), set(api.__all__) - set(names)
    constants = [i for i, name in enumerate(names) if name.isupper()]
    assert constants == list(range(len(names) - len(constants), len(names))), names
    assert not re.search(r":(func|class|meth|mod|data|attr|exc):", shown.text)


def example() -> str:
    """The code in the docstring of keyquorum.api."""
    assert api.__doc__ is not None
    (code,) = re.findall(r"^```python\n(.*?)^```$", api.__doc__, re.M | re.S)
    return str(code)


def test_the_python_example_runs(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(example())
    done = run([sys.executable, "example.py"], tmp_path)
    assert done.returncode == 0 and done.stdout.strip() == "[3 1 4]", done.stderr


def test_formulas_in_brackets_are_shown(site: Path) -> None:
    assert "Phases b - <a, s> + offset of many LWE ciphertexts" in page(site, "programs.html").text


def test_lines_in_tables_are_broken(site: Path) -> None:
    """The theme keeps every cell in one line (white-space: nowrap), in a box that ends with the page. Ours has the same selectors and comes later."""
    theme = (site / "css" / "theme.css").read_text()
    assert re.search(r"\.wy-table-responsive table td,[^{]*\{white-space:nowrap\}", theme), "else our rule is of no use any more"
    ours = (site / "extra.css").read_text()
    rule = re.search(r"\.wy-table-responsive table td,\n\.wy-table-responsive table th \{([^}]*)\}", ours)
    assert rule is not None and "white-space: normal;" in rule[1]
    assert "overflow: hidden" not in ours
    for path in site.rglob("*.html"):
        sheets = re.findall(r'<link href="([^"]*\.css)"|<link rel="stylesheet" href="([^"]*\.css)"', path.read_text())
        names = [(a or b).rsplit("/", 1)[-1] for a, b in sheets]
        assert names.index("extra.css") > names.index("theme.css"), (path, names)
