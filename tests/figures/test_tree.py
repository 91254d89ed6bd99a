"""The tree figure and its layout."""

from __future__ import annotations

import json
import random
import zlib
from itertools import pairwise

import pytest
from figure_steps import make_node, make_random_tree, make_small_tree, make_step, make_token

from specviz import figures
from specviz.figures.palette import STATUSES
from specviz.figures.tree_layout import lay_out_tree


def node_trace(figure: figures.PlotlyDict) -> figures.PlotlyDict:
    return figure["data"][figures.NODE_TRACE]


def random_parents(n_nodes: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [-1, *(rng.randrange(max(0, i - rng.choice((2, 12, 60))), i) for i in range(1, n_nodes))]


@pytest.mark.parametrize("seed", range(20))
def test_no_two_nodes_overlap(seed: int) -> None:
    parents = random_parents(60, seed)
    layout = lay_out_tree(parents)
    by_depth: dict[int, list[float]] = {}
    for depth, line in zip(layout.depths, layout.lines, strict=True):
        by_depth.setdefault(depth, []).append(line)
    for lines in by_depth.values():
        ordered = sorted(lines)
        assert all(second - first >= 0.99 for first, second in pairwise(ordered))


def test_parents_are_centred_and_children_keep_their_order() -> None:
    layout = lay_out_tree([-1, 0, 0, 1, 1, 1])
    assert layout.depths == [0, 1, 1, 2, 2, 2]
    assert layout.lines == [2.0, 1.0, 3.0, 0.0, 1.0, 2.0]
    assert layout.n_lines == 4


def test_one_node_and_no_node() -> None:
    assert lay_out_tree([-1]).lines == [0.0]
    assert lay_out_tree([]).lines == []
    figures.as_figure(figures.tree_figure(make_step([], [], [])))


def test_every_status_has_its_symbol_and_the_added_token_ends_the_path() -> None:
    figure = figures.tree_figure(make_small_tree())
    nodes = node_trace(figure)
    assert nodes["customdata"] == [0, 1, 2, 3, 4, 5, figures.EXTRA_NODE]
    statuses = ["root", "accepted", "rejected", "rejected", "rejected", "unreached", "correction"]
    assert nodes["marker"]["symbol"] == [STATUSES[name].symbol for name in statuses]
    path = figure["data"][2]
    assert path["x"] == [0, 1, None, 1, 2, None]
    unjudged = figure["data"][1]
    assert unjudged["line"]["dash"] == "dash"
    assert unjudged["x"] == [1, 2, None]


def test_plain_decoding_is_a_root_and_a_token() -> None:
    step = make_step([make_node(0, -1, 0, " the", "root")], [], [make_token(" cat", "target")])
    nodes = node_trace(figures.tree_figure(step))
    assert nodes["text"] == ["␣the", "␣cat"]
    assert nodes["x"] == [0, 1]


def test_unverified_tokens_follow_the_targets_own() -> None:
    unknown = {"target_prob": None, "target_rank": None, "target_argmax": None}
    nodes = [
        make_node(0, -1, 0, " the", "root"),
        make_node(1, 0, 1, " cat", "unverified", **unknown),
        make_node(2, 1, 2, " sat", "cut", **unknown),
    ]
    committed = [make_token(" big", "bonus"), make_token(" cat", "unverified", node=1)]
    shown = node_trace(figures.tree_figure(make_step(nodes, [], committed)))
    assert shown["text"] == ["␣the", "␣big", "␣cat", "␣sat"]
    assert shown["x"] == [0, 1, 2, 3]
    assert shown["customdata"] == [0, figures.EXTRA_NODE, 1, 2]


def test_hover_tells_the_numbers_and_the_reason() -> None:
    hover = node_trace(figures.tree_figure(make_small_tree()))["hovertext"]
    assert "draft 0.41 · target 0.62 · rank 1" in hover[1]
    assert "the target took “␣slept”, not “␣sat”" in hover[3].replace("<br>", " ")
    brief = node_trace(figures.tree_figure(make_small_tree(), theme=None))["hovertext"]
    assert "the target took another token" in brief[3].replace("<br>", " ")


def test_marker_size_grows_with_the_draft_probability() -> None:
    step = make_step(
        [make_node(0, -1, 0, "a", "root")]
        + [
            make_node(i, 0, 1, "b", "rejected", draft_prob=prob) for i, prob in enumerate((0.0, 0.1, 0.5, 1.0), start=1)
        ],
        [],
        [],
    )
    sizes = node_trace(figures.tree_figure(step))["marker"]["size"][1:]
    assert sizes == sorted(set(sizes))


def test_the_selected_node_is_ringed() -> None:
    figure = figures.tree_figure(make_small_tree(), selected=5)
    ring, nodes = figure["data"][figures.SELECTION_TRACE], node_trace(figure)
    assert (ring["x"], ring["y"]) == ([nodes["x"][5]], [nodes["y"][5]])
    assert figures.tree_figure(make_small_tree())["data"][figures.SELECTION_TRACE]["x"] == []


def test_a_large_tree_stays_small_on_the_wire() -> None:
    figure = figures.tree_figure(make_random_tree(60, 1), theme=None)
    packed = zlib.compress(json.dumps(figure, separators=(",", ":"), ensure_ascii=False).encode(), 9)
    assert len(packed) <= 2600
