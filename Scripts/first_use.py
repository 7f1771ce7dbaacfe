"""Runs the commands of README.md and of the tutorial unchanged, each document in a folder of its own, at the same time: ``make first-use``.

Code blocks are distinguished by their language. ``sh``, ``python`` and ``pycon`` (a session, whose output is compared as well) are commands: each
runs, or is listed as skipped with the reason. ``text`` is no command. A block without a language, or with another one, is an error, so no block is
ignored silently. A line that ends with ``&`` runs in the background until ``wait``, which fails if one of these commands failed.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "docs/pages/tutorial.md")
COMMANDS = ("sh", "python", "pycon")
RUN = {"sh": ".", "python": "python", "pycon": "python -m doctest"}
"""Interpreters that run a file with a command, by language."""
NOT_COMMANDS = {"text": "a picture or output"}
"""Languages of blocks that are not run, with the reason."""


@dataclass(frozen=True)
class Rule:
    """Commands that match ``pattern`` are not run, for a reason."""

    pattern: str
    reason: str


RULES = (Rule(r"make (demo|test|wheel|cnn)\b", "builds or tests the whole checkout; make first-use is started after such a build"),)


class FirstUseError(Exception):
    """One line with the document and the line number, followed by the output of a command."""


@dataclass(frozen=True)
class Block:
    """A code block: the line of its first line of text, its language, its text without indentation."""

    document: str
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command of a block, with its first line. ``skipped``: the reason why it is not run; empty if it is run."""

    document: str
    line: int
    language: str
    text: str
    skipped: str = ""

    @property
    def where(self) -> str:
        """Document and line."""
        return f"{self.document}:{self.line}"

    @property
    def bare(self) -> str:
        """The text without a comment at its end."""
        return re.sub(r"\s+#[^\n]*$", "", self.text).rstrip()

    @property
    def in_background(self) -> bool:
        """Whether the command runs at the same time as the next commands."""
        return self.language == "sh" and re.search(r"(?<!&)&$", self.bare) is not None


def blocks(document: str, text: str) -> Iterator[Block]:
    """The fenced code blocks of a Markdown text. Raises FirstUseError for a block without a language."""
    fence, start, body = "", 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        found = re.fullmatch(r"\s*(`{3,}|~{3,})\s*(.*?)\s*", line)
        if not fence:
            if found:
                fence, language, start, body = found[1], found[2], number, []
            elif re.match(r" {4,}(keyquorum|make|python|\$) ", line):
                raise FirstUseError(f"{document}:{number}: commands in an indented block: write a fenced one with its language")
        elif found and found[1].startswith(fence) and not found[2]:
            if language not in (*COMMANDS, *NOT_COMMANDS):
                known = ", ".join((*COMMANDS, *NOT_COMMANDS))
                raise FirstUseError(
                    f"{document}:{start}: a code block of language {language or 'none'!r}: write one of {known} after its opening marks"
                )
            yield Block(document, start + 1, language, textwrap.dedent("\n".join(body)) + "\n")
            fence = ""
        else:
            body.append(line)
    if fence:
        raise FirstUseError(f"{document}:{start}: a code block that does not end")


def commands(block: Block, rules: Sequence[Rule] = RULES) -> list[Command]:
    """The commands of a block. A block of Python is one command. A block of shell is split where bash does, with here-documents kept whole."""
    if block.language not in COMMANDS:
        return []
    found = list(_shell_commands(block)) if block.language == "sh" else [(block.line, block.text)]
    result = []
    for line, text in found:
        reason = next((r.reason for r in rules if re.match(r.pattern, text)), "")
        result.append(Command(block.document, line, block.language, text, reason))
    return result


def _shell_commands(block: Block) -> Iterator[tuple[int, str]]:
    """Commands of a shell block: lines are joined until bash finds them complete; comments and empty lines are skipped."""
    pending, start = list[str](), 0
    for number, line in enumerate(block.text.splitlines(), block.line):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        start = start if pending else number
        pending.append(line)
        text = "\n".join(pending)
        if _is_complete(text):
            yield start, text
            pending = []
    if pending:
        raise FirstUseError(f"{block.document}:{start}: a command that does not end in its block: {pending[0]}")


def _is_complete(text: str) -> bool:
    if text.endswith("\\"):
        return False
    done = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True, check=False)
    return "unexpected end of file" not in done.stderr and "unexpected EOF" not in done.stderr and "here-document" not in done.stderr


@dataclass
class Run:
    """A command that was run: its exit code, its output, its seconds."""

    command: Command
    code: int
    output: str
    seconds: float


