"""Figures of a whole run; every number is that of `metrics.py` or a step's own record."""

from __future__ import annotations

from specviz.figures.frame import PlotlyDict, join_frame, make_axis, make_frame
from specviz.figures.palette import (
    ACCEPTED_COLOUR,
    BONUS_COLOUR,
    CORRECTION_COLOUR,
    GREY_COLOUR,
    SELECTION_COLOUR,
    SKY_COLOUR,
    UNVERIFIED_COLOUR,
    ThemeName,
)
from specviz.metrics import JUDGED, acceptance_by_depth
from specviz.sentence import say
from specviz.trace import RunTrace, StepTrace

# the parts of a step and of its time: name, colour, pattern of the bar as the second cue
TOKEN_PARTS = (
    ("draft", ACCEPTED_COLOUR, ""),
    ("unverified", UNVERIFIED_COLOUR, "x"),
    ("correction", CORRECTION_COLOUR, "/"),
    ("bonus", BONUS_COLOUR, "."),
    ("target", GREY_COLOUR, ""),
)
TIME_PARTS = (
    ("draft", SKY_COLOUR, ""),
    ("verify", ACCEPTED_COLOUR, "/"),
    ("commit", BONUS_COLOUR, "."),
    ("record", GREY_COLOUR, "x"),
)

TOKEN_LABELS = {
    "draft": say("accepted drafts"),
    "unverified": say("unverified"),
    "correction": say("correction"),
    "bonus": say("bonus"),
    "target": say("the target's own"),
}
TOKEN_HOVER = say("step %{x}: %{y} %{data.name}<extra></extra>")
TIME_HOVER = say("step %{x}: %{data.name} %{y:.1f} ms<extra></extra>")
TIME_LABELS = {"draft": say("draft"), "verify": say("verify"), "commit": say("commit"), "record": say("record")}


def acceptance_figure(run: RunTrace, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw acceptance by depth: steps with an accepted node there over steps with a judged one."""
    passes = [step for step in run.steps if step.index > 0]
    rates = acceptance_by_depth(passes)
    trace = {
        "type": "bar",
        "x": [int(depth) for depth in rates],
        "y": [round(rate, 4) for rate in rates.values()],
        "text": [f"{rate:.2f}" for rate in rates.values()],
        "hovertext": [
            say("of {n} steps with a judged node there", n=_count_judged(passes, int(depth))) for depth in rates
        ],
        "hovertemplate": say("depth %{x}: accepted in %{y:.1%}<br>%{hovertext}<extra></extra>"),
        "marker": {"color": ACCEPTED_COLOUR},
        "cliponaxis": False,
        "textposition": "outside",
        "textangle": 0,
        "showlegend": False,
    }
    bare: PlotlyDict = {"data": [trace], "layout": {}}
    return bare if theme is None else join_frame(bare, acceptance_frame(theme))


def tokens_per_pass_figure(run: RunTrace, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw the tokens that each pass committed, stacked by where they came from, and their running mean."""
    passes = [step for step in run.steps if step.index > 0]
    indices = [step.index for step in passes]
    bars = [
        _stack(
            TOKEN_LABELS[name], colour, pattern, indices, [_count_source(step, name) for step in passes], TOKEN_HOVER
        )
        for name, colour, pattern in TOKEN_PARTS
        if any(_count_source(step, name) for step in passes)
    ]
    most = max((len(step.committed) for step in passes), default=1)
    bare: PlotlyDict = {
        "data": [*bars, _draw_running_mean(passes)],
        "layout": {"yaxis": make_axis(say("tokens committed"), rangemode="tozero", dtick=max(1, -(-most // 6)))},
    }
    return bare if theme is None else join_frame(bare, tokens_per_pass_frame(theme))


def times_figure(run: RunTrace, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw the milliseconds of each step, stacked: draft, verify, commit, and the recording's own cost."""
    indices = [step.index for step in run.steps]
    bars = [
        _stack(
            TIME_LABELS[name],
            colour,
            pattern,
            indices,
            [round(getattr(step.times_ms, name), 3) for step in run.steps],
            TIME_HOVER,
        )
        for name, colour, pattern in TIME_PARTS
    ]
    bare: PlotlyDict = {"data": bars, "layout": {}}
    return bare if theme is None else join_frame(bare, times_frame(theme))


def acceptance_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of acceptance by depth."""
    return make_frame(
        theme,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis=make_axis(say("depth"), dtick=1, showgrid=False),
        yaxis=make_axis(say("share accepted"), range=[0, 1], tickformat=".0%"),
    )


def tokens_per_pass_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of tokens per pass."""
    return make_frame(
        theme,
        barmode="stack",
        bargap=0.1,
        xaxis=make_axis(say("step"), showgrid=False),
    )


def times_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of times per step."""
    return make_frame(
        theme,
        barmode="stack",
        bargap=0.1,
        xaxis=make_axis(say("step (0 is the prefill)"), showgrid=False),
        yaxis=make_axis(say("milliseconds"), rangemode="tozero"),
    )


def _stack(name: str, colour: str, pattern: str, x: list[int], y: list[float], hover: str) -> PlotlyDict:
    return {
        "type": "bar",
        "name": name,
        "x": x,
        "y": y,
        "customdata": x,
        "marker": {"color": colour, "line": {"width": 0}, "pattern": make_pattern(pattern)},
        "hovertemplate": hover,
    }


def make_pattern(shape: str) -> PlotlyDict:
    """Return the pattern of a bar, which is its second cue beside the colour."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.7)", "size": 6, "solidity": 0.2}


def _draw_running_mean(passes: list[StepTrace]) -> PlotlyDict:
    counts = [len(step.committed) for step in passes]
    means = [round(sum(counts[: i + 1]) / (i + 1), 3) for i in range(len(counts))]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": say("mean so far"),
        "x": [step.index for step in passes],
        "y": means,
        "line": {"color": SELECTION_COLOUR, "width": 3, "dash": "dash"},
        "hovertemplate": say("mean up to step %{x}: %{y:.2f}<extra></extra>"),
    }


def _count_source(step: StepTrace, source: str) -> int:
    return sum(token.source == source for token in step.committed)


def _count_judged(passes: list[StepTrace], depth: int) -> int:
    return sum(any(node.depth == depth and node.status in JUDGED for node in step.nodes) for step in passes)
