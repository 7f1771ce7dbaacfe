"""``make first-use``: the commands of README.md and of the tutorial are all found, all run, and a wrong one is reported."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt

from tests.long import LONG

from .test_hosts import free_ports

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = "docs/pages/tutorial.md"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("first_use", ROOT / "Scripts" / "first_use.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["first_use"] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("document", ["README.md", TUTORIAL])
def test_every_block_and_every_command_is_found(tool: ModuleType, document: str) -> None:
    """Another reader of Markdown finds the same blocks; every line with a command is in a command that runs, or is skipped with a reason."""
    text = (ROOT / document).read_text()
    tokens = [t for t in MarkdownIt().parse(text) if t.type in ("fence", "code_block")]
    assert all(t.type == "fence" and t.map is not None for t in tokens), "indented code blocks have no language"
    expected = [(t.map[0] + 2, t.info.strip(), t.content) for t in tokens if t.map is not None]
    found = list(tool.blocks(document, text))
    assert [(b.line, b.language, b.text) for b in found] == expected and expected
    commands = tool.read_document(document, text)
    covered = {line for c in commands for line in range(c.line, c.line + len(c.text.splitlines()))}
    for block in found:
        for number, line in enumerate(block.text.splitlines(), block.line):
            if block.language in tool.COMMANDS and line.strip() and not line.startswith("#"):
                assert number in covered, line
    lines = text.splitlines()
    assert {n for n, line in enumerate(lines, 1) if re.match(r"(keyquorum|make|wait|cp|python) ?", line)} - covered == set(), "all are in blocks"
    assert all(c.text.splitlines()[0] == lines[c.line - 1] for c in commands), "verbatim"
    assert not any(c.skipped for c in commands) or document == "README.md"


def test_what_is_skipped_has_a_reason_and_no_rule_is_idle(tool: ModuleType) -> None:
    commands = [c for d in tool.DOCUMENTS for c in tool.read_document(d, (ROOT / d).read_text())]
    skipped = {c.text.split()[0] + " " + c.text.split()[1] for c in commands if c.skipped}
    assert skipped == {"make demo", "make test", "make wheel", "make cnn"}
    assert tool.unused(commands) == []
    idle = tool.Rule("nothing like this", "never")
    assert tool.unused(commands, [idle]) == [idle]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```\nkeyquorum demo\n```\n", "a code block of language 'none'"),
        ("```bash\nkeyquorum demo\n```\n", "a code block of language 'bash'"),
        ("text\n\n    keyquorum demo\n", "d.md:3: commands in an indented block"),
        ("```sh\nkeyquorum demo\n", "d.md:1: a code block that does not end"),
        ("```sh\ntrue\ncat <<END\ntext\n```\n", "d.md:3: a command that does not end in its block"),
    ],
)
def test_no_block_is_left_out_in_silence(tool: ModuleType, text: str, error: str) -> None:
    with pytest.raises(tool.FirstUseError, match=re.escape(error)):
        tool.read_document("d.md", text)


@pytest.mark.parametrize(
    ("text", "line", "printed"),
    [
        ("```sh\n. .venv/bin/activate\nkeyquorum inspect nothing\n```\n", 3, "nothing: no such file or folder"),
        ("```sh\ntrue &\nls /no/such/place &  # a comment\nwait\n```\n", 3, "/no/such/place"),
        ("```sh\nfalse | true\n```\n", 2, "exit code 1"),
        ("```sh\nif; then\n```\n", 2, "syntax error"),
        ("```sh\nexit 0\n```\n", 2, "it ended the shell"),
        ("```sh\nsleep 100\n```\n", 2, "no end after 3 s"),
        ("```sh\nsleep 100 &\n```\n", 2, "write wait below it"),
        ("```pycon\n>>> 1 + 1\n3\n```\n", 2, "Got:\n    2"),
        ("text\n\n```python\nprint('seen')\nraise ValueError('wrong')\n```\n", 4, "ValueError: wrong"),
    ],
)
def test_a_wrong_command_fails_with_its_place_and_output(tool: ModuleType, tmp_path: Path, text: str, line: int, printed: str) -> None:
    with pytest.raises(tool.FirstUseError) as raised:
        tool.run_document("d.md", f"{text}", tmp_path, 3.0 if "sleep" in text else 60.0, ())
    assert str(raised.value).startswith(f"d.md:{line}: ") and printed in str(raised.value)


def test_the_program_ends_with_the_count_or_with_an_error(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.md"
    good.write_text(
        "```sh\nA=7   # kept\n# a comment\ncat > x.txt <<END\n$A #\nEND\nsleep 1 &\nwait\n```\n\n```text\nkeyquorum no\n```\n\n```python\nassert open('x.txt').read() == '7 #\\n'\n```\n\n```pycon\n>>> 1 + 1\n2\n```\n"
    )
    assert tool.main([str(good)]) == 0
    out = capsys.readouterr().out
    assert out.endswith("first-use: ok commands=6\n") and "no commands: a picture or output" in out
    good.write_text("```sh\nfalse\n```\n")
    assert tool.main([str(good)]) == 1
    captured = capsys.readouterr()
    assert "ok commands" not in captured.out and captured.err.startswith(f"error: {good}:2: exit code 1: false")
    other = tmp_path / "other.md"
    other.write_text("```sh\ntrue\n```\n")
    assert tool.main([str(other), str(good)]) == 1, "one document that fails is enough"
    captured = capsys.readouterr()
    assert f"{other}:2: ok" in captured.out and "ok commands" not in captured.out and captured.err.startswith(f"error: {good}:2: ")


def test_background_commands_are_those_of_a_script(tool: ModuleType, tmp_path: Path) -> None:
    """They ignore SIGINT, so a document that stops them by it would hang in a user's script: the tutorial stops parties by SIGTERM."""
    script = tmp_path / "script.md"
    script.write_text("""```sh
python -c 'import signal; assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN' &
wait
python -c 'import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); open("ready", "w"); time.sleep(60)' &
until [ -e ready ]; do sleep 0.1; done
kill $(jobs -p)
wait
```
""")
    assert tool.main([str(script)]) == 0
    assert "kill -INT" not in (ROOT / TUTORIAL).read_text() and "kill $(jobs -p)" in (ROOT / TUTORIAL).read_text()


