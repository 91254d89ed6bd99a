"""The attention mask of one pass as a heat map: rows ask, columns answer.

For the page, which draws the dict live:

- `data[0]` is one column for the earlier prefix ("windowed without lying"), `data[1]` holds the cells.
- `data[1].z` is the *code* of each cell, an index into `mask_reasons()`. A sentence for every cell would be
  a megabyte a step, so the page writes the hover text itself, once per figure, with shared strings::

      cells.text = cells.z.map(row => row.map(code => reasons[code].html))

  `expand_hover` does the same here, and `as_figure` calls it. `data[0].text` is there from the start.
- `data[1].customdata[row]` is the tree node that the row is or hangs behind, -1 for a prefix row. The last columns
  are the rows in the same order, so the node of column c is `customdata[c - n_columns + n_rows]`, none before that.
- Axes are categories: row i lies between i - 0.5 and i + 0.5, columns likewise with the earlier block (if any) as
  column 0, so `data[1].meta.first_x` is the x of the first cell column. `mark_mask_rows` makes the shapes for a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specviz.figures.cells import Axis
from specviz.figures.frame import (
    CLEAR,
    PlotlyDict,
    join_frame,
    make_category_axis,
    make_frame,
    make_legend_entry,
)
from specviz.figures.mask_view import MaskView, label_columns, label_rows, view_mask
from specviz.figures.palette import GREY_COLOUR, SELECTION_COLOUR, ThemeName
from specviz.figures.reasons import CODES, FIRST_HIDDEN, REASONS, mask_reasons
from specviz.sentence import say, say_count
from specviz.trace import MaskTrace, StepTrace

N_BINS = 10  # of the colour axis; ten, so that their edges are short decimals
HOVER = say("<b>%{y}</b> asks, <b>%{x}</b> answers<br>%{text}<extra></extra>")
EARLIER_HOVER = say("<b>%{y}</b> asks<br>%{text}<extra></extra>")


def mask_figure(
    step: StepTrace,
    prefix_pieces: Sequence[str],
    *,
    theme: ThemeName | None = "light",
    n_recent: int = 48,
    selected: int | None = None,
) -> PlotlyDict:
    """Draw the mask that a step's pass used; bare where `theme` is None.

    `prefix_pieces` are the pieces of prompt and answer by position; missing ones are labelled by position alone.
    At most `n_recent` prefix rows and prefix columns are drawn. `selected` marks the rows of a tree node.
    """
    view = view_mask(step.mask, n_recent)
    rows, columns = label_rows(view, step, prefix_pieces), label_columns(view, step, prefix_pieces)
    marks = mark_mask_rows(view.rows.node.tolist(), selected)
    bare: PlotlyDict = {
        "data": [_draw_earlier(view, rows), _draw_cells(view, rows, columns)],
        "layout": {
            "shapes": _draw_borders(view) + marks,
            "annotations": _note_earlier_rows(view),
            "meta": {"legend": _name_kinds(step.mask, view)},
        },
    }
    return bare if theme is None else join_frame(bare, mask_frame(theme))


def mask_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of the mask."""
    return make_frame(
        theme,
        [make_legend_entry(reason.label, reason.colour) for reason in REASONS[:FIRST_HIDDEN]],
        xaxis=make_category_axis(say("columns answer (keys)"), tickangle=-90),
        yaxis=make_category_axis(say("rows ask (queries)"), autorange="reversed"),
        coloraxis=make_colour_axis(),
    )


def make_colour_axis() -> PlotlyDict:
    """Return the discrete colour axis over cell codes; every code from `FIRST_HIDDEN` on is blank."""
    colours = [reason.colour for reason in REASONS[:FIRST_HIDDEN]]
    colours += [CLEAR] * (N_BINS - FIRST_HIDDEN)
    scale = [[edge / N_BINS, colour] for i, colour in enumerate(colours) for edge in (i, i + 1)]
    return {"colorscale": scale, "cmin": -0.5, "cmax": N_BINS - 0.5, "showscale": False}


def expand_hover(figure: PlotlyDict) -> PlotlyDict:
    """Return the figure with a sentence for every cell, for notebooks and exports; other figures pass unchanged."""
    sentences = [reason["html"] for reason in mask_reasons()]
    return figure | {"data": [_expand_trace(trace, sentences) for trace in figure["data"]]}


