"""A report as plotly figures, and the one page that holds them; each number stands in the report too.

A figure is a plain plotly dict. Beside its colour a lane has a marker or a pattern as the second cue.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plotly.graph_objects import Figure

from specviz.analysis.expert_usage import ExpertUsage
from specviz.analysis.misses import MISS_REASONS
from specviz.evaluation.report import LaneReport, Report
from specviz.evaluation.summary import Summary
from specviz.figures.drafting import REASON_LABELS
from specviz.figures.experts import PROBABILITY_SCALE
from specviz.figures.frame import PlotlyDict, make_axis, make_frame
from specviz.figures.palette import (
    ACCEPTED_COLOUR,
    BONUS_COLOUR,
    CORRECTION_COLOUR,
    GREY_COLOUR,
    REJECTED_COLOUR,
    SKY_COLOUR,
    UNVERIFIED_COLOUR,
)
from specviz.figures.plotly_script import inline_plotly

COLOURS = (
    ACCEPTED_COLOUR,
    UNVERIFIED_COLOUR,
    BONUS_COLOUR,
    CORRECTION_COLOUR,
    SKY_COLOUR,
    REJECTED_COLOUR,
    GREY_COLOUR,
)
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "star", "x", "hexagon")
PATTERNS = ("", "/", ".", "x", "\\", "-", "|", "+")
SWEPT_NUMBERS = ("nodes", "depth", "tree_top_k", "k", "candidates", "rows", "groups")
NAME = "<extra>%{fullData.name}</extra>"
MARGIN = {"l": 56, "r": 16, "t": 64, "b": 48}


def build_figures(report: Report) -> dict[str, PlotlyDict]:
    """Return the figures that the report has numbers for, by title."""
    figures = {
        "Tokens per target pass by category": category_figure(report, "tau", lambda summary: summary.tau),
        "Speed-up over plain by category": category_figure(report, "speed-up", lambda summary: summary.speedup),
        "Acceptance by depth": depth_figure(report),
    }
    figures |= {
        f"Acceptance by depth and category: {name}": depth_map_figure(lane)
        for name, lane in report.lanes.items()
        if lane.overall.acceptance_by_depth
    }
    figures |= sweep_figures(report)
    if report.misses:
        figures["Misses by reason"] = miss_figure(report)
    for name, sites in report.experts.items():
        figures |= {f"Experts by category: {name}, {site}": expert_figure(usages) for site, usages in sites.items()}
    return figures


def sweep_figures(report: Report) -> dict[str, PlotlyDict]:
    """Return speed and tau over each number that lanes differ in, by title."""
    figures = {}
    for setting in SWEPT_NUMBERS:
        if sweeps := find_sweeps(report, setting):
            title = setting.replace("_", "-")
            figures[f"Speed over {title}"] = sweep_figure(
                sweeps, title, "tokens per second", lambda summary: summary.tokens_per_second
            )
            figures[f"Tokens per target pass over {title}"] = sweep_figure(
                sweeps, title, "tau", lambda summary: summary.tau
            )
    return figures


def category_figure(report: Report, label: str, read: Callable[[Summary], float | None]) -> PlotlyDict:
    """Draw one number as bars: categories along x, the overall last, one bar a lane."""
    categories = [*report.categories, "overall"]
    bars = []
    for place, (name, lane) in enumerate(report.lanes.items()):
        summaries = [*(lane.by_category[category] for category in report.categories), lane.overall]
        bars.append(
            {
                "type": "bar",
                "name": name,
                "x": categories,
                "y": [read(summary) for summary in summaries],
                "customdata": [summary.n_questions for summary in summaries],
                "marker": {"color": _cycled(COLOURS, place), "pattern": _pattern(place)},
                "hovertemplate": f"%{{x}}: {label} %{{y:.2f}}, %{{customdata}} questions{NAME}",
            }
        )
    axes = {"xaxis": make_axis("", showgrid=False), "yaxis": make_axis(label, rangemode="tozero")}
    return {"data": bars, "layout": _frame(barmode="group", **axes)}


def depth_figure(report: Report) -> PlotlyDict:
    """Draw acceptance by depth as one line a lane that drafts."""
    lines = []
    for place, (name, lane) in enumerate(report.lanes.items()):
        rates = lane.overall.acceptance_by_depth
        if rates:
            lines.append(_line(name, place, list(rates), list(rates.values()), "depth %{x}: accepted in %{y:.1%}"))
    axes = {
        "xaxis": make_axis("depth", dtick=1, showgrid=False),
        "yaxis": make_axis("accepted", range=[0, 1], tickformat=".0%"),
    }
    return {"data": lines, "layout": _frame(**axes)}


def depth_map_figure(lane: LaneReport) -> PlotlyDict:
    """Draw one lane's acceptance as a map, a row a category and a column a depth; empty where nothing was judged."""
    summaries = {**lane.by_category, "overall": lane.overall}
    depths = sorted(lane.overall.acceptance_by_depth)
    rows = [[summary.acceptance_by_depth.get(depth) for depth in depths] for summary in summaries.values()]
    trace = {
        "type": "heatmap",
        "x": [str(depth) for depth in depths],
        "y": list(summaries),
        "z": rows,
        "colorscale": PROBABILITY_SCALE,
        "zmin": 0,
        "zmax": 1,
        "text": [["" if rate is None else f"{rate:.0%}" for rate in row] for row in rows],
        "texttemplate": "%{text}",
        "hovertemplate": "%{y}, depth %{x}: accepted in %{z:.1%}<extra></extra>",
    }
    axes = {
        "xaxis": make_axis("depth", showgrid=False, type="category"),
        "yaxis": make_axis("", showgrid=False, autorange="reversed", automargin=True),
    }
    return {"data": [trace], "layout": _frame(**axes)}


