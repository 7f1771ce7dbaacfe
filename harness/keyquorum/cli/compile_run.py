"""MP-SPDZ's command line ``compile-run.py`` on the embedded engine: the same names, and a one-line error for an option that has no meaning here.

``[options] [-E] PROTOCOL PROGRAM [ARGS] [-- RUN-TIME OPTIONS]``. An option is used, or accepted without effect because it
only changes how MP-SPDZ compiles or preprocesses, or refused with the reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from optparse import OptionParser
from typing import NoReturn

from keyquorum._engine import EngineError
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.protocols import PROTOCOLS, Protocol, named, names
from keyquorum.plans.program import ProgramRequest, run_locally

PROTOCOL_NAMES = {p.mp_spdz.long_name: p.name for p in PROTOCOLS.values() if p.mp_spdz is not None}
"""Our names by those of MP-SPDZ's executables."""
SPLIT = names(splits=True, emulated=False, last=" and ")
"""Ring protocols whose shares split into summands."""
_COMPILER = "it is about MP-SPDZ's bytecode, which does not exist here"
_HOSTS = "all parties run on this host; for several hosts see keyquorum init and keyquorum party"
_FILES = "files have fixed paths here: Player-Data/Input-P<i>-0, Player-Data/Input-Binary-P<i>-0 and Player-Data/Binary-Output-P<i>-0"
_USE, _TAKE = "use", "take"


@dataclass(frozen=True)
class Option:
    """``action``: ``use``, ``take`` (no effect), or the reason of a refusal."""

    short: str
    long: str
    value: bool
    action: str


COMPILE_OPTIONS = [
    Option("-E", "--execute", True, _USE),
    Option("-R", "--ring", True, _USE),
    Option("-F", "--field", True, _USE),
    Option("-P", "--prime", True, _USE),
    Option("-Z", "--split", True, _USE),
    Option("-X", "--mixed", False, _TAKE),
    Option("-Y", "--edabit", False, _TAKE),
    Option("-n", "--nomerge", False, _TAKE),
    Option("-d", "--debug", False, _TAKE),
    Option("-c", "--comparison", True, _TAKE),
    Option("-M", "--preserve-mem-order", False, _TAKE),
    Option("-O", "--optimize-hard", False, _TAKE),
    Option("-u", "--noreallocate", False, _TAKE),
    Option("-m", "--max-parallel-open", True, _TAKE),
    Option("-D", "--dead-code-elimination", False, _TAKE),
    Option("-s", "--stop", False, _TAKE),
    Option("-b", "--budget", True, _TAKE),
    Option("-C", "--CISC", False, _TAKE),
    Option("-K", "--keep-cisc", True, _TAKE),
    Option("-v", "--verbose", False, _TAKE),
    Option("-t", "--tidy_output", False, _TAKE),
    Option("-B", "--binary", True, _USE),
    Option("-G", "--garbled-circuit", False, "there are no garbled circuits here: leave out -G"),
    Option("-g", "--galoissize", True, "GF(2^n) is outside the subset"),
    Option("-I", "--insecure", False, "there is no insecure functionality to activate"),
    Option("-l", "--flow-optimization", False, "Python's for and if are not turned into run-time ones: use for_range and if_e"),
    Option("", "--invperm", False, "inverse permutations are outside the subset"),
    Option("-o", "--output", True, _COMPILER),
    Option("-a", "--asm-output", True, _COMPILER),
    Option("-p", "--profile", False, _COMPILER),
    Option("", "--papers", False, "the programs' headers name their papers: see docs/pages/programs.md"),
    Option("-H", "--hostfile", True, _HOSTS),
]
RUN_TIME_OPTIONS = [
    Option("-N", "--nparties", True, _USE),
    Option("-T", "--threshold", True, _USE),
    Option("-P", "--prime", True, _USE),
    Option("-R", "--ring", True, _USE),
    Option("-m", "--memory", True, _USE),
    Option("-e", "--encrypted", False, _TAKE),
    Option("-v", "--verbose", False, _TAKE),
    Option("-b", "--batch-size", True, _TAKE),
    Option("-B", "--bucket-size", True, _TAKE),
    Option("-Q", "--bits-from-squares", False, _TAKE),
    Option("-d", "--direct", False, _TAKE),
    Option("-pn", "--portnumbase", True, _TAKE),
    Option("-o", "--options", True, _TAKE),
    Option("", "--code-locations", False, _TAKE),
    Option("-u", "--unencrypted", False, "links are always encrypted here"),
    Option("-S", "--security", True, "the security of MACs is fixed here"),
    Option("-SP", "--spdz2k-security", True, "the security of MACs is fixed here"),
    Option("-lgp", "--lgp", True, "no prime is made here: give one of up to 61 bits with -P"),
    Option("-lg2", "--lg2", True, "GF(2^n) is outside the subset"),
    Option("-E", "--trunc-error", True, "fixed-point numbers are outside the subset"),
    Option("-F", "--file-preprocessing", False, "there is no preprocessing on disk"),
    Option("-f", "--file-prep-per-thread", False, "there is no preprocessing on disk"),
    Option("-D", "--disk-memory", True, "memory is not kept on disk"),
    Option("-I", "--interactive", False, _USE),
    Option("-IF", "--input-file", True, _FILES),
    Option("-OF", "--output-file", True, _FILES),
    Option("-p", "--player", True, _HOSTS),
    Option("-h", "--hostname", True, _HOSTS),
    Option("-ip", "--ip-file-name", True, _HOSTS),
    Option("-mp", "--my-port", True, _HOSTS),
    Option("-ext-server", "--external-server", False, _HOSTS),
]


