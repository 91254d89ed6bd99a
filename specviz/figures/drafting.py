"""Figures for those who debug drafters: where drafts hit, why they miss, how far draft and target lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specviz.analysis.divergence import DepthDivergence
from specviz.analysis.hindsight import Hindsight, Place
from specviz.analysis.misses import MISS_REASONS, MissCounts
from specviz.analysis.token_kind import TOKEN_KINDS, KindCount, TokenKind
from specviz.figures.frame import PlotlyDict, join_frame, make_axis, make_frame
from specviz.figures.palette import (
    ACCEPTED_COLOUR,
    BONUS_COLOUR,
    CORRECTION_COLOUR,
    GREY_COLOUR,
    REJECTED_COLOUR,
    SKY_COLOUR,
    ThemeName,
)
from specviz.figures.runs import make_pattern
from specviz.sentence import say
from specviz.trace import MissReason

REASON_LABELS: dict[MissReason, str] = {
    "out_of_draft_vocab": say("outside the draft vocabulary"),
    "below_top_k": say("below the top k"),
    "pruned": say("pruned"),
    "depth_limit": say("too deep"),
}
KIND_LABELS: dict[TokenKind, str] = {
    "word": say("word"),
    "number": say("number"),
    "code": say("code"),
    "white space": say("white space"),
}
_KIND_LOOKS: dict[TokenKind, tuple[str, str]] = {
    "word": (ACCEPTED_COLOUR, ""),
    "number": (CORRECTION_COLOUR, "/"),
    "code": (BONUS_COLOUR, "."),
    "white space": (GREY_COLOUR, "x"),
}
_LINES = ((ACCEPTED_COLOUR, "solid", "circle"), (REJECTED_COLOUR, "dash", "diamond"))
N_PLACES = 24  # places of the tree that are drawn; the others are the least often sent


def kinds_figure(counts: Mapping[TokenKind, KindCount], *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw the share of judged tokens of each kind that a draft had right."""
    rates = [counts[kind].rate for kind in TOKEN_KINDS]
    trace = {
        "type": "bar",
        "x": [KIND_LABELS[kind] for kind in TOKEN_KINDS],
        "y": [None if rate is None else round(rate, 4) for rate in rates],
        "text": [say("{n} of {all}", n=counts[kind].n_accepted, all=counts[kind].n_judged) for kind in TOKEN_KINDS],
        "textposition": "outside",
        "textangle": 0,
        "cliponaxis": False,
        "hovertemplate": say("%{x}: accepted %{text}, %{y:.0%}<extra></extra>"),
        "marker": {"color": [_KIND_LOOKS[kind][0] for kind in TOKEN_KINDS]},
        "showlegend": False,
    }
    bare: PlotlyDict = {"data": [trace], "layout": {}}
    return bare if theme is None else join_frame(bare, kinds_frame(theme))


def misses_figure(counts: MissCounts, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw why the target's token was not in the tree, stacked by the kind of that token."""
    labels = [REASON_LABELS[reason] for reason in MISS_REASONS]
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": KIND_LABELS[kind],
            "y": labels,
            "x": [counts.by_kind[kind][reason] for reason in MISS_REASONS],
            "marker": {"color": colour, "pattern": make_pattern(pattern)},
            "hovertemplate": say("%{y}: %{x} × %{data.name}<extra></extra>"),
        }
        for kind, (colour, pattern) in _KIND_LOOKS.items()
        if kind in counts.by_kind
    ]
    bare: PlotlyDict = {"data": bars, "layout": {}}
    return bare if theme is None else join_frame(bare, misses_frame(theme))


def divergence_figure(
    lanes: Mapping[str, Sequence[DepthDivergence]], *, theme: ThemeName | None = "light"
) -> PlotlyDict:
    """Draw KL(target || draft) by depth, one line a lane (two at most)."""
    lines = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [point.depth for point in points],
            "y": [round(point.kl, 4) for point in points],
            "customdata": [[point.n_nodes, round(point.agree, 3), round(point.outside, 4)] for point in points],
            "line": {"color": colour, "width": 3, "dash": dash},
            "marker": {"color": colour, "size": 9, "symbol": symbol},
            "hovertemplate": say(
                "%{data.name}, depth %{x}: %{y:.2f} nats over %{customdata[0]} nodes<br>same favourite at "
                "%{customdata[1]:.0%}; %{customdata[2]:.1%} of the target outside the draft vocabulary<extra></extra>"
            ),
        }
        for (name, points), (colour, dash, symbol) in zip(lanes.items(), _LINES, strict=False)
    ]
    bare: PlotlyDict = {"data": lines, "layout": {}}
    return bare if theme is None else join_frame(bare, divergence_frame(theme))


def hindsight_figure(found: Hindsight, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw, for the places of the tree that were sent most, how often each was sent and how often it paid."""
    counts = sorted(found.counts, key=lambda count: (-count.n_sent, len(count.place), count.place))[:N_PLACES]
    labels = [name_place(count.place) for count in counts]
    best = set(found.best)
    bars = [
        _pay_bar(
            say("sent, not accepted"), labels, [count.n_sent - count.n_accepted for count in counts], SKY_COLOUR, "/"
        ),
        _pay_bar(say("accepted"), labels, [count.n_accepted for count in counts], ACCEPTED_COLOUR, ""),
    ]
    marks = [label for label, count in zip(labels, counts, strict=True) if count.place in best]
    star = {
        "type": "scatter",
        "mode": "markers",
        "name": say("in the best tree"),
        "x": marks,
        "y": [count.n_sent for count in counts if count.place in best],
        "marker": {"symbol": "star", "size": 11, "color": BONUS_COLOUR},
        "hovertemplate": say("%{x}: in the best fixed tree of this run<extra></extra>"),
    }
    bare: PlotlyDict = {"data": [*bars, star], "layout": {}}
    return bare if theme is None else join_frame(bare, hindsight_frame(theme))


def name_place(place: Place) -> str:
    """Name a place of the tree by the ranks that lead to it: `1.2` is the second child of the favourite."""
    return ".".join(str(rank + 1) for rank in place) or say("root")


def kinds_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of acceptance by kind of token."""
    return make_frame(
        theme,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis=make_axis(say("kind of the target's token"), showgrid=False),
        yaxis=make_axis(say("share accepted"), range=[0, 1], tickformat=".0%"),
    )


def misses_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of the reasons of misses."""
    return make_frame(
        theme,
        showlegend=True,
        barmode="stack",
        bargap=0.25,
        xaxis=make_axis(say("passes"), rangemode="tozero"),
        yaxis=make_axis("", autorange="reversed", showgrid=False),
    )


def divergence_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of divergence by depth."""
    return make_frame(
        theme,
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis=make_axis(say("depth in the tree (0 is behind the root)"), dtick=1, rangemode="nonnegative"),
        yaxis=make_axis(say("KL(target ‖ draft), nats"), rangemode="tozero"),
    )


def hindsight_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of the places of a tree."""
    return make_frame(
        theme,
        barmode="stack",
        bargap=0.15,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis=make_axis(say("place in the tree: rank at each level"), type="category", showgrid=False, tickangle=-60),
        yaxis=make_axis(say("passes"), rangemode="tozero"),
    )


def _pay_bar(name: str, x: list[str], y: list[int], colour: str, pattern: str) -> PlotlyDict:
    return {
        "type": "bar",
        "name": name,
        "x": x,
        "y": y,
        "marker": {"color": colour, "pattern": make_pattern(pattern)},
        "hovertemplate": say("%{x}: %{y} × %{data.name}<extra></extra>"),
    }
