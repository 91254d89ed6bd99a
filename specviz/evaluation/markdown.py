"""Tables in Markdown."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

NOTHING = "–"


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; cells are Markdown themselves."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def show_number(value: float | None, n_digits: int = 2) -> str:
    """Return a number as a cell; a dash where it is not known."""
    return NOTHING if value is None else f"{value:.{n_digits}f}"


def show_code(text: str) -> str:
    """Return text as code in a cell: nothing in it is taken for Markdown, and what cannot be seen is escaped."""
    shown = html.escape(repr(text)[1:-1], quote=False)
    return (
        f"<code>{shown.replace('|', '&#124;').replace('`', '&#96;').replace('*', '&#42;').replace('_', '&#95;')}</code>"
    )
