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
    """Draw the phases of a step from its start on."""
    bars: dict[str, tuple[float, float]] = {span.phase: (span.start, span.ms) for span in fall.spans}
    bars["record"] = (fall.ms, fall.record_ms)
    looks = {name: (colour, pattern) for name, colour, pattern in TIME_PARTS}
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": [say("{phase}<br>{ms} ms", phase=_LABELS[row], ms=f"{bars[row][1]:.1f}") for row in ROWS],
        "base": [round(bars[row][0], 3) for row in ROWS],
        "x": [round(bars[row][1], 3) for row in ROWS],
        "hovertemplate": say("%{x:.2f} ms from %{base:.2f} ms on<extra></extra>"),
        "marker": {
            "color": [looks[row][0] for row in ROWS],
            "pattern": make_pattern("") | {"shape": [looks[row][1] for row in ROWS]},
        },
        "showlegend": False,
    }
    axis = make_axis(say("milliseconds from the step's start"), range=[0, round(1.02 * (fall.ms + fall.record_ms), 3)])
    bare: PlotlyDict = {"data": [trace], "layout": {"xaxis": axis}}
    return bare if theme is None else join_frame(bare, waterfall_frame(theme))


def waterfall_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of a waterfall."""
    return make_frame(
        theme,
        bargap=0.25,
        yaxis=make_axis("", autorange="reversed", showgrid=False),
    )
