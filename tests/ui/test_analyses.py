"""Answers of the analyses over the page's seam; the numbers themselves are tested with the analyses."""

from __future__ import annotations

import json

import pytest
from fake_engine import FakeEngine, make_run

from specviz.settings import make_settings
from specviz.ui.analyses import ANALYSES
from specviz.ui.questions import answer_question
from specviz.ui.shelf import TraceShelf


def keep(**fields):
    settings = make_settings(**{"max_new_tokens": 20, "k": 3} | fields)
    shelf = TraceShelf()
    run = make_run(0, "hello", settings, FakeEngine().info("scripted"))
    return shelf, shelf.keep(run), run


@pytest.mark.parametrize("kind", ANALYSES)
@pytest.mark.parametrize(
    "fields",
    [{}, {"compare_plain": True}, {"method": "plain", "k": None}, {"selection": "self-consistent"}],
    ids=["verified", "raced", "plain", "lossy"],
)
def test_every_kind_answers_with_plain_values(kind, fields):
    shelf, handle, _ = keep(**fields)
    values = {"run": handle, "row": 0, "other": handle, "step": 2, "change": {"nodes": 2}, "mask_row": 0}
    reply = answer_question({"kind": kind, **values}, shelf)
    assert set(reply) == {"value"}, reply
    json.dumps(reply, allow_nan=False)


@pytest.mark.parametrize(
    "values",
    [{"kind": "step"}, {"kind": "step", "step": 999}, {"kind": "mask_proof", "step": 1, "mask_row": 999},
     {"kind": "what_if", "step": 1, "change": {"magic": 1}}, {"kind": "compare"}],
    ids=str,
)  # fmt: skip
def test_nonsense_is_answered_with_a_sentence(values):
    shelf, handle, _ = keep()
    assert set(answer_question({"run": handle, "row": 0, **values}, shelf)) == {"error"}


def test_a_run_beside_itself_is_equal():
    shelf, handle, run = keep()
    found = answer_question({"kind": "compare", "run": handle, "row": 0, "other": handle}, shelf)["value"]
    assert found["same_prompt"] and found["parting"] is None and found["n_equal"] == len(run.answer)
    assert found["names"] == [
        "Lookahead Attention (this run)",
        "Lookahead Attention (the other)",
    ]
