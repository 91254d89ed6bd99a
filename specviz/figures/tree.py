"""The draft tree of a step: root left, one symbol and colour for each status, the accepted path as a thick line.

For the page: `data` begins with the same five traces always: judged edges, edges never judged, accepted path, nodes,
ring of the selected node. The nodes are `data[NODE_TRACE]` and their `customdata` is the node index (`EXTRA_NODE`
for a token that the target added); the ring is `data[SELECTION_TRACE]`, moved by giving it the node's x and y.
The bare figure's hover says the numbers and one fixed sentence for each status, which is small on the wire; the framed
one has the whole sentence of `explain_verdict`. `layout.height` gives every leaf a line, in steps of 120 pixels so
that it seldom changes from step to step; a pane with a height of its own deletes it. Below `layout.meta.min_width`
pixels the labels of neighbouring depths meet: a narrow pane should scroll sideways.
"""

from __future__ import annotations

from specviz.figures.draft_tree import DrawnNode, collect_drawn_nodes
from specviz.figures.explain import explain_token, explain_verdict
from specviz.figures.frame import (
    CLEAR,
    PlotlyDict,
    join_frame,
    make_axis,
    make_font,
    make_frame,
    make_status_entry,
    mark_colour,
)
from specviz.figures.labels import format_prob, wrap_html
from specviz.figures.palette import (
    ACCEPTED_COLOUR,
    GREY_COLOUR,
    SELECTION_COLOUR,
    STATUSES,
    THEMES,
    StatusName,
    ThemeName,
)
from specviz.figures.tree_layout import TreeLayout, lay_out_tree
from specviz.sentence import join_parts, say
from specviz.trace import NodeTrace, StepTrace, TokenTrace

NODE_TRACE = 3
SELECTION_TRACE = 4
LINE_PIXELS = 18
DEPTH_PIXELS = 64
SHALLOW = 4
SPARSE = 8
BRIEF_SENTENCES: dict[StatusName, str] = {
    "root": say("The last committed token; the draft starts here."),
    "accepted": say("The target took the same token here."),
    "rejected": say("Its parent was reached; the target took another token."),
    "unreached": say("Its parent was not reached: never judged."),
    "cut": say("It matched, but the run ended before it."),
    "unverified": say("Taken without the target's word."),
    "correction": say("The target's own token: no drafted one matched."),
    "bonus": say("The target's next token: no draft was left to judge."),
    "plain": say("The target's own next token, without a draft."),
}
ALWAYS_IN_LEGEND: tuple[StatusName, ...] = ("accepted", "rejected", "correction", "bonus", "unreached")


def tree_figure(step: StepTrace, *, theme: ThemeName | None = "light", selected: int | None = None) -> PlotlyDict:
    """Draw a step's draft tree with the token that the target added; bare where `theme` is None.

    `selected` is the index of a node to ring (`EXTRA_NODE` for the added token).
    """
    drawn = collect_drawn_nodes(step)
    layout = lay_out_tree([node.parent_place for node in drawn])
    bare: PlotlyDict = {
        "data": [
            _draw_edges(drawn, layout, judged=True),
            _draw_edges(drawn, layout, judged=False),
            _draw_path(drawn, layout),
            _draw_nodes(drawn, layout) | {"hovertext": [_describe(step, node, brief=theme is None) for node in drawn]},
            _draw_selection(drawn, layout, selected),
        ],
        "layout": {"height": _choose_height(layout.n_lines), "meta": _describe_layout(drawn, layout)},
    }
    return bare if theme is None else join_frame(bare, tree_frame(theme))


