"""What ``make docs`` does beside MkDocs: pages from outside of docs/pages, roles of docstrings, search that works from disk."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = "docs/pages"
EXAMPLES = tuple(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "*.py", "*.ipynb", "cpp/*.cpp", "rust/src/*.rs")
    for path in sorted((ROOT / "examples").glob(pattern))
)
RESULTS = tuple(str(path.relative_to(ROOT)) for pattern in ("*.md", "*.png", "report/*.png") for path in sorted((ROOT / "results").glob(pattern)))
TEXTS = tuple(path.name for path in sorted(ROOT.glob("*.md")) if path.name != "README.md")
PROJECT = (*TEXTS, *RESULTS, *EXAMPLES, "Programs/README.md", "Source/tfhe/README.md")
"""Files of the repository that the site has, too, under the same names in its folder ``project``."""
PLACES = {"README.md": "index.md", **{name: f"project/{name}" for name in PROJECT}}
"""Pages of the site, by the file of the repository that they show. The first page is README.md."""
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
ROLE = re.compile(r":(?:func|meth|class|mod|data|attr|exc):<code>~?([^<]*)</code>")


def on_files(files: Any, *, config: Any) -> Any:
    """Adds the files of the repository that are outside of docs/pages."""
    for name, page in PLACES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    return files


def _in_repository(page: str) -> str:
    """Where the source of a page lies in the repository."""
    return next((name for name, there in PLACES.items() if page == there), f"{PAGES}/{page}")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Links follow their files: in the repository they name those of the repository, on the site those of the site."""
    source, target = _in_repository(page.file.src_uri), page.file.src_uri

    def follow(match: re.Match[str]) -> str:
        named = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        if named in PLACES:
            there = PLACES[named]
        elif named.startswith(f"{PAGES}/"):
            there = named.removeprefix(f"{PAGES}/")
        else:
            return match[0]
        return match[1] + posixpath.relpath(there, posixpath.dirname(target) or ".")

    return LINK.sub(follow, markdown)


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    """Roles like ``:func:`keygen``` become code, and links where the page has what they name."""

    def resolve(match: re.Match[str]) -> str:
        ids = [i for i in (match[1], f"keyquorum.api.{match[1]}") if f'id="{i}"' in html]
        code = f"<code>{match[1]}</code>"
        return f'<a href="#{ids[0]}">{code}</a>' if ids else code

    return ROLE.sub(resolve, html)


def on_post_build(*, config: Any) -> None:
    """Replaces the search of MkDocs, which needs a server, by docs/search.js."""
    folder = Path(config["site_dir"]) / "search"
    index = (folder / "search_index.json").read_text()
    (folder / "index.js").write_text(f"var keyquorumIndex = {index};\n")
    shutil.copy(HERE / "search.js", folder / "main.js")
    (folder / "worker.js").unlink()
