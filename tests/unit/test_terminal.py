"""What the terminal says under a run."""

from __future__ import annotations

import gzip

import pytest

from specviz.evaluation.recordings import FOLDER
from specviz.terminal import summary
from specviz.trace import DivergenceTrace, RunTrace, from_json


@pytest.fixture(scope="module")
def run() -> RunTrace:
    recorded = from_json(gzip.decompress(next(FOLDER.glob("*-eagle3.json.gz")).read_bytes()))
    assert isinstance(recorded, RunTrace) and recorded.baseline is not None
    return recorded


def part(run: RunTrace, gap: float, dtype: str) -> RunTrace:
    """Return the run as if it had left its plain lane at token 3, where the two best logits are `gap` apart."""
    place = DivergenceTrace(index=3, token_id=1, piece="a", expected_id=2, expected_piece="b", gap=gap, prob=0.4)
    baseline = run.baseline.model_copy(update={"equal": False, "n_equal": 3, "divergence": place})
    return run.model_copy(update={"baseline": baseline, "model": run.model.model_copy(update={"dtype": dtype})})


def test_a_difference_from_plain_says_how_close_it_was(run):
    """Guards: a lossless method that parts from plain in 16 bits without a word about why."""
    assert "parts from plain" not in summary(run)
    near = summary(part(run, 0.125, "bfloat16"))
    assert "parts from plain at token 3" in near
    assert "the two best logits are 0.125 apart there, a near-tie: in bfloat16 another kernel's rounding" in near
    assert "apart there\n" in summary(part(run, 0.5, "bfloat16")) and "near-tie" not in summary(
        part(run, 0.1, "float32")
    )
