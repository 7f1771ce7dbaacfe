"""Checks the links of the built documentation and of the Markdown files: ``make docs`` does it.

In the site every link, image, script and style sheet must name a file of the site, and every anchor an id. Every tag must be one of HTML, which
``<a, s>`` is not. In Markdown every link must name a file of the repository, and every anchor a heading. External addresses are checked for
their form only: nothing is fetched.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
MARKDOWN = ("*.md", "docs/pages/**/*.md", "Programs/*.md", "examples/*.md", "params/**/*.md", "results/*.md", "Source/tfhe/*.md")
TAGS = frozenset(
    re.findall(
        r"\w+",
        """
    a abbr article aside b base blockquote body br button cite code col colgroup dd del details dfn div dl dt em figcaption figure
    footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input kbd label li link main mark meta nav
    noscript object ol option p param path picture pre q s samp script section select small source span strong style sub summary sup svg
    table tbody td template textarea tfoot th thead time title tr u ul var video wbr
""",
    )
)


@dataclass
class Page(HTMLParser):
    """Links of a page with their lines, and its anchors."""

    text: str
    links: list[tuple[int, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    tags: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects."""
        line = self.getpos()[0]
        if tag not in TAGS:
            self.tags.append((line, tag))
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append((line, value))
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")


def external(link: str) -> str:
    """The error in the form of an external address; empty if there is none."""
    parts = urlsplit(link)
    if parts.scheme == "mailto":
        return "" if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", parts.path) else "no mail address"
    if parts.scheme not in ("http", "https"):
        return f"scheme {parts.scheme!r}: write https"
    if not re.fullmatch(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:\d+)?", parts.netloc) or re.search(r"\s", link):
        return "no address"
    return ""


def check_site(site: Path) -> Iterator[str]:
    """A line for every error in the HTML files of a folder."""
    site = site.resolve()
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no pages: run make docs"
    for path, page in pages.items():
        here = path.relative_to(site)
        for line, tag in page.tags:
            yield f"{here}:{line}: <{tag}> is no tag of HTML: escape the < before it in the source"
        for line, link in page.links:
            if urlsplit(link).scheme or link.startswith("//"):
                if wrong := external(link if urlsplit(link).scheme else f"https:{link}"):
                    yield f"{here}:{line}: {link}: {wrong}"
                continue
            name, _, anchor = link.partition("#")
            name = unquote(name.split("?")[0])
            # 404.html is shown at any address, so its links begin at the root
            target = (site / name.lstrip("/") if name.startswith("/") else path.parent / name).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or not target.is_relative_to(site):
                yield f"{here}:{line}: {link}: no such file in the site"
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                yield f"{here}:{line}: {link}: no such anchor"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a Markdown text with their numbers, without code."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r"\s*(`{3,}|~{3,})", line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            fence = ""
        elif not fence:
            yield number, re.sub(r"`[^`]*`", "", line)


def slugs(text: str) -> set[str]:
    """Anchors of the headings of a Markdown text."""
    found, fence = set[str](), False
    for line in text.splitlines():
        fence ^= bool(re.match(r"\s*(`{3,}|~{3,})", line))
        heading = re.match(r"#{1,6}\s+(.*)", line)
        if heading and not fence:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").strip().lower()
            found.add(re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", plain)))
    return found


def check_markdown(root: Path, patterns: Sequence[str] = MARKDOWN) -> Iterator[str]:
    """A line for every error in the Markdown files of a repository."""
    for path in sorted({p for pattern in patterns for p in root.glob(pattern)}):
        here, text = path.relative_to(root), path.read_text()
        for number, line in prose(text):
            for link in re.findall(r"\]\(([^)\s]*)(?:\s[^)]*)?\)", line) + re.findall(r"<(https?:[^>]*)>", line):
                if urlsplit(link).scheme:
                    if wrong := external(link):
                        yield f"{here}:{number}: {link}: {wrong}"
                    continue
                name, _, anchor = link.partition("#")
                target = (path.parent / unquote(name)).resolve() if name else path.resolve()
                if not target.exists() or not target.is_relative_to(root.resolve()):
                    yield f"{here}:{number}: {link}: no such file in the repository"
                elif anchor and target.suffix == ".md" and anchor not in slugs(target.read_text()):
                    yield f"{here}:{number}: {link}: no such heading"


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description="Checks the links of the built documentation and of the Markdown files.")
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "docs" / "_build", help="folder of the site (docs/_build)")
    options = parser.parse_args(arguments)
    wrong = [*check_site(options.site), *check_markdown(ROOT)]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if wrong:
        return 1
    print(f"links: ok pages={len(list(options.site.rglob('*.html')))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
