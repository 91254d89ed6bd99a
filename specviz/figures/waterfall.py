"""Where a step's time went, as bars behind each other; the visualizer's own cost lies in a row of its own."""

from __future__ import annotations

from specviz.analysis.waterfall import Waterfall
from specviz.figures.frame import PlotlyDict, join_frame, make_axis, make_frame
from specviz.figures.palette import ThemeName
from specviz.figures.runs import TIME_LABELS, TIME_PARTS, make_pattern
from specviz.sentence import say

ROWS = ("draft", "verify", "commit", "record")
_LABELS = TIME_LABELS | {"record": say("recording (ours)")}


def waterfall_figure(fall: Waterfall, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw the phases of a step from its start on, a trace for each: plotly takes one colour for a pattern."""
    bars: dict[str, tuple[float, float]] = {span.phase: (span.start, span.ms) for span in fall.spans}
    bars["record"] = (fall.ms, fall.record_ms)
    axis = make_axis(say("milliseconds from the step's start"), range=[0, round(1.02 * (fall.ms + fall.record_ms), 3)])
    bare: PlotlyDict = {"data": [_draw_bar(row, *bars[row]) for row in ROWS], "layout": {"xaxis": axis}}
    return bare if theme is None else join_frame(bare, waterfall_frame(theme))


def waterfall_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of a waterfall."""
    return make_frame(
        theme,
        barmode="overlay",
        bargap=0.25,
        yaxis=make_axis("", autorange="reversed", showgrid=False),
    )


def _draw_bar(row: str, start: float, ms: float) -> PlotlyDict:
    colour, pattern = next((colour, pattern) for name, colour, pattern in TIME_PARTS if name == row)
    return {
        "type": "bar",
        "orientation": "h",
        "y": [say("{phase}<br>{ms} ms", phase=_LABELS[row], ms=f"{ms:.1f}")],
        "base": [round(start, 3)],
        "x": [round(ms, 3)],
        "hovertemplate": say("%{x:.2f} ms from %{base:.2f} ms on<extra></extra>"),
        "marker": {"color": colour, "pattern": make_pattern(pattern)},
        "showlegend": False,
    }
