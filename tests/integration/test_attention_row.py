"""The attention that really flowed, of one row of each pass: where the mask hides a column it is exactly zero."""

import pytest
import torch

from specviz.analysis.mask_proof import prove_row
from specviz.decoding.engine import Engine
from specviz.errors import SpecVizError
from specviz.settings import make_settings
from specviz.target import attention
from tests.kit import tiny_engine, tiny_target


@pytest.fixture(scope="module")
def engine() -> Engine:
    return tiny_engine(tiny_target())


def run(engine: Engine, **fields):
    settings = make_settings(**{"model": "tiny", "max_new_tokens": 8, "raw": True} | fields)
    return engine.run("some words before", settings)


@pytest.mark.parametrize(
    "fields",
    [
        {"method": "lookahead", "k": 2, "candidates": 3, "attention_row": 3},
        {"method": "lookahead", "k": 2, "attention_row": 1023},
        {"method": "confu", "nodes": 6, "attention_row": 8},
        {"method": "eagle3", "nodes": 6, "attention_row": 2},
    ],
    ids=str,
)
def test_no_weight_flows_where_the_mask_hides(engine, fields):
    steps = [step for step in run(engine, **fields).steps if step.index > 0]
    assert steps
    for step in steps:
        seen, row = step.attention, min(fields["attention_row"], step.n_rows - 1)
        assert seen["row"] == row and seen["error"] < 1e-3
        proof = prove_row(step, row)
        assert proof.leaks == () and not proof.differs
        masked = [cell for cell in proof.cells if not cell.recorded]
        assert masked and all(cell.largest == 0 for cell in masked)
        assert all(cell.largest > 0 for cell in proof.cells if cell.recorded)
        assert sum(seen["mean"]) == pytest.approx(1, abs=0.01)


def test_recording_attention_changes_no_token(engine):
    fields = {"method": "lookahead", "k": 2}
    one, other = run(engine, **fields), run(engine, **fields, attention_row=0)
    assert [token.token_id for token in one.answer] == [token.token_id for token in other.answer]
    assert all(step.attention is None for step in one.steps) and other.steps[0].attention is None


def test_a_kernel_that_ignores_its_mask_is_found_out(engine, monkeypatch):
    """The weights are computed again under the mask; an output that they do not give shows a leak."""
    whole = attention.F.scaled_dot_product_attention

    def leaky(query, key, value, attn_mask=None, **options):
        return whole(query, key, value, attn_mask=torch.ones_like(attn_mask), **options)

    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", leaky)
    steps = run(engine, method="lookahead", k=2, attention_row=0).steps[1:]
    assert max(step.attention["error"] for step in steps) > 0.05


def test_nothing_is_observed_outside():
    with attention.probed(None) as probe:
        assert probe is None
    with pytest.raises(SpecVizError, match="record level full"):
        make_settings(method="plain", record="light", attention_row=1)