def mark_mask_rows(customdata: Iterable[int], node: int | None) -> list[PlotlyDict]:
    """Return the layout shapes that frame the rows of a node, given `data[1].customdata`."""
    line = {"color": SELECTION_COLOUR, "width": 2}
    box = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "line": line}
    return [
        box | {"y0": row - 0.5, "y1": row + 0.5}
        for row, owner in enumerate(customdata)
        if node is not None and owner == node
    ]


def _expand_trace(trace: PlotlyDict, sentences: list[str]) -> PlotlyDict:
    if trace.get("name") != "cells":
        return trace
    return trace | {"text": [[sentences[code] for code in line] for line in trace["z"]]}


def _draw_earlier(view: MaskView, rows: list[str]) -> PlotlyDict:
    counts = view.earlier_visible.tolist() if view.n_earlier else []
    return {
        "type": "heatmap",
        "name": "earlier",
        "x": [say("{n} earlier", n=view.n_earlier)] if counts else [],
        "y": rows if counts else [],
        "z": [[CODES["context"] if count else CODES["hidden_window"]] for count in counts],
        "text": [[say("sees {n} of the {all} earlier columns", n=count, all=view.n_earlier)] for count in counts],
        "hovertemplate": EARLIER_HOVER,
        "coloraxis": "coloraxis",
        "opacity": 0.6,
    }


def _draw_cells(view: MaskView, rows: list[str], columns: list[str]) -> PlotlyDict:
    return {
        "type": "heatmap",
        "name": "cells",
        "y": rows,
        "x": columns,
        "z": view.codes.tolist(),
        "customdata": view.rows.node.tolist(),
        "meta": {"first_x": 1 if view.n_earlier else 0, "n_earlier_rows": view.n_earlier_rows},
        "hovertemplate": HOVER,
        "coloraxis": "coloraxis",
    }


def _name_kinds(mask: MaskTrace, view: MaskView) -> list[str]:
    """Return the labels of the kinds of visible cell; the same for every step of a run, unless something leaked."""
    leak = ["against_rule"] if (view.codes == CODES["against_rule"]).any() else []
    return [REASONS[CODES[name]].label for name in _kinds_of_mask(mask) + leak]


def _kinds_of_mask(mask: MaskTrace) -> list[str]:
    if mask.rule is None:
        return ["visible"]
    tree = [] if mask.rule.name == "causal" else ["ancestor"]
    added = ["own_node"] if mask.rule.k else []
    slots = ["earlier_slot"] if mask.rule.k > 1 and mask.rule.name != "lookahead_diagonal" else []
    soft = ["soft_prompt"] if mask.rule.s else []
    return ["context", *tree, "self", *added, *slots, *soft]


def _note_earlier_rows(view: MaskView) -> list[PlotlyDict]:
    """Say inside the blank corner of a causal triangle that rows were left out."""
    if not view.n_earlier_rows:
        return []
    place = {"xref": "paper", "yref": "paper", "x": 0.98, "y": 0.96, "xanchor": "right", "yanchor": "top"}
    text = say_count(view.n_earlier_rows, "{n} earlier row<br>not drawn", "{n} earlier rows<br>not drawn")
    return [place | {"text": text, "align": "right", "showarrow": False}]


def _draw_borders(view: MaskView) -> list[PlotlyDict]:
    """Draw a thin line wherever one kind of row or column ends."""
    line = {"color": GREY_COLOUR, "width": 1, "dash": "dot"}
    across = {"type": "line", "line": line, "yref": "paper", "y0": 0, "y1": 1}
    along = {"type": "line", "line": line, "xref": "paper", "x0": 0, "x1": 1}
    first_x = 1 if view.n_earlier else 0
    columns = [across | {"x0": x + first_x, "x1": x + first_x} for x in _find_borders(view.columns)]
    return columns + [along | {"y0": y, "y1": y} for y in _find_borders(view.rows)]


def _find_borders(axis: Axis) -> list[float]:
    kinds = axis.kind.tolist()
    return [i - 0.5 for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]]
