"""Anchors, the rows they serve, the rows that route them, and what their added rows see: cases written by hand."""

import torch

from specviz.training.added_rows import Anchors, Texts, added_mask, text_blocks
from specviz.training.anchors import AnchorConfig, AnchorPlan, routing_places, sample_anchors, serve_rows
from specviz.training.seeds import derive_draws
from specviz.training.unroll import Span


def test_a_row_is_served_by_its_latest_anchor_inside_the_window():
    assert serve_rows(torch.tensor([1, 5]), 7, window=3).tolist() == [-1, 0, 0, 0, -1, 1, 1]
    assert serve_rows(torch.tensor([0, 2]), 5, window=4, first=7).tolist() == [7, 7, 8, 8, 8]
    assert serve_rows(torch.tensor([], dtype=torch.long), 3, window=4).tolist() == [-1, -1, -1]


def test_every_stride_has_one_anchor_and_every_sequence_its_own():
    spans = [Span(slice(0, 30), slice(0, 20), 9), Span(slice(30, 50), slice(20, 27), 3)]
    plan = sample_anchors(spans, AnchorConfig(stride=4, window=4), derive_draws(range(2), 3))
    first = plan.rows[plan.sequences == 0]
    assert (first // 4).tolist() == [0, 1, 2, 3, 4]
    assert set(plan.serving[:20].tolist()) - {-1} <= set(range(5))
    assert set(plan.serving[20:].tolist()) - {-1} <= set(range(5, len(plan.rows)))
    served = plan.serving >= 0
    own_row = torch.arange(27) - torch.tensor([0] * 20 + [20] * 7)
    assert bool((own_row[served] >= plan.rows[plan.serving[served]]).all())


def test_a_sequence_shorter_than_a_stride_has_one_anchor_anywhere():
    """Guards against a step without any anchor, which no pass can be made of."""
    span = Span(slice(0, 12), slice(0, 5), 6)
    plans = [
        sample_anchors([span], AnchorConfig(stride=8, window=4), derive_draws(range(1), seed)) for seed in range(64)
    ]
    assert {len(plan.rows) for plan in plans} == {1}
    assert {int(plan.rows[0]) for plan in plans} == {0, 1, 2, 3, 4}


def test_an_answer_s_draws_do_not_depend_on_what_else_is_in_the_batch():
    """Guards: processes that share a batch would otherwise draw other anchors than one that has it all."""
    spans = [Span(slice(0, 30), slice(0, 20), 9), Span(slice(30, 50), slice(20, 37), 3)]
    config = AnchorConfig(stride=4, window=4)

    def draw(own: list[int]) -> tuple[list[int], list[int]]:
        """Return the second text's anchors and lags, for a process that has these places of the batch."""
        draws = derive_draws(own, "seed", 7)
        plan = sample_anchors([spans[place] for place in own], config, draws)
        second = plan.sequences == own.index(1)
        return plan.rows[second].tolist(), routing_places(plan, 4, draws)[second].tolist()

    assert draw([0, 1]) == draw([1])


def test_a_contemplate_token_is_routed_by_an_earlier_row_and_the_prefill_by_none():
    plan = AnchorPlan(torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 1, 2, 9, 30]), torch.tensor([]))
    drawn = torch.stack([routing_places(plan, 4, derive_draws(range(2), seed)) for seed in range(64)])
    assert set(drawn[:, 0].tolist()) == {-1}
    assert set(drawn[:, 1].tolist()) == {0}
    assert set(drawn[:, 2].tolist()) == {0, 1}
    assert set(drawn[:, 3].tolist()) == {5, 6, 7, 8}
    assert set(drawn[:, 4].tolist()) == {26, 27, 28, 29}


def test_added_rows_see_soft_rows_their_text_up_to_the_anchor_and_their_group():
    rows = torch.zeros(1, 1, 5, 2)
    texts = Texts([(rows, rows)], (0, 2))  # a text of two tokens, then one of three
    anchors = Anchors(torch.tensor([0, 1]), torch.tensor([0, 1]))
    expected = [
        [1, 1, 0, 0, 0, 0, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 1, 1, 0, 0],
        [1, 0, 0, 1, 1, 0, 0, 0, 1, 0],
        [1, 0, 0, 1, 1, 0, 0, 0, 1, 1],
    ]
    assert added_mask(texts, anchors, 2, n_soft=1, causal=True).int().tolist() == expected
    diagonal = added_mask(texts, anchors, 2, n_soft=1, causal=False).int()
    assert diagonal[:, 6:].tolist() == torch.eye(4, dtype=torch.int).tolist()


def test_a_block_of_a_text_leaves_out_nothing_that_its_rows_see():
    rows = torch.zeros(1, 1, 9, 2)
    texts = Texts([(rows, rows)], (0, 4, 6))  # texts of four, two and three tokens; none stands behind the second
    anchors = Anchors(torch.tensor([0, 0, 2]), torch.tensor([1, 2, 1]))
    mask = added_mask(texts, anchors, 2, n_soft=1, causal=True)
    blocks = text_blocks(texts, anchors, 2, n_soft=1)
    assert [(block.rows, block.columns) for block in blocks] == [
        (slice(0, 4), (slice(0, 1), slice(1, 4), slice(10, 14))),
        (slice(4, 6), (slice(0, 1), slice(7, 9), slice(14, 16))),
    ]
    for block in blocks:
        assert torch.equal(block.of_columns(mask[block.rows], 1).sum(1), mask[block.rows].sum(1))
