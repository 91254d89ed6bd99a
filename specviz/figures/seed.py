"""The mask as the Lookahead Attention report prints it, beside the mask that runs.

The report draws, in its section 2.1, identity blocks and a block of ones at the top right, and writes the same blocks
with a causal triangle in 3.1. Its own words say that slots see the text and the text does not see the slots. With
row = query that is the transpose of what is printed, and the drawn identity stands for a causal triangle.
Every cell says whether what is printed agrees with what runs, by its colour, by a mark and in words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from specviz.figures.frame import CLEAR, PlotlyDict, join_frame, make_category_axis, make_frame, make_legend_entry
from specviz.figures.labels import wrap_html
from specviz.figures.palette import ACCEPTED_COLOUR, REJECTED_COLOUR, SKY_COLOUR, ThemeName
from specviz.sentence import Sentence, say
from specviz.settings import SlotAttention
from specviz.trace import MaskRule, expand_rule

Printed = Literal["drawing", "formula"]
Matrix = list[list[bool]]

SEED_REASON = say(
    "As printed, with rows as queries, the text would read the slots: its own output would change. The report's words "
    "say the opposite, so what runs is the transpose, with a causal triangle where the drawing has an identity."
)


class _CellKind(NamedTuple):
    """What a cell may be; `symbol` is plotly's name of the mark, for the legend."""

    name: Sentence
    colour: str
    mark: str
    symbol: str
    meaning: Sentence


_CELL_KINDS = (
    _CellKind(say("visible"), ACCEPTED_COLOUR, "●", "circle", say("Visible, as printed and as it runs.")),
    _CellKind(
        say("printed, does not run"),
        REJECTED_COLOUR,
        "✕",
        "x",
        say("Printed as visible, but it does not run: {why}"),
    ),
    _CellKind(say("runs, not printed"), SKY_COLOUR, "✚", "cross", say("Not printed, but it runs: {why}")),
    _CellKind(say("masked"), CLEAR, "", "square", say("Masked, as printed and as it runs.")),
)


def seed_drawing_figure(
    n: int, k: int, *, printed: Printed = "drawing", theme: ThemeName | None = "light"
) -> PlotlyDict:
    """Draw the report's mask as printed: `drawing` is its section 2.1, `formula` its 3.1.

    With n = 2 and k = 2 the drawing is::

                x0 x1 s1 s2
            x0  1  .  1  1
            x1  .  1  1  1
            s1  .  .  1  .
            s2  .  .  .  1
    """
    cells = _compare(print_seed_mask(n, k, printed), run_mask(n, k, "diagonal"))
    return _draw(cells, n, k, theme)


def what_runs_figure(n: int, k: int, slot_attention: SlotAttention, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw the mask that runs for n tokens of text and k slots behind the last of them.

    With n = 2, k = 2 and diagonal slots it is::

                x0 x1 s1 s2
            x0  1  .  .  .
            x1  1  1  .  .
            s1  1  1  1  .
            s2  1  1  .  1
    """
    runs = run_mask(n, k, slot_attention)
    return _draw([[_pick_kind(cell, cell) for cell in line] for line in runs], n, k, theme)


def print_seed_mask(n: int, k: int, printed: Printed) -> Matrix:
    """Return the printed matrix, (n + k, n + k)."""

    def see(row: int, column: int) -> bool:
        if row < n and column < n:
            return row == column if printed == "drawing" else column <= row
        return row == column or (row < n <= column)

    return _fill(n + k, see)


def run_mask(n: int, k: int, slot_attention: SlotAttention) -> Matrix:
    """Return the mask that runs, (n + k, n + k), from the rule that the forward pass uses."""
    name: Literal["lookahead_diagonal", "lookahead_causal"] = (
        "lookahead_diagonal" if slot_attention == "diagonal" else "lookahead_causal"
    )
    return expand_rule(MaskRule(name=name, prefix=0, pending=n, parents=[-1], k=k)).matrix()


def seed_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of the seed's drawing and of what runs."""
    colours = [kind.colour for kind in _CELL_KINDS]
    scale = [[edge / len(colours), colour] for i, colour in enumerate(colours) for edge in (i, i + 1)]
    return make_frame(
        theme,
        [make_legend_entry(kind.name, kind.colour, kind.symbol) for kind in _CELL_KINDS[:3]],
        xaxis=make_category_axis(say("columns answer (keys)")),
        yaxis=make_category_axis(say("rows ask (queries)"), autorange="reversed"),
        coloraxis={"colorscale": scale, "cmin": -0.5, "cmax": 3.5, "showscale": False},
    )


def _draw(cells: list[list[int]], n: int, k: int, theme: ThemeName | None) -> PlotlyDict:
    labels = [f"x{i}" for i in range(n)] + [say("slot {slot}", slot=i) for i in range(1, k + 1)]
    present = {cell for line in cells for cell in line}
    trace = {
        "type": "heatmap",
        "name": "cells",
        "x": labels,
        "y": labels,
        "z": cells,
        "text": [[_CELL_KINDS[cell].mark for cell in line] for line in cells],
        "texttemplate": "%{text}",
        "hovertext": [
            [_tell(cell, row < n, column < n) for column, cell in enumerate(line)] for row, line in enumerate(cells)
        ],
        "hovertemplate": say("<b>%{y}</b> asks, <b>%{x}</b> answers<br>%{hovertext}<extra></extra>"),
        "coloraxis": "coloraxis",
    }
    legend = [kind.name for code, kind in enumerate(_CELL_KINDS) if code in present]
    bare: PlotlyDict = {"data": [trace], "layout": {"meta": {"legend": legend, "reason": SEED_REASON}}}
    return bare if theme is None else join_frame(bare, seed_frame(theme))


def _compare(printed: Matrix, runs: Matrix) -> list[list[int]]:
    return [[_pick_kind(*pair) for pair in zip(*lines, strict=True)] for lines in zip(printed, runs, strict=True)]


def _pick_kind(printed: bool, runs: bool) -> int:
    return {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}[printed, runs]


def _tell(kind: int, row_is_text: bool, column_is_text: bool) -> str:
    if row_is_text and not column_is_text:
        why = say("text never reads a slot, so its output stays the target's own.")
    elif column_is_text and not row_is_text:
        why = say("a slot reads the whole text.")
    else:
        why = say("each token reads the text before it (a causal triangle).")
    return wrap_html(_CELL_KINDS[kind].meaning.fill(why=why))


def _fill(size: int, see: Callable[[int, int], bool]) -> Matrix:
    return [[see(row, column) for column in range(size)] for row in range(size)]
