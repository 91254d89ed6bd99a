"""One row of a mask three times: recorded, rebuilt from its rule, and the attention that flowed."""

from __future__ import annotations

from specviz.analysis.mask_proof import MaskProof, ProofCell
from specviz.figures.frame import CLEAR, PlotlyDict, join_frame, make_category_axis, make_frame
from specviz.figures.labels import escape_html, name_row
from specviz.figures.palette import ACCEPTED_COLOUR, REJECTED_COLOUR, ThemeName
from specviz.sentence import change_text, say

ROWS = (say("recorded mask"), say("mask by its rule"), say("attention, largest"), say("attention, mean"))
LEAK = 3.0  # on the colour axis, apart from the weights, which end at 1


def mask_proof_figure(proof: MaskProof, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw the cells of a row; visible is 1, attention its weight, and a leak stands out in every line.

    What was not recorded has no line.
    """
    labels = [_label(cell, i) for i, cell in enumerate(proof.cells, start=proof.first_column)]
    lines = list(zip(*(_values(cell) for cell in proof.cells), strict=True))
    recorded = [i for i, line in enumerate(lines) if any(value is not None for value in line)]  # a blank one is no zero
    trace = {
        "type": "heatmap",
        "name": "proof",
        "x": labels,
        "y": [ROWS[i] for i in recorded],
        "z": [list(lines[i]) for i in recorded],
        "text": [[_tell(cell, i) for cell in proof.cells] for i in recorded],
        "hovertemplate": say("<b>%{x}</b><br>%{y}: %{text}<extra></extra>"),
        "coloraxis": "coloraxis",
    }
    bare: PlotlyDict = {"data": [trace], "layout": {}}
    return bare if theme is None else join_frame(bare, mask_proof_frame(theme))


def mask_proof_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of a mask proof: masked is blank, weights deepen to the colour of what is visible."""
    weights = [[0, CLEAR], [1e-6, "rgba(0,114,178,0.15)"], [1 / LEAK, ACCEPTED_COLOUR], [0.5, ACCEPTED_COLOUR]]
    return make_frame(
        theme,
        xaxis=make_category_axis(say("columns (keys)"), tickangle=-90),
        yaxis=make_category_axis("", autorange="reversed"),
        coloraxis={
            "colorscale": [*weights, [0.5, REJECTED_COLOUR], [1, REJECTED_COLOUR]],
            "cmin": 0,
            "cmax": LEAK,
            "showscale": False,
        },
    )


def _label(cell: ProofCell, column: int) -> str:
    return change_text(name_row(cell.column), lambda name: f"{column}: {escape_html(name)}")


def _values(cell: ProofCell) -> tuple[float | None, ...]:
    shown = [_as_number(cell.recorded), _as_number(cell.ruled), cell.largest, cell.mean]
    return tuple(LEAK if cell.leaks and value else value for value in shown)


def _as_number(visible: bool | None) -> float | None:
    return None if visible is None else float(visible)


def _tell(cell: ProofCell, line: int) -> str:
    value = (cell.recorded, cell.ruled, cell.largest, cell.mean)[line]
    if value is None:
        return say("not recorded")
    leak = say(" (a leak: this column is masked)") if cell.leaks and value else ""
    if isinstance(value, bool):
        return (say("visible") if value else say("masked")) + leak
    return (say("exactly 0") if value == 0 else f"{value:.2g}") + leak