def test_a_document_that_is_not_there_is_named(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["no-such.md"]) == 1
    captured = capsys.readouterr()
    assert "no-such.md" in captured.err and captured.err.startswith("error: ") and captured.err.count("\n") == 1


def test_make_knows_it() -> None:
    """The target runs the tool, and make help has a line for it."""
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert any(line.startswith("make first-use ") for line in shown.splitlines())
    assert re.search(r"^first-use: build\n\t\$\(PY\) Scripts/first_use\.py", (ROOT / "Makefile").read_text(), re.M)


def _run(tool: ModuleType, document: str, text: str, folder: Path, rules: object) -> dict[str, str]:
    """Outputs of commands; of a repeated one the last."""
    return {run.command.bare: run.output for run in tool.run_document(document, text, folder, 120.0, rules)}


@pytest.mark.skipif(not LONG, reason="a minute; `make first-use` runs it as well")
@pytest.mark.timeout(900)  # a hundred commands, most of which take a second on an idle machine
def test_the_tutorial_runs_as_it_stands(tool: ModuleType, tmp_path: Path) -> None:
    """At ports of this machine that are free."""
    text = (ROOT / TUTORIAL).read_text()
    places = sorted(set(re.findall(r"(?<=127\.0\.0\.1:)\d+|(?<=--port )\d+", text)))
    for place, port in zip(places, free_ports(len(places)), strict=True):
        text = text.replace(place, str(port))
    said = _run(tool, TUTORIAL, text, tmp_path, ())
    for host, name in (("c", "y"), ("d", "y")):
        assert said[f"keyquorum decode {host}/committee key {host}/{name}.ct.plain -n 5"].startswith("9 1 16 1 25")
    for host in "cd":
        assert said[f"keyquorum decode {host}/committee key {host}/z.ct.plain -n 4"].startswith("2 7 1 8")
    for host, party in (("a", 0), ("b", 1), ("c", 2), ("d", None)):
        secret = {path.parent.name for path in (tmp_path / "tutorial" / host).rglob("identity.pem")}
        assert secret == (set() if party is None else {f"party-{party}"}), "each host has its own identity alone"
        shares = {path.parents[2].name for path in (tmp_path / "tutorial" / host).rglob("*.kqs")}
        assert shares == secret


@pytest.mark.timeout(900)
def test_the_readme_runs_as_it_stands(tool: ModuleType, tmp_path: Path) -> None:
    """All commands except slow ones."""
    rules = (*tool.RULES, tool.Rule(r"keyquorum (demo|bench|report)\b", "takes long: make first-use"))
    said = _run(tool, "README.md", (ROOT / "README.md").read_text(), tmp_path, rules)
    values = [float(word) for word in said["keyquorum decode committee key y.ct.plain -n 3"].split()[:3]]
    assert all(abs(value - wanted) < 0.02 for value, wanted in zip(values, (0.25, 0.0625, 1.0), strict=True))
    languages = {block.language for block in tool.blocks("README.md", (ROOT / "README.md").read_text())}
    assert languages & {"python", "pycon"}, "the Python example is among what ran"
