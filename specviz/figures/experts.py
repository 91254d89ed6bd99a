"""Expert routing: which experts a step used, and how that changed over a run.

A drafter with mixtures of experts has the sites `con` and `f`; a target that is one has `target.<layer>`.
For the page: bars carry the expert in `x` and `customdata`; maps have experts along one axis, `customdata` per row
is the layer of a target's map, and per column (`meta.steps`) the step index of a history.
"""

from __future__ import annotations

from collections.abc import Sequence

from specviz.figures.frame import PlotlyDict, join_frame, make_axis, make_frame, make_legend_entry
from specviz.figures.palette import ACCEPTED_COLOUR, GREY_COLOUR, SKY_COLOUR, UNVERIFIED_COLOUR, ThemeName
from specviz.sentence import say
from specviz.trace import RoutingTrace, RunTrace, StepTrace

TARGET_PREFIX = "target."
SITE_TITLES = {"con": "[con]", "f": "[f]"}
PROBABILITY_SCALE = [[0.0, "rgba(86,180,233,0.04)"], [0.5, SKY_COLOUR], [1.0, ACCEPTED_COLOUR]]


def list_sites(run: RunTrace) -> list[str]:
    """Return the routing sites of a run in the order of their first use, layers by number."""
    sites = dict.fromkeys(routing.site for step in run.steps for routing in step.routing)
    return sorted(sites, key=_order_site)


def routing_figure(step: StepTrace, *, theme: ThemeName | None = "light", node: int | None = None) -> PlotlyDict:
    """Draw the routing of one step: bars over all experts for each site, those used highlighted with their weights.

    `node` chooses whose routing is shown where a site routes each node; without one, or where the node has none, it is
    the first. Where only the target routes, the figure is a map of layers and experts.
    """
    chosen = _choose_routings(step.routing, node)
    drafter = [routing for routing in chosen if not routing.site.startswith(TARGET_PREFIX)]
    bare = _draw_bars(drafter) if drafter or not chosen else _draw_layers(chosen)
    return bare if theme is None else join_frame(bare, routing_frame(theme))


def routing_history_figure(run: RunTrace, site: str, *, theme: ThemeName | None = "light") -> PlotlyDict:
    """Draw experts by steps for one site: mean probability over the step's routings, with a dot where it was used."""
    by_step = [(step.index, [routing for routing in step.routing if routing.site == site]) for step in run.steps]
    recorded = [(index, routings) for index, routings in by_step if routings]
    n_experts = max((len(routings[0].probabilities) for _, routings in recorded), default=0)
    indices = [index for index, _ in recorded]
    columns = [_average(routings, n_experts) for _, routings in recorded]
    used = [(index, expert) for index, routings in recorded for expert in _list_used(routings)]
    bare: PlotlyDict = {
        "data": [_draw_history(indices, columns, n_experts), _draw_used(used)],
        "layout": {"meta": {"steps": indices, "site": site}},
    }
    return bare if theme is None else join_frame(bare, routing_history_frame(theme))


def routing_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of a step's routing."""
    return make_frame(
        theme,
        [
            make_legend_entry(say("used, with its weight"), ACCEPTED_COLOUR),
            make_legend_entry(say("not used"), GREY_COLOUR),
        ],
        xaxis=make_axis(say("expert"), showgrid=False),
        xaxis2=make_axis(say("expert"), showgrid=False, anchor="y2"),
        coloraxis=_make_colour_axis(),
        bargap=0.25,
    )


def routing_history_frame(theme: ThemeName) -> PlotlyDict:
    """Return the frame of a routing history."""
    return make_frame(
        theme,
        [make_legend_entry(say("used in this step"), UNVERIFIED_COLOUR, "circle")],
        xaxis=make_axis(say("step"), showgrid=False),
        yaxis=make_axis(say("expert"), showgrid=False),
        coloraxis=_make_colour_axis(),
    )


def _choose_routings(routings: Sequence[RoutingTrace], node: int | None) -> list[RoutingTrace]:
    """Return one routing for each site: the node's own, else the site's first."""
    chosen: dict[str, RoutingTrace] = {}
    for routing in routings:
        is_own = node is not None and routing.node == node
        if routing.site not in chosen or (is_own and chosen[routing.site].node != node):
            chosen[routing.site] = routing
    return sorted(chosen.values(), key=lambda routing: _order_site(routing.site))


