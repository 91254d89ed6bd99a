"""Rows of a batch beside each other."""

from __future__ import annotations

import pytest
from traces import make_run, make_step, make_token

from specviz.analysis.rows import compare_rows, find_row, list_rows, name_prompts
from specviz.trace import BatchTrace, RunTrace


def make_row(*pieces: str) -> RunTrace:
    prompt = [make_token(piece, "prompt", token_id=sum(map(ord, piece)), step=None) for piece in pieces]
    return make_run([make_step([make_token("x", "target")], index=0)], prompt=prompt)


SKY, SEA, SUN = (make_row("<user>", f"Why is {name}", "?", "</user>") for name in ("the sky blue", "the sea", "it hot"))
BATCH = BatchTrace(batch=[SEA, SUN, SKY.model_copy()])


def test_a_run_is_compared_with_the_row_of_its_prompt():
    assert find_row(SKY, BATCH.batch) == 2
    assert compare_rows(SKY, BATCH).same_prompt
    assert not compare_rows(SKY, BATCH, right_row=0).same_prompt
    assert compare_rows(BATCH, SKY, left_row=2).same_prompt


def test_a_row_is_not_compared_with_itself():
    assert find_row(SEA, BATCH.batch) == 1
    assert find_row(SKY, [SKY]) == 0


def test_a_row_that_a_trace_lacks_is_an_error():
    with pytest.raises(IndexError):
        compare_rows(SKY, BATCH, right_row=3)


def test_prompts_are_named_by_what_they_do_not_share():
    assert name_prompts(list_rows(BATCH)) == ["Why is the sea", "Why is it hot", "Why is the sky blue"]
