"""Two lanes on one clock: how many tokens stand at each moment."""

from __future__ import annotations

from specviz.analysis.race import Lane, Race
from specviz.figures.frame import PlotlyDict, join_frame, make_axis, make_frame
from specviz.figures.palette import ACCEPTED_COLOUR, GREY_COLOUR, ThemeName
from specviz.sentence import say

_LANES = (("plain", GREY_COLOUR, "dot"), ("own", ACCEPTED_COLOUR, "solid"))

METHOD_NAMES = {
    "plain": say("plain decoding"),
    "lookahead": "Lookahead Attention",
    "eagle3": "EAGLE-3",
    "confu": "ConFu",
}


def race_figure(race: Race, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw the tokens of both lanes against the measured seconds."""
    lanes = [race.plain, race.own]
    bare: PlotlyDict = {
        "data": [_draw_lane(lane, colour, dash) for lane, (_, colour, dash) in zip(lanes, _LANES, strict=True)],
        "layout": {},
    }
    return bare if theme is None else join_frame(bare, race_frame(theme))


def race_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of a race."""
    return make_frame(
        theme,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis=make_axis(say("seconds (measured)"), rangemode="tozero"),
        yaxis=make_axis(say("tokens"), rangemode="tozero"),
    )


def _draw_lane(lane: Lane, colour: str, dash: str) -> PlotlyDict:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": METHOD_NAMES[lane.name],
        "x": [0, *(round(arrival.ms / 1000, 4) for arrival in lane.arrivals)],
        "y": [0, *(arrival.n_tokens for arrival in lane.arrivals)],
        "line": {"shape": "hv", "color": colour, "width": 3, "dash": dash},
        "hovertemplate": say("%{data.name}: %{y} tokens after %{x:.2f} s<extra></extra>"),
    }