def find_sweeps(report: Report, setting: str) -> dict[str, list[LaneReport]]:
    """Return the lanes that differ in one numeric setting alone, ascending, by the name of what they share."""
    sweeps: dict[str, list[LaneReport]] = {}
    for lane in report.lanes.values():
        if setting in lane.head.asked:
            others = (f"{name}={value}" for name, value in lane.head.asked.items() if name != setting)
            sweeps.setdefault(" ".join([lane.head.stem, *others]), []).append(lane)
    ordered = {name: sorted(lanes, key=lambda lane: lane.head.asked[setting]) for name, lanes in sweeps.items()}
    return {name: lanes for name, lanes in ordered.items() if len(lanes) > 1}


def sweep_figure(
    sweeps: dict[str, list[LaneReport]], setting: str, label: str, read: Callable[[Summary], float | None]
) -> PlotlyDict:
    """Draw one number over the values of a setting, one line a sweep."""
    name_of = setting.replace("-", "_")
    lines = [
        _line(
            name,
            place,
            [lane.head.asked[name_of] for lane in lanes],
            [read(lane.overall) for lane in lanes],
            f"{setting} %{{x}}: {label} %{{y:.2f}}",
        )
        for place, (name, lanes) in enumerate(sweeps.items())
    ]
    values = sorted({value for line in lines for value in line["x"]})
    axes = {
        "xaxis": make_axis(setting, showgrid=False, tickvals=values),
        "yaxis": make_axis(label, rangemode="tozero"),
    }
    return {"data": lines, "layout": _frame(**axes)}


def miss_figure(report: Report) -> PlotlyDict:
    """Draw the misses of each lane in percent of its passes, stacked by reason."""
    by_reason = {reason: [lane.by["reason"][reason] for lane in report.misses.values()] for reason in MISS_REASONS}
    bars = [
        {
            "type": "bar",
            "name": REASON_LABELS[reason],
            "x": list(report.misses),
            "y": [100 * count.n_misses / max(1, count.n_passes) for count in counts],
            "customdata": [count.n_misses for count in counts],
            "marker": {"color": _cycled(COLOURS, place), "pattern": _pattern(place)},
            "hovertemplate": "%{customdata} misses, %{y:.1f} % of the passes" + NAME,
        }
        for place, (reason, counts) in enumerate(by_reason.items())
    ]
    axes = {"xaxis": make_axis("", showgrid=False), "yaxis": make_axis("percent of passes", rangemode="tozero")}
    return {"data": bars, "layout": _frame(barmode="stack", **axes)}


def expert_figure(usages: dict[str, ExpertUsage]) -> PlotlyDict:
    """Draw each category's use of the experts of one site as a map; the row's label says how many work."""
    experts = [str(expert) for expert in range(len(next(iter(usages.values())).weights))]
    trace = {
        "type": "heatmap",
        "x": experts,
        "y": [f"{category} ({usage.n_effective:.1f})" for category, usage in usages.items()],
        "z": [[round(share, 4) for share in usage.shares] for usage in usages.values()],
        "colorscale": PROBABILITY_SCALE,
        "zmin": 0,
        "texttemplate": "%{z:.0%}",
        "customdata": [[usage.n_routings] * len(experts) for usage in usages.values()],
        "hovertemplate": "%{y}, expert %{x}: %{z:.1%} of %{customdata} routings<extra></extra>",
    }
    axes = {
        "xaxis": make_axis("expert", showgrid=False, type="category"),
        "yaxis": make_axis("category (experts at work)", showgrid=False, autorange="reversed", automargin=True),
    }
    return {"data": [trace], "layout": _frame(**axes)}


def make_page(figures: dict[str, PlotlyDict], title: str = "SpecViz bench") -> str:
    """Return one HTML page with all figures by title; plotly itself is in it, so that it opens without a network.

    Raises ValueError where plotly refuses a figure.
    """
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<style>body { font-family: system-ui, sans-serif; max-width: 75rem; margin: 1rem auto; padding: 0 1rem }",
            "h2 { font-size: 1.1rem; margin: 2rem 0 0 }</style>",
            f"<script>{inline_plotly()}</script></head><body>",
            *_sections(figures),
            "</body></html>",
        ]
    )


def _sections(figures: dict[str, PlotlyDict]) -> Iterator[str]:
    for place, (title, figure) in enumerate(figures.items()):
        drawn = Figure(figure).update_layout(template="none")
        plot = drawn.to_html(full_html=False, include_plotlyjs=False, default_height="28rem", div_id=f"plot-{place}")
        yield f"<h2>{html.escape(title)}</h2>\n{plot}"


def _line(name: str, place: int, x: list[Any], y: list[Any], hover: str) -> PlotlyDict:
    colour = _cycled(COLOURS, place)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "symbol": _cycled(SYMBOLS, place), "size": 9},
        "hovertemplate": hover + NAME,
    }


def _frame(**layout: Any) -> PlotlyDict:
    """Return a light layout whose legend is always there and can hide lanes."""
    frame: PlotlyDict = make_frame("light", margin=MARGIN, **layout)["layout"]
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    return frame | {"showlegend": True, "legend": legend, "dragmode": "zoom"}


def _pattern(place: int) -> PlotlyDict:
    return {"shape": _cycled(PATTERNS, place), "fillmode": "overlay", "size": 6, "solidity": 0.2}


def _cycled(values: Sequence[str], place: int) -> str:
    return values[place % len(values)]
