"""The paper's way of evaluation without its dealer: AES-128 on LWE ciphertexts with encrypted tables, among the parties of this host. A baseline that is not
served.

    python -m bench.baselines.toprf_lwe keygen COMMITTEE KEY [-p lwe32-p2-seed003]
    python -m bench.baselines.toprf_lwe fill COMMITTEE KEY -n BLOCKS [--rounding round_ltz_table]
    python -m bench.baselines.toprf_lwe eval COMMITTEE KEY [BLOCK ... | --batch FILE] [--to PARTY] [--rounding round_ltz_table]

``fill`` makes an item of encrypted tables for each block, and items of the rounding. ``eval`` takes blocks of 32 hexadecimal digits, which others on this host can
see, or a file with a block on each line, and prints the values."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.terminal.output import console, fail, print_reports
from keyquorum.terminal.progress import progress_bars

from .gates import ROUNDING, block_of, blocks_in
from .parameters import NAMES
from .run import gates_evaluate, gates_fill, gates_keygen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.baselines.toprf_lwe", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("keygen", "fill", "eval"):
        command = commands.add_parser(name)
        command.add_argument("committee", type=Path)
        command.add_argument("key")
        if name == "keygen":
            command.add_argument("-p", "--parameters", default=NAMES[0], help=f"{' or '.join(NAMES)}")
            continue
        command.add_argument("--rounding", default=ROUNDING, help="round_ltz_circuit (default) or round_ltz_table")
        if name == "fill":
            command.add_argument("-n", "--items", type=int, required=True, help="blocks")
        else:
            command.add_argument("blocks", nargs="*")
            command.add_argument("--batch", type=Path, help="file with a block on each line")
            command.add_argument("--to", type=int, default=0, help="the party that gives the blocks as shares, and alone gets the values")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; exit code 1 after an error."""
    given = _parser().parse_args(arguments)
    try:
        with progress_bars() as report:
            if given.command == "keygen":
                key_id = gates_keygen(given.committee, given.key, given.parameters, report)
                console.print(f"key {given.key}: shares of an LWE secret and of a key of AES-128, {given.parameters}, id {key_id}", markup=False)
            elif given.command == "fill":
                left = gates_fill(given.committee, given.key, given.items, given.rounding, report)
                console.print(f"items for {left:,} blocks under key {given.key}", markup=False)
            else:
                values, reports = gates_evaluate(given.committee, given.key, _points(given.blocks, given.batch), given.to, given.rounding, report)
                print("\n".join(value.hex() for value in values))
                print_reports(reports)
    except KeyQuorumError as error:
        fail(str(error))
        return 1
    return 0


def _points(blocks: Sequence[str], batch: Path | None) -> list[bytes]:
    """The blocks, of the one source that was named."""
    if bool(blocks) == (batch is not None):
        raise ParameterError("name blocks, or --batch FILE where there are some")
    return [block_of(word) for word in blocks] if batch is None else blocks_in(batch)


if __name__ == "__main__":
    raise SystemExit(main())
