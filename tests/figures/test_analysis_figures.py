"""Figures of the analyses: plotly takes them, and they show the numbers of the analysis."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "analysis"))

from test_mask_proof import flow, proof_step
from test_run_analyses import baseline, prefill, two_steps
from traces import make_run

from specviz import figures
from specviz.analysis.divergence import DepthDivergence
from specviz.analysis.hindsight import look_back
from specviz.analysis.mask_proof import prove_row
from specviz.analysis.misses import MissCounts
from specviz.analysis.race import make_race
from specviz.analysis.token_kind import count_kinds
from specviz.analysis.waterfall import make_waterfall
from specviz.figures.labels import name_row
from specviz.mask_trace import MaskRule, expand_rule

RUN = make_run([prefill(), *two_steps()], baseline=baseline([1, 11, 12, 21, 22]))
MISSES = MissCounts(2, 0, {}, {"word": {"out_of_draft_vocab": 0, "below_top_k": 2, "pruned": 0, "depth_limit": 0}})
LANES = {"EAGLE-3": [DepthDivergence(0, 4, 0.3, 0.1, 0.5)], "ConFu": [DepthDivergence(0, 4, 0.2, 0.1, 0.75)]}

ALL = {
    "race": lambda **theme: figures.race_figure(make_race(RUN), **theme),
    "waterfall": lambda **theme: figures.waterfall_figure(make_waterfall(RUN.steps[1]), **theme),
    "kinds": lambda **theme: figures.kinds_figure(count_kinds(RUN.steps), **theme),
    "misses": lambda **theme: figures.misses_figure(MISSES, **theme),
    "divergence": lambda **theme: figures.divergence_figure(LANES, **theme),
    "hindsight": lambda **theme: figures.hindsight_figure(look_back(RUN), **theme),
    "mask_proof": lambda **theme: figures.mask_proof_figure(prove_row(proof_step(), 2), **theme),
}


@pytest.mark.parametrize("kind", ALL)
def test_plotly_takes_the_figure_in_both_themes(kind):
    for theme in ("light", "dark"):
        drawn = figures.as_figure(ALL[kind](theme=theme))
        assert len(drawn.data) >= 1
    assert kind in figures.figure_frames()["light"] and len(ALL[kind](theme=None)["layout"]) <= 1


def test_lanes_end_with_their_last_token():
    plain, own = figures.race_figure(make_race(RUN))["data"][:2]
    assert (plain["x"][-1], plain["y"][-1]) == (0.5, 5) and (own["x"][-1], own["y"][-1]) == (0.069, 5)


def test_the_visualizers_own_cost_lies_behind_the_step():
    bars = figures.waterfall_figure(make_waterfall(RUN.steps[1]))["data"]
    assert [(*bar["base"], *bar["x"]) for bar in bars] == [(0, 2), (2, 20), (22, 1), (23, 3)]


def test_places_are_named_by_rank_and_the_best_are_marked():
    sent, accepted, star = figures.hindsight_figure(look_back(RUN))["data"][:3]
    assert sent["x"] == ["1", "2", "1.1"] and accepted["y"] == [1, 1, 0] and star["x"] == ["1", "2"]


def test_attention_that_was_not_recorded_has_no_line():
    """Guards: blank lines that read as attention of zero."""
    with_it, without = (prove_row(proof_step(attention=given), 2) for given in (flow(0.3, 0.2, 0.1, 0.0, 0.4), None))
    assert len(figures.mask_proof_figure(with_it)["data"][0]["y"]) == 4
    assert figures.mask_proof_figure(without)["data"][0]["y"] == ["recorded mask", "mask by its rule"]


def test_a_mask_that_was_not_recorded_has_no_line():
    """Guards an empty line "recorded mask" in the proof of plain decoding, which keeps the rule alone."""
    step = proof_step()
    step.mask = step.mask.model_copy(update={"bits": None, "rows": [], "columns": []})
    trace = figures.mask_proof_figure(prove_row(step, 2))["data"][0]
    assert trace["y"] == ["mask by its rule"]
    assert trace["text"] == [["visible", "visible", "visible", "masked", "visible"]]


def test_rows_and_columns_are_named_by_what_they_hold():
    rule = MaskRule(name="contemplate", prefix=1, parents=[-1], k=1, s=1)
    assert [name_row(column) for column in expand_rule(rule).columns] == ["token␣0", "soft 1", "root #0", "con #0"]
    slots = expand_rule(MaskRule(name="lookahead_causal", prefix=0, parents=[-1], k=2))
    assert [name_row(row) for row in slots.rows] == ["root #0", "slot 1 #0", "slot 2 #0"]


def test_a_leak_stands_out_in_every_line_that_shows_it():
    proof = prove_row(proof_step(attention=flow(0.3, 0.2, 0.1, 1e-9, 0.4)), 2)
    trace = figures.mask_proof_figure(proof)["data"][0]
    assert [line[3] for line in trace["z"]] == [0.0, 0.0, 3.0, 3.0]
    assert "leak" in trace["text"][2][3] and trace["text"][0][3] == "masked"