def tree_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of the tree."""
    halo = THEMES[theme].background
    hidden = {"showgrid": False, "showticklabels": False, "ticks": ""}
    names: tuple[StatusName, ...] = (*ALWAYS_IN_LEGEND, "cut", "unverified", "plain")
    return make_frame(
        theme,
        [make_status_entry(name) for name in names],
        margin={"l": 32, "r": 64, "t": 8, "b": 8},
        font=make_font(theme) | {"shadow": f"0 0 3px {halo}, 0 0 3px {halo}"},  # labels cross edges
        xaxis=make_axis(say("depth"), dtick=1, ticks="outside", ticklen=10, tickcolor=CLEAR),
        yaxis=make_axis("", autorange="reversed", **hidden),
    )


def _draw_edges(drawn: list[DrawnNode], layout: TreeLayout, *, judged: bool) -> PlotlyDict:
    places = [
        place
        for place, node in enumerate(drawn)
        if node.parent_place >= 0 and (node.status not in ("unreached", "cut")) == judged
    ]
    line = {"color": GREY_COLOUR, "width": 1} | ({} if judged else {"dash": "dash"})
    return _draw_line([(drawn[place].parent_place, place) for place in places], layout, line)


def _draw_path(drawn: list[DrawnNode], layout: TreeLayout) -> PlotlyDict:
    taken = ("accepted", "unverified", "correction", "bonus", "plain")
    pairs = [(node.parent_place, place) for place, node in enumerate(drawn) if node.status in taken]
    line = {"color": ACCEPTED_COLOUR, "width": 4}
    return _draw_line([pair for pair in pairs if pair[0] >= 0], layout, line)


def _draw_line(pairs: list[tuple[int, int]], layout: TreeLayout, line: PlotlyDict) -> PlotlyDict:
    x: list[int | None] = []
    y: list[float | None] = []
    for start, end in pairs:
        x += [layout.depths[start], layout.depths[end], None]
        y += [layout.lines[start], layout.lines[end], None]
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip", "showlegend": False}


def _draw_nodes(drawn: list[DrawnNode], layout: TreeLayout) -> PlotlyDict:
    parents = {node.parent_place for node in drawn}
    is_sparse = layout.n_lines <= SPARSE
    limit = 9 if is_sparse or max(layout.depths, default=0) <= SHALLOW else 6
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": layout.depths,
        "y": layout.lines,
        "text": [node.label(limit) for node in drawn],
        "textposition": [_place_label(i in parents, layout.depths[i], is_sparse) for i in range(len(drawn))],
        "textfont": {"size": 11},
        "customdata": [node.idx for node in drawn],
        "hovertemplate": "<b>%{text}</b> %{hovertext}<extra></extra>",
        "marker": {
            "symbol": [STATUSES[node.status].symbol for node in drawn],
            "color": [mark_colour(node.status) for node in drawn],
            "size": [_choose_size(node) for node in drawn],
            "line": {"width": 0},
            "opacity": 1,
        },
        "cliponaxis": False,
        "showlegend": False,
    }


def _draw_selection(drawn: list[DrawnNode], layout: TreeLayout, selected: int | None) -> PlotlyDict:
    places = [place for place, node in enumerate(drawn) if selected is not None and node.idx == selected]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [layout.depths[place] for place in places],
        "y": [layout.lines[place] for place in places],
        "marker": {"symbol": "circle-open", "size": 26, "color": SELECTION_COLOUR, "line": {"width": 3}},
        "hoverinfo": "skip",
        "cliponaxis": False,
        "showlegend": False,
    }


def _place_label(is_parent: bool, depth: int, is_sparse: bool) -> str:
    """Put labels of leaves to the right, and of inner nodes where no label of another line can be.

    In a sparse tree that is above and below in turn (the labels of a chain would meet on a narrow screen), else left.
    """
    if not is_parent:
        return "middle right"
    if depth == 0 or is_sparse:
        return "bottom center" if depth % 2 else "top center"
    return "middle left"


def _choose_size(node: DrawnNode) -> int:
    if node.draft_prob is None:
        return 12
    return round(7 + 9 * node.draft_prob**0.5)


def _choose_height(n_lines: int) -> int:
    needed = 120 + LINE_PIXELS * n_lines
    return max(240, -(-needed // 120) * 120)


def _describe_layout(drawn: list[DrawnNode], layout: TreeLayout) -> PlotlyDict:
    min_width = 96 + DEPTH_PIXELS * max(layout.depths, default=0)
    return {"legend": _name_statuses(drawn), "min_width": min_width}


def _name_statuses(drawn: list[DrawnNode]) -> list[str]:
    """Return the legend's statuses: the usual ones always, so that the picture does not move between steps."""
    present = {node.status for node in drawn}
    if len(drawn) <= 2 and "plain" in present:
        return [STATUSES["plain"].label]
    return [STATUSES[name].label for name in STATUSES if name in ALWAYS_IN_LEGEND or name in present]


def _describe(step: StepTrace, node: DrawnNode, *, brief: bool) -> str:
    lines: list[str] = [f"{STATUSES[node.status].glyph} ".lstrip() + STATUSES[node.status].label]
    if isinstance(node.source, TokenTrace):
        sentence = BRIEF_SENTENCES[node.status] if brief else explain_token(node.source)
    else:
        sentence = BRIEF_SENTENCES[node.status] if brief else explain_verdict(step, node.source)
        lines += [] if node.status == "root" else [_list_numbers(node.source)]
    return join_parts("<br>", [*lines, wrap_html(sentence)])


def _list_numbers(node: NodeTrace) -> str:
    rank = say("unknown") if node.target_rank is None else str(node.target_rank + 1)
    score = "" if node.score is None else say(" · score {score}", score=f"{node.score:.2f}")
    return say(
        "draft {draft} · target {target} · rank {rank}{score}",
        draft=format_prob(node.draft_prob),
        target=format_prob(node.target_prob),
        rank=rank,
        score=score,
    )
