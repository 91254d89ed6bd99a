"""What figures share, apart from what a step puts into them.

A figure is made in two parts. The *bare* figure (`theme=None`) holds only what the step says: the same on a light
and on a dark page, and small on the wire. The *frame* of its kind holds axes, fonts, colours of the theme and the
legend; the page gets all frames once (`figure_frames`) and joins the two as `join_frame` does.
"""

from __future__ import annotations

from typing import Any

from specviz.figures.palette import GREY_COLOUR, STATUSES, THEMES, StatusName, ThemeName, status_colour

PlotlyDict = dict[str, Any]

UI_REVISION = "specviz"
GRID_COLOUR = "rgba(128,128,128,0.25)"  # seen on both themes, as everything outside of frames
CLEAR = "rgba(0,0,0,0)"
FONT_FAMILY = "system-ui, sans-serif"
NARROW_MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}


def join_frame(bare: PlotlyDict, frame: PlotlyDict) -> PlotlyDict:
    """Return a bare figure in its frame.

    `layout.meta.legend` of the bare figure, where there is one, names the legend entries that apply.
    """
    wanted = bare["layout"].get("meta", {}).get("legend")
    legend = [entry for entry in frame["legend"] if wanted is None or entry["name"] in wanted]
    return {"data": bare["data"] + legend, "layout": frame["layout"] | bare["layout"]}


def make_frame(theme: ThemeName, legend: list[PlotlyDict] | None = None, **layout: Any) -> PlotlyDict:
    """Return a frame: the shared layout with `layout` replacing whole entries, and legend entries."""
    colours = THEMES[theme]
    shared: PlotlyDict = {
        "uirevision": UI_REVISION,  # constant, so that zoom survives the next step
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": make_font(theme),
        "margin": NARROW_MARGIN,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": colours.surface,
            "bordercolor": colours.muted,
            "font": make_font(theme),
            "align": "left",
        },
        "legend": _place_legend(),
        "dragmode": "pan",
    }
    return {"legend": legend or [], "layout": shared | layout}


def make_font(theme: ThemeName) -> PlotlyDict:
    """Return the font of a theme."""
    return {"family": FONT_FAMILY, "size": 12, "color": THEMES[theme].text}


def make_axis(title: str, **changes: Any) -> PlotlyDict:
    """Return an axis with a title and thin grid lines; `changes` replace entries of it."""
    axis: PlotlyDict = {
        "title": {"text": title, "standoff": 6},
        "gridcolor": GRID_COLOUR,
        "zeroline": False,
        "automargin": True,
        "tickfont": {"size": 11},
    }
    return axis | changes


def make_category_axis(title: str, **changes: Any) -> PlotlyDict:
    """Return a framed axis of labels without a grid, for matrices."""
    axis: PlotlyDict = {
        "title": {"text": title, "standoff": 6},
        "type": "category",
        "tickfont": {"size": 10},
        "automargin": True,
        "showgrid": False,
        "showline": True,
        "linecolor": GREY_COLOUR,
        "mirror": True,
        "ticks": "",
    }
    return axis | changes


def make_legend_entry(name: str, colour: str, symbol: str = "square") -> PlotlyDict:
    """Return a trace that draws nothing but its line in the legend, which wraps on a narrow screen."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [None],
        "y": [None],
        "name": name,
        "hoverinfo": "skip",
        "marker": {"symbol": symbol, "color": colour, "size": 11},
        "showlegend": True,
    }


def make_status_entry(status: StatusName) -> PlotlyDict:
    """Return the legend entry of a status."""
    return make_legend_entry(STATUSES[status].label, mark_colour(status), STATUSES[status].symbol)


def mark_colour(status: StatusName) -> str:
    """Return the colour of a status in a figure, where grey stands for the text colour and suits both themes."""
    is_text = STATUSES[status].colour == "text"
    return GREY_COLOUR if is_text else status_colour(status, "light")


def _place_legend() -> PlotlyDict:
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 1.0,
        "yanchor": "bottom",
        "font": {"size": 11},
        "traceorder": "normal",
        "itemclick": False,
        "itemdoubleclick": False,
        "bgcolor": CLEAR,
    }