@dataclass
class Shell:
    """One bash for all commands of a document, so that activation, variables and folders stay from one command to the next."""

    folder: Path
    timeout: float
    _background: list[tuple[int, Command, Path]] = field(default_factory=list)
    _count: int = 0

    def __enter__(self) -> Shell:
        self._files = tempfile.TemporaryDirectory(prefix="first-use-")
        self._status, write = os.pipe()
        self._buffer = b""
        self._write = write
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=self.folder, pass_fds=(write,), start_new_session=True, text=True,
        )  # fmt: skip
        os.close(write)
        self._send("set -o pipefail")  # and no -m: background jobs ignore SIGINT, as in a script
        return self

    def __exit__(self, *_: object) -> None:
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if not self._signal_all(kind):
                break
            time.sleep(1.0)
        assert self._bash.stdin is not None
        with suppress(OSError):
            self._bash.stdin.close()
        self._bash.wait()
        os.close(self._status)
        self._files.cleanup()

    def _signal_all(self, kind: int) -> int:
        """Sends a signal to all processes in the session of this shell; returns their number."""
        count = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if os.getsid(int(entry.name)) == self._bash.pid and int(entry.name) != self._bash.pid:
                        os.kill(int(entry.name), kind)
                        count += 1
        return count

    def _send(self, text: str) -> None:
        assert self._bash.stdin is not None
        with suppress(OSError):  # bash has ended: its status does not come
            self._bash.stdin.write(text + "\n")
            self._bash.stdin.flush()

    def _answer(self, command: Command, deadline: float) -> list[int]:
        """A line of numbers from bash. Raises FirstUseError after the deadline, or if bash has ended."""
        while b"\n" not in self._buffer:
            ready = select.select([self._status], [], [], max(0.0, deadline - time.monotonic()))[0]
            data = os.read(self._status, 4096) if ready else b""
            if not data:
                what = "it ended the shell" if ready else f"no end after {self.timeout:g} s"
                raise FirstUseError(f"{command.where}: {what}: {command.text}\n{self._read(self._out)}")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return [int(word) for word in line.split()]

    @staticmethod
    def _read(path: Path) -> str:
        return path.read_text(errors="replace") if path.exists() else ""

    def run(self, command: Command) -> Run:
        """Runs a command to its end, or starts it in the background. Raises FirstUseError if it fails."""
        start, deadline = time.monotonic(), time.monotonic() + self.timeout
        self._count += 1
        script = Path(self._files.name) / f"{self._count}.{command.language}"
        script.write_text(command.text + "\n")
        self._out = script.with_suffix(".out")
        if command.bare == "wait":
            return Run(command, 0, self._wait(deadline), time.monotonic() - start)
        self._send(f'{RUN[command.language]} {script} >{self._out} 2>&1 </dev/null {self._write}>&-; echo "$? ${{!:-0}}" >&{self._write}')
        code, last = self._answer(command, deadline)
        if code:
            raise FirstUseError(f"{command.where}: exit code {code}: {command.text}\n{self._read(self._out)}")
        if command.in_background:
            self._background.append((last, command, self._out))
        return Run(command, code, self._read(self._out), time.monotonic() - start)

    def _wait(self, deadline: float) -> str:
        """Waits for all background commands; returns their output."""
        printed = []
        while self._background:
            pid, command, self._out = self._background.pop(0)
            self._send(f'wait {pid} 2>/dev/null; echo "$?" >&{self._write}')
            (code,) = self._answer(command, deadline)
            if code:
                raise FirstUseError(f"{command.where}: exit code {code}: {command.text}\n{self._read(self._out)}")
            printed.append(self._read(self._out))
        return "".join(printed)

    def finish(self) -> None:
        """Raises FirstUseError for a background command without a wait."""
        for _, command, _ in self._background:
            raise FirstUseError(f"{command.where}: runs on at the end of the document: write wait below it: {command.text}")


def read_document(document: str, text: str, rules: Sequence[Rule] = RULES) -> list[Command]:
    """All commands of a document, including skipped ones."""
    return [command for block in blocks(document, text) for command in commands(block, rules)]


def run_document(document: str, text: str, folder: Path, timeout: float, rules: Sequence[Rule] = RULES) -> list[Run]:
    """Runs the commands of a document in a folder, prints a line for each, and returns those that ran. Raises FirstUseError."""
    (folder / ".venv").symlink_to(sys.prefix)
    runs = []
    for block in blocks(document, text):
        if block.language in NOT_COMMANDS:
            print(f"{document}:{block.line}: no commands: {NOT_COMMANDS[block.language]}")
    with Shell(folder, timeout) as shell:
        for command in read_document(document, text, rules):
            first = command.bare.splitlines()[0]
            if command.skipped:
                print(f"{command.where}: skipped: {first}: {command.skipped}", flush=True)
                continue
            runs.append(shell.run(command))
            print(f"{command.where}: ok, {runs[-1].seconds:.1f} s: {first}", flush=True)
        shell.finish()
    return runs


def unused(found: Sequence[Command], rules: Sequence[Rule] = RULES) -> list[Rule]:
    """Rules that match no command: they would skip commands that are written later."""
    return [rule for rule in rules if not any(re.match(rule.pattern, command.text) for command in found)]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description="Runs the commands of README.md and of the tutorial as they stand.")
    parser.add_argument("documents", nargs="*", default=DOCUMENTS, help="Markdown files (default: README.md and the tutorial)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds that a command may take (120)")
    options = parser.parse_args(arguments)
    start = time.monotonic()

    def one(document: str) -> int | None:
        """Runs a document; returns the number of commands, or None and prints the error if one failed."""
        try:
            with tempfile.TemporaryDirectory(prefix="first-use-") as folder:
                return len(run_document(document, (ROOT / document).read_text(), Path(folder), options.timeout))
        except (FirstUseError, OSError) as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            return None

    try:
        found = [command for document in options.documents for command in read_document(document, (ROOT / document).read_text())]
        for rule in unused(found) if tuple(options.documents) == DOCUMENTS else ():
            raise FirstUseError(f"Scripts/first_use.py: no command matches {rule.pattern!r}: take the rule out")
    except (FirstUseError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(len(options.documents)) as pool:  # at the same time, since the commands mostly wait
        counts = list(pool.map(one, options.documents))
    if None in counts:
        return 1
    count = sum(number for number in counts if number is not None)
    print(f"first-use: seconds={time.monotonic() - start:.0f} skipped={sum(bool(c.skipped) for c in found)}")
    print(f"first-use: ok commands={count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
