"""Mistakes that a user can make, as sentences."""

from __future__ import annotations

import sys
from collections.abc import Callable


class SpecVizError(Exception):
    """A user's mistake; its message is one sentence fit for the page, the API and the terminal."""


def exit_status(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit status; a user's mistake is a sentence on stderr and 2."""
    try:
        return command() or 0
    except SpecVizError as error:
        print(f"specviz: {error}", file=sys.stderr)
        return 2
