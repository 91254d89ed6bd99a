"""The command line: `python -m specviz run`, `bench` and `train`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from specviz.commands import bench, run, train
from specviz.errors import exit_status

COMMANDS = {"run": run, "bench": bench, "train": train}  # each a module: HELP, add_arguments(parser), start(parsed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; a user's mistake is a sentence on stderr and 2."""
    parsed = vars(build_parser().parse_args(arguments))
    command = COMMANDS[parsed.pop("command")]
    return exit_status(lambda: command.start(parsed))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="specviz", description="Speculative decoding, recorded step by step.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=command.__doc__))
    return parser


if __name__ == "__main__":
    sys.exit(main())
