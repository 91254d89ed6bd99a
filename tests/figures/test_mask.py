"""The mask figure: the same cells as the trace, and for each a reason that a person can check."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from figure_steps import WORDS, make_node, make_random_tree, make_small_tree, make_step

from specviz import figures
from specviz.figures import cells
from specviz.figures.frame import CLEAR
from specviz.figures.mask import mark_mask_rows
from specviz.figures.mask_view import view_mask
from specviz.figures.reasons import CODES, FIRST_HIDDEN, REASONS
from specviz.mask_trace import explain_cell, pack_bits
from specviz.trace import MaskRule, MaskTrace, StepTrace, expand_rule

PIECES = [f" w{i}" for i in range(400)]
CHAIN = [-1, 0, 1]
RULES = [
    MaskRule(name="causal", prefix=0, parents=[-1], pending=9),
    MaskRule(name="causal", prefix=5, parents=[-1], pending=3, window=4),
    MaskRule(name="tree", prefix=3, parents=[-1, 0, 0, 1, 2, 2]),
    MaskRule(name="lookahead_diagonal", prefix=2, parents=CHAIN, k=2),
    MaskRule(name="lookahead_causal", prefix=2, parents=CHAIN, k=3, pending=3, window=5),
    MaskRule(name="lookahead_causal", prefix=2, parents=CHAIN, k=2, carriers=[2]),
    MaskRule(name="contemplate", prefix=3, parents=[-1, 0, 0, 1], k=1, s=2),
    MaskRule(name="contemplate", prefix=3, parents=[-1, 0, 0, 1], k=1, s=2, carriers=[0], pending=2),
]


def step_with(mask: MaskTrace) -> StepTrace:
    parents = mask.rule.parents if mask.rule else [-1]
    nodes = [make_node(i, parent, 0, f" n{i}", "rejected" if i else "root") for i, parent in enumerate(parents)]
    return make_step(nodes, [], [], mask)


def cell_trace(figure: figures.PlotlyDict) -> figures.PlotlyDict:
    return next(trace for trace in figure["data"] if trace["name"] == "cells")


def reason_names(mask: MaskTrace) -> list[list[str]]:
    z = cell_trace(figures.mask_figure(step_with(mask), PIECES))["z"]
    return [[REASONS[code].name for code in line] for line in z]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{rule.pending}-{rule.window}")
def test_every_cell_has_the_reason_that_the_rule_gives(rule: MaskRule) -> None:
    full = expand_rule(rule)
    rows = range(len(full.rows))
    expected = [[explain_cell(rule, row, column) for column in range(len(full.columns))] for row in rows]
    assert reason_names(full) == expected
    assert reason_names(MaskTrace(rule=rule)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_cells_equal_the_recorded_matrix(seed: int) -> None:
    """Guards: a mask view that redraws the rule instead of showing what ran."""
    step = make_random_tree(24, seed, prefix=10)
    matrix = step.mask.matrix()
    rng = random.Random(seed)
    for _ in range(20):
        row, column = rng.randrange(len(matrix)), rng.randrange(len(matrix[0]))
        matrix[row][column] = not matrix[row][column]
    broken = step.mask.model_copy(update={"bits": pack_bits(matrix)})
    z = cell_trace(figures.mask_figure(step.model_copy(update={"mask": broken}), PIECES))["z"]
    assert [[code < FIRST_HIDDEN for code in line] for line in z] == matrix


def test_a_leak_is_flagged() -> None:
    rule = MaskRule(name="tree", prefix=1, parents=[-1, 0, 0])
    mask = expand_rule(rule)
    matrix = mask.matrix()
    matrix[2][3] = True  # a sibling branch: column 3 is node 2, row 1 is node 1
    matrix[1][3] = True
    matrix[0][0] = False
    names = reason_names(mask.model_copy(update={"bits": pack_bits(matrix)}))
    assert names[1][3] == "against_rule"
    assert names[0][0] == "hidden_against_rule"
    figure = figures.mask_figure(step_with(mask.model_copy(update={"bits": pack_bits(matrix)})), PIECES)
    assert "against the rule" in [trace["name"] for trace in figure["data"]]


def test_hand_written_reasons_of_diagonal_slots() -> None:
    names = reason_names(expand_rule(MaskRule(name="lookahead_diagonal", prefix=1, parents=[-1, 0], k=2)))
    # columns: x0, root, node 1, slots 1 and 2 of the root, slots 1 and 2 of node 1
    assert names[0] == ["context", "self", "hidden_future", *["hidden_added"] * 4]
    assert names[1] == ["context", "ancestor", "self", *["hidden_added"] * 4]
    assert names[3] == [
        "context",
        "own_node",
        "hidden_future",
        "hidden_diagonal",
        "self",
        "hidden_other_group",
        "hidden_other_group",
    ]
    assert names[4][-2:] == ["self", "hidden_later_slot"]
    assert names[5][1:3] == ["own_node", "own_node"]


def test_hand_written_reasons_of_causal_slots() -> None:
    names = reason_names(expand_rule(MaskRule(name="lookahead_causal", prefix=1, parents=[-1, 0], k=2)))
    assert names[2] == [
        "context",
        "own_node",
        "hidden_future",
        "self",
        "hidden_later_slot",
        *["hidden_other_group"] * 2,
    ]
    assert names[5] == ["context", "own_node", "own_node", *["hidden_other_group"] * 2, "earlier_slot", "self"]


def test_hand_written_reasons_of_a_tree() -> None:
    names = reason_names(expand_rule(MaskRule(name="tree", prefix=1, parents=[-1, 0, 0, 1])))
    assert names[1] == ["context", "ancestor", "self", "hidden_branch", "hidden_future"]
    assert names[3] == ["context", "ancestor", "ancestor", "hidden_branch", "self"]


def test_hand_written_reasons_of_contemplate_rows() -> None:
    names = reason_names(expand_rule(MaskRule(name="contemplate", prefix=1, parents=[-1, 0], k=1, s=1)))
    # columns: x0, soft 1, root, node 1, con of root, con of node 1
    assert names[0] == ["context", "hidden_soft_prompt", "self", "hidden_future", "hidden_added", "hidden_added"]
    assert names[3] == ["context", "soft_prompt", "own_node", "own_node", "hidden_other_group", "self"]


def test_hand_written_reasons_of_slots_with_learned_rows_of_their_own() -> None:
    names = reason_names(expand_rule(MaskRule(name="lookahead_causal", prefix=1, parents=[-1], k=1, s=2)))
    # columns: x0, soft 1 and 2, root, slot 1 of the root
    assert names[0] == ["context", "hidden_soft_prompt", "hidden_soft_prompt", "self", "hidden_added"]
    assert names[1] == ["context", "soft_prompt", "soft_prompt", "own_node", "self"]


def test_a_long_prefix_is_windowed_without_lying() -> None:
    rule = MaskRule(name="tree", prefix=100, parents=[-1, 0])
    for mask in (expand_rule(rule), expand_rule(rule, 30), MaskTrace(rule=rule)):
        earlier, shown = figures.mask_figure(step_with(mask), PIECES, n_recent=10)["data"][:2]
        assert earlier["x"] == ["90 earlier"]
        assert earlier["text"] == [["sees 90 of the 90 earlier columns"]] * 2
        assert len(shown["x"]) == 10 + 2
        assert shown["x"][0].endswith("·90")


def test_a_sliding_window_counts_what_it_sees_of_the_earlier_columns() -> None:
    rule = MaskRule(name="tree", prefix=100, parents=[-1, 0], window=20)
    for mask in (expand_rule(rule), expand_rule(rule, 60), MaskTrace(rule=rule)):
        earlier = figures.mask_figure(step_with(mask), PIECES, n_recent=10)["data"][0]
        assert earlier["text"] == [["sees 9 of the 90 earlier columns"], ["sees 8 of the 90 earlier columns"]]


def test_the_prefill_shows_the_last_rows_and_says_so() -> None:
    mask = MaskTrace(rule=MaskRule(name="causal", prefix=0, parents=[-1], pending=300))
    figure = figures.mask_figure(make_step([], [], [], mask, index=0), PIECES, n_recent=20)
    earlier, shown = figure["data"][:2]
    assert len(shown["y"]) == 21  # 20 prefix rows and the root
    assert earlier["x"] == ["279 earlier"]
    assert earlier["text"][0] == ["sees 279 of the 279 earlier columns"]
    assert "279 earlier rows" in figure["layout"]["annotations"][0]["text"]


def test_labels_are_unique_and_customdata_is_the_node() -> None:
    step = make_random_tree(60, 3)
    shown = cell_trace(figures.mask_figure(step, PIECES))
    assert len(set(shown["x"])) == len(shown["x"])
    assert len(set(shown["y"])) == len(shown["y"])
    assert shown["customdata"] == [row.node for row in step.mask.rows]
    n_rows, n_columns = len(shown["y"]), len(shown["x"])
    by_formula = [shown["customdata"][c - n_columns + n_rows] for c in range(n_columns - n_rows, n_columns)]
    assert by_formula == [column.node for column in step.mask.columns[-n_rows:]]


def test_hover_sentences_are_one_for_each_code() -> None:
    step = make_small_tree()
    text = cell_trace(figures.expand_hover(figures.mask_figure(step, PIECES)))["text"]
    z = cell_trace(figures.mask_figure(step, PIECES))["z"]
    sentences = figures.reason_sentences()
    for line, codes in zip(text, z, strict=True):
        assert [cell.replace("<br>", " ") for cell in line] == [sentences[code] for code in codes]


def test_masked_cells_are_blank() -> None:
    axis = figures.mask_figure(make_small_tree(), PIECES)["layout"]["coloraxis"]
    first_blank = next(edge for edge, colour in axis["colorscale"] if colour == CLEAR)
    width = axis["cmax"] - axis["cmin"]
    assert (CODES["hidden_future"] - 0.5 - axis["cmin"]) / width == pytest.approx(first_blank)
    assert (CODES["against_rule"] + 0.5 - axis["cmin"]) / width == pytest.approx(first_blank)


def test_a_mask_without_a_rule_is_shown_without_a_reason() -> None:
    mask = expand_rule(MaskRule(name="tree", prefix=2, parents=[-1, 0])).model_copy(update={"rule": None})
    assert {name for line in reason_names(mask) for name in line} == {"visible", "hidden"}


def test_bits_that_do_not_fill_the_matrix_are_refused() -> None:
    mask = expand_rule(MaskRule(name="tree", prefix=20, parents=[-1, 0])).model_copy(update={"bits": "AAAA"})
    with pytest.raises(ValueError, match="only 24 bits"):
        view_mask(mask, 48)


def test_selected_rows_are_framed() -> None:
    shapes = mark_mask_rows([-1, 0, 1, 2, 0, 1], 1)
    assert [(shape["y0"], shape["y1"]) for shape in shapes] == [(1.5, 2.5), (4.5, 5.5)]
    assert mark_mask_rows([0, 1], None) == []


def test_large_steps_stay_small_on_the_wire() -> None:
    """Guards: a sentence for every cell, a megabyte a step."""
    step = make_random_tree(60, 1)
    rng = random.Random(0)
    pieces = [" " + rng.choice(WORDS) for _ in range(step.prefix_len)]
    figure = figures.mask_figure(step, pieces, theme=None)
    shown = cell_trace(figure)
    assert (len(shown["y"]), len(shown["x"])) == (120, 184)
    packed = zlib.compress(json.dumps(figure, separators=(",", ":"), ensure_ascii=False).encode(), 9)
    assert len(packed) <= 3000


def test_rows_and_columns_of_a_rule_match_the_trace_model() -> None:
    for rule in RULES:
        full = expand_rule(rule)
        rows = cells.make_rows(rule)
        columns = cells.make_columns(rule, rows)
        assert rows.position.tolist() == [row.position for row in full.rows]
        assert rows.node.tolist() == [-1 if row.node is None else row.node for row in full.rows]
        assert columns.slot.tolist() == [column.slot or 0 for column in full.columns]
