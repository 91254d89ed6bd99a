"""Real rows never feel the rows that ride along: bit-identical when only the riders' contents change."""

import pytest
import torch

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from tests.kit import Target, tiny_config, tiny_target

PREFIX = list(b"some words before")


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


def real_logits(
    target: Target, layout: RowLayout, added: torch.Tensor | None, soft=None, flip: tuple[int, int] | None = None
) -> torch.Tensor:
    """Return the logits (T, V) of a pass over PREFIX with rows of `layout`; optionally flip one mask cell."""
    cache, masks = target.new_cache(1, 8, soft), MaskBuilder()
    prefill = RowLayout((-1,), n_pending=len(PREFIX))
    for rows, inputs in (
        (prefill, target.embed([PREFIX])),
        (
            layout,
            torch.cat([target.embed([list(range(1, layout.n_real + 1))])] + ([added] if added is not None else []), 1),
        ),
    ):
        mask = masks.build([rows], cache, target.device)
        if rows is layout and flip is not None:
            mask[0, 0, flip[0], flip[1]] ^= True
        hidden = target.forward(inputs, torch.tensor([rows.positions(cache.lengths[0])]), mask, cache)
        if rows is prefill:
            cache.keep([range(len(PREFIX))])
    return target.logits(hidden.last[0, layout.node_rows()])


def random_soft(n_kv_heads: int, seed: int, n_soft: int = 16):
    generator = torch.Generator().manual_seed(seed)
    return [tuple(torch.randn(2, 1, n_kv_heads, n_soft, 16, generator=generator)) for _ in range(8)]


@pytest.mark.parametrize("kind", ["lookahead", "contemplate"])
@pytest.mark.parametrize("parents", [(-1,), (-1, 0, 1, 2), (-1, 0, 0, 1, 1, 2)], ids=str)
def test_slots_with_other_contents_change_no_bit_of_the_real_rows(target: Target, kind: str, parents: tuple[int, ...]):
    """Guards F30."""
    layout = RowLayout(parents, k=2 if kind == "lookahead" else 1, kind=kind)
    soft = [random_soft(2, seed) if kind == "contemplate" else None for seed in (1, 2)]
    one = real_logits(target, layout, torch.randn(1, layout.n_added, 64), soft[0])
    other = real_logits(target, layout, 100 * torch.randn(1, layout.n_added, 64), soft[1])
    assert one.equal(other)
    bare = real_logits(target, RowLayout(parents), None)
    assert (one - bare).abs().max() <= 1e-4


@pytest.mark.parametrize("n_kv_heads", [2, 1])
def test_soft_rows_fit_grouped_query_heads(n_kv_heads: int):
    """Guards F29: soft rows are built with the key/value heads, 4/2 and 4/1."""
    target = tiny_target(tiny_config(num_key_value_heads=n_kv_heads))
    layout = RowLayout((-1, 0), k=1, kind="contemplate")
    added = torch.randn(1, layout.n_added, 64)
    assert real_logits(target, layout, added, random_soft(n_kv_heads, 1)).isfinite().all()


def test_every_cell_of_the_mask_counts(target: Target):
    """Guards F24: opening one forbidden cell and closing one own cell both move the logits."""
    layout = RowLayout((-1, 0, 0))
    base = real_logits(target, layout, None)
    n = len(PREFIX)
    opened = real_logits(target, layout, None, flip=(2, n + 1))  # node 2 sees its sibling
    closed = real_logits(target, layout, None, flip=(1, n))  # node 1 no longer sees the root
    assert (opened[2] - base[2]).abs().max() > 1e-3 and opened[1].allclose(base[1], atol=1e-5)
    assert (closed[1] - base[1]).abs().max() > 1e-3 and closed[2].allclose(base[2], atol=1e-5)


def test_features_are_the_residual_stream_that_enters_the_layers(target: Target):
    """Guards F34: the three features are hs[2], hs[L // 2], hs[L - 3] of `output_hidden_states`."""
    cache, row = target.new_cache(1, 8), RowLayout((-1,), n_pending=len(PREFIX))
    mask = MaskBuilder().build([row], cache, target.device)
    wanted = target.feature_layers if not hasattr(target, "forward_takes_bool") else True
    hidden = target.forward(target.embed([PREFIX]), torch.tensor([row.positions(0)]), mask, cache, wanted)
    states = target.model(input_ids=torch.tensor([PREFIX]), output_hidden_states=True).hidden_states
    expected = torch.cat([states[2], states[4], states[5]], dim=-1)
    assert hidden.features.allclose(expected, atol=1e-5)