@dataclass
class CommandLine:
    """A parsed command line: the values of the options that are used, by their long names, and the positional words."""

    compiled: dict[str, str] = field(default_factory=dict)
    run_time: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


class _Parser(OptionParser):
    def error(self, msg: str) -> NoReturn:
        raise ParameterError(f"{msg} (run-time options come after --; see --help)")


def parse(words: Sequence[str]) -> CommandLine:
    """Reads a command line. Raises ParameterError for an option that has no meaning here."""
    at = list(words).index("--") if "--" in words else len(words)
    parser = _Parser(prog="compile-run.py", usage="%prog [options] [-E] PROTOCOL PROGRAM [ARGS] [-- RUN-TIME OPTIONS]")
    for option in COMPILE_OPTIONS:
        names = [n for n in (option.short, option.long) if n]
        kind = "store" if option.value else "store_true"
        parser.add_option(*names, dest=option.long, action=kind, help=_help(option))
    given, positional = parser.parse_args(list(words[:at]))
    line = CommandLine(words=list(positional))
    for option in COMPILE_OPTIONS:
        value = getattr(given, option.long)
        if value is not None:
            _enter(line.compiled, option, value, option.short or option.long)
    _run_time(line, list(words[at + 1 :]))
    return line


def _run_time(line: CommandLine, words: list[str]) -> None:
    known = {name: option for option in RUN_TIME_OPTIONS for name in (option.short, option.long) if name}
    while words:
        name = words.pop(0)
        if name not in known:
            raise ParameterError(f"unknown run-time option {name!r}: choose one of {', '.join(sorted(known))}")
        option = known[name]
        if option.value and not words:
            raise ParameterError(f"run-time option {name} needs a value")
        _enter(line.run_time, option, words.pop(0) if option.value else "yes", f"-- {name}")


def _enter(values: dict[str, str], option: Option, value: object, shown: str) -> None:
    if option.action not in (_USE, _TAKE):
        raise ParameterError(f"option {shown} has no meaning here: {option.action}")
    if option.action == _USE:
        values[option.long.removeprefix("--")] = str(value)


def _help(option: Option) -> str:
    return {_USE: "used as by MP-SPDZ", _TAKE: "taken, without effect"}.get(option.action, f"refused: {option.action}")


def request(line: CommandLine) -> ProgramRequest:
    """The run that a command line asks for. PLAYERS and THRESHOLD in the environment have the same effect as for MP-SPDZ."""
    words, compiled, run_time = list(line.words), line.compiled, line.run_time
    protocol = compiled.get("execute") or (words.pop(0) if len(words) > 1 else "")
    if not protocol:
        raise ParameterError("no protocol: give it with -E, or before the program")
    protocol = protocol.removesuffix("-party.x").removesuffix(".x")
    protocol = PROTOCOL_NAMES.get(protocol, protocol)
    can = named(protocol)
    if not words:
        raise ParameterError("no program: give its name after the protocol")
    ring = _same("ring", _number(compiled, "ring"), _number(run_time, "ring"))
    prime = _same("prime", _number(compiled, "prime"), _number(run_time, "prime"))
    length = _number(compiled, "field")
    if "binary" in compiled and not can.bits:
        mixed, alone = names(binary=True, bits=False, last=" or "), names(bits=True, emulated=False)
        raise ParameterError(f"option -B has no meaning for {protocol}: sbits work in every program over {mixed}; bits alone are for {alone}")
    if can.ring and not can.field and (prime is not None or length is not None):
        raise ParameterError(f"{protocol} computes modulo 2^k: -F and -P are for {names(field=True, emulated=False, last=' and ')}")
    if run_time.get("memory", "empty") != "empty":
        raise ParameterError("-- -m old has no meaning here: memory is not kept between runs, shares are (write_to_file)")
    parties = _number(run_time, "nparties") or _number(dict(os.environ), "PLAYERS")
    threshold = _number(run_time, "threshold") or (_number(dict(os.environ), "THRESHOLD") if can.chooses_threshold else None)
    if can.parties is not None:
        if "nparties" in run_time and parties != can.parties:
            raise ParameterError(f"{protocol} is for {can.parties} parties, not {parties}")
        parties = None
    interactive = "interactive" in run_time
    asked = ProgramRequest(words[0], tuple(words[1:]), protocol, parties, ring, length, prime, threshold, interactive=interactive)
    _check_split(can, _number(compiled, "split"), asked.size)
    return asked


def _number(values: dict[str, str], name: str) -> int | None:
    text = values.get(name)
    if text is None or text == "":
        return None
    if not text.isdigit():
        raise ParameterError(f"{name} is a number, not {text!r}")
    return int(text)


def _same(name: str, compiled: int | None, run_time: int | None) -> int | None:
    if compiled is not None and run_time is not None and compiled != run_time:
        raise ParameterError(f"two values of the {name}: {compiled} for compiling and {run_time} for running, give the same")
    return compiled if compiled is not None else run_time


def _check_split(protocol: Protocol, split: int | None, parties: int) -> None:
    """Refuses a ``-Z`` that is not the protocol's number of summands."""
    if split is None or protocol.emulated:
        return
    if not protocol.splits:
        raise ParameterError(f"-Z is for {SPLIT}: shares of {protocol.name} do not split locally")
    summands = protocol.summands(parties)
    if split != summands:
        raise ParameterError(f"-Z {split}: shares of {protocol.name} split into {summands} summands")


def main(words: Sequence[str] | None = None) -> int:
    """Runs the program; exit code 1 and one line after a mistake."""
    try:
        for text in run_locally(request(parse(sys.argv[1:] if words is None else words))):
            print(text)
    except (KeyQuorumError, EngineError, OSError) as error:
        print("error: " + " ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0