def _draw_bars(routings: list[RoutingTrace]) -> PlotlyDict:
    layout: PlotlyDict = {"meta": {"sites": [routing.site for routing in routings]}}
    layout |= {f"yaxis{_suffix(i)}": _make_site_axis(routing, i) for i, routing in enumerate(routings)}
    if len(routings) > 1:
        layout["grid"] = {"rows": len(routings), "columns": 1, "pattern": "independent", "ygap": 0.4}
    return {"data": [_draw_site(routing, i) for i, routing in enumerate(routings)], "layout": layout}


def _draw_site(routing: RoutingTrace, place: int) -> PlotlyDict:
    weights = dict(zip(routing.selected, routing.weights, strict=True))
    experts = list(range(len(routing.probabilities)))
    return {
        "type": "bar",
        "name": routing.site,
        "x": experts,
        "y": [round(prob, 4) for prob in routing.probabilities],
        "customdata": experts,
        "text": [f"{weights[expert]:.2f}" if expert in weights else "" for expert in experts],
        "textposition": "outside",
        "textangle": 0,
        "cliponaxis": False,
        "marker": {"color": [ACCEPTED_COLOUR if expert in weights else GREY_COLOUR for expert in experts]},
        "hovertext": [_tell_expert(expert, weights) for expert in experts],
        "hovertemplate": say("expert %{x}: probability %{y:.3f}<br>%{hovertext}<extra></extra>"),
        "xaxis": f"x{_suffix(place)}",
        "yaxis": f"y{_suffix(place)}",
        "showlegend": False,
    }


def _tell_expert(expert: int, weights: dict[int, float]) -> str:
    return say("used with weight {weight}", weight=f"{weights[expert]:.3f}") if expert in weights else say("not used")


def _make_site_axis(routing: RoutingTrace, place: int) -> PlotlyDict:
    where = "" if routing.node is None else f" #{routing.node}"
    title = f"{SITE_TITLES.get(routing.site, routing.site)}{where}"
    return make_axis(title, rangemode="tozero", nticks=4, anchor=f"x{_suffix(place)}")


def _suffix(place: int) -> str:
    return "" if place == 0 else str(place + 1)


def _draw_layers(routings: list[RoutingTrace]) -> PlotlyDict:
    layers = [_layer_of(routing.site) for routing in routings]
    used = [(expert, layer) for routing, layer in zip(routings, layers, strict=True) for expert in routing.selected]
    trace = {
        "type": "heatmap",
        "name": "target",
        "y": layers,
        "z": [[round(prob, 4) for prob in routing.probabilities] for routing in routings],
        "customdata": layers,
        "hovertemplate": say("layer %{y}, expert %{x}: probability %{z:.3f}<extra></extra>"),
        "coloraxis": "coloraxis",
    }
    axis = make_axis(say("layer"), showgrid=False)
    return {"data": [trace, _draw_used(used)], "layout": {"yaxis": axis, "meta": {"legend": []}}}


def _draw_history(indices: list[int], columns: list[list[float]], n_experts: int) -> PlotlyDict:
    return {
        "type": "heatmap",
        "name": "probability",
        "x": indices,
        "y": list(range(n_experts)),
        "z": [[column[expert] for column in columns] for expert in range(n_experts)],
        "hovertemplate": say("step %{x}, expert %{y}: mean probability %{z:.3f}<extra></extra>"),
        "coloraxis": "coloraxis",
    }


def _draw_used(places: list[tuple[int, int]]) -> PlotlyDict:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "used",
        "x": [x for x, _ in places],
        "y": [y for _, y in places],
        "marker": {"symbol": "circle", "size": 5, "color": UNVERIFIED_COLOUR},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _average(routings: Sequence[RoutingTrace], n_experts: int) -> list[float]:
    return [round(sum(r.probabilities[e] for r in routings) / len(routings), 4) for e in range(n_experts)]


def _list_used(routings: Sequence[RoutingTrace]) -> list[int]:
    return sorted({expert for routing in routings for expert in routing.selected})


def _layer_of(site: str) -> int:
    return int(site.removeprefix(TARGET_PREFIX))


def _order_site(site: str) -> tuple[int, int]:
    if not site.startswith(TARGET_PREFIX):
        return (0, 0 if site == "con" else 1)
    return (1, _layer_of(site))


def _make_colour_axis() -> PlotlyDict:
    return {
        "colorscale": PROBABILITY_SCALE,
        "cmin": 0,
        "showscale": True,
        "colorbar": {"thickness": 8, "title": {"text": ""}, "outlinewidth": 0, "tickfont": {"size": 10}},
    }
