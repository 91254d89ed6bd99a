"""Masks against matrices written by hand: row = query, column = key."""

import pytest
import torch

from specviz.decoding import masks
from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder, ancestors, pass_block
from specviz.mask_trace import MaskRule, expand_rule, explain_cell, pack_bits, unpack_bits
from specviz.target.cache import RowCache


def matrix(text: str) -> torch.Tensor:
    return torch.tensor([[cell == "1" for cell in line.split()] for line in text.strip().splitlines()])


def test_ancestors_of_a_small_tree():
    assert ancestors((-1, 0, 0, 1)).equal(
        matrix("""
        1 . . .
        1 1 . .
        1 . 1 .
        1 1 . 1
        """)
    )


@pytest.mark.parametrize("n_nodes", [1, 2, 60])
def test_ancestors_of_random_trees_are_those_found_by_walking_up(n_nodes: int):
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        parents = [-1] + [int(torch.randint(max(0, i - 4), i, (1,), generator=generator)) for i in range(1, n_nodes)]
        seen = ancestors(parents)
        for node in range(n_nodes):
            walked, at = [], node
            while at >= 0:
                walked.append(at)
                at = parents[at]
            assert seen[node].nonzero().flatten().tolist() == sorted(walked)


def test_a_block_that_comes_again_is_not_built_again_and_old_ones_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    built: list[RowLayout] = []

    def counting(layout: RowLayout) -> torch.Tensor:
        built.append(layout)
        return pass_block(layout)

    monkeypatch.setattr(masks, "pass_block", counting)
    builder, cache = MaskBuilder(), RowCache(0, 1, 8)

    def build(layout: RowLayout) -> None:
        builder.build([layout], cache, torch.device("cpu"))

    first = RowLayout((-1, 0, 0))
    build(first)
    build(RowLayout((-1, 0, 0)))
    assert built == [first]
    for n_pending in range(1, masks.MAX_KEPT_BLOCKS + 1):
        build(RowLayout((-1, 0), n_pending=n_pending))
    build(first)
    assert built.count(first) == 2


def test_plain_prefill_is_the_causal_triangle():
    assert pass_block(RowLayout((-1,), n_pending=3)).equal(
        matrix("""
        1 . .
        1 1 .
        1 1 1
        """)
    )


def test_lookahead_chain_with_causal_slots():
    # rows: root, draft, slots 1-2 of the root, slots 1-2 of the draft
    assert pass_block(RowLayout((-1, 0), k=2, causal_slots=True)).equal(
        matrix("""
        1 . . . . .
        1 1 . . . .
        1 . 1 . . .
        1 . 1 1 . .
        1 1 . . 1 .
        1 1 . . 1 1
        """)
    )


def test_lookahead_chain_with_diagonal_slots_as_the_seed_has_it():
    assert pass_block(RowLayout((-1, 0), k=2, causal_slots=False)).equal(
        matrix("""
        1 . . . . .
        1 1 . . . .
        1 . 1 . . .
        1 . . 1 . .
        1 1 . . 1 .
        1 1 . . . 1
        """)
    )


def test_lookahead_tree_slots_see_their_own_path_only():
    # root with two children, one diagonal slot behind each of the three
    assert pass_block(RowLayout((-1, 0, 0), k=1, causal_slots=False)).equal(
        matrix("""
        1 . . . . .
        1 1 . . . .
        1 . 1 . . .
        1 . . 1 . .
        1 1 . . 1 .
        1 . 1 . . 1
        """)
    )


def test_groups_behind_chosen_nodes_only():
    assert pass_block(RowLayout((-1, 0), k=1, carriers=(0,))).equal(
        matrix("""
        1 . .
        1 1 .
        1 . 1
        """)
    )


def test_self_consistent_pass_has_pending_rows_before_the_root():
    # two committed rows, then the root, then two causal slots behind the root
    assert pass_block(RowLayout((-1,), n_pending=3, k=2)).equal(
        matrix("""
        1 . . . .
        1 1 . . .
        1 1 1 . .
        1 1 1 1 .
        1 1 1 1 1
        """)
    )


def test_soft_columns_are_visible_to_added_rows_only():
    """Guards F30: ordinary rows never see soft slots."""
    cache = RowCache(0, 1, 8)
    cache.n_soft, cache.lengths = 2, [1]
    mask = MaskBuilder().build([RowLayout((-1, 0), k=1, kind="contemplate")], cache, torch.device("cpu"))
    # columns: soft soft | prefix | root draft con con
    assert mask[0, 0].equal(
        matrix("""
        . . 1 1 . . .
        . . 1 1 1 . .
        1 1 1 1 . 1 .
        1 1 1 1 1 . 1
        """)
    )


def test_batch_rows_have_their_own_prefix_and_their_own_padding():
    """Guards F31: a shorter prompt sees nothing of the longer one's columns, and padding sees itself alone."""
    cache = RowCache(0, 2, 8)
    cache.lengths = [1, 3]
    mask = MaskBuilder().build([RowLayout((-1, 0)), RowLayout((-1,))], cache, torch.device("cpu"))
    assert mask[0, 0].equal(
        matrix("""
        1 . . 1 .
        1 . . 1 1
        """)
    )
    assert mask[1, 0].equal(
        matrix("""
        1 1 1 1 .
        . . . . 1
        """)
    )


@pytest.mark.parametrize(
    ("rule", "layout"),
    [
        (MaskRule(name="causal", prefix=3, parents=[-1]), RowLayout((-1,))),
        (MaskRule(name="tree", prefix=2, parents=[-1, 0, 0, 1]), RowLayout((-1, 0, 0, 1))),
        (
            MaskRule(name="lookahead_diagonal", prefix=2, parents=[-1, 0, 0], k=2),
            RowLayout((-1, 0, 0), k=2, causal_slots=False),
        ),
        (MaskRule(name="lookahead_causal", prefix=0, parents=[-1, 0], k=3, pending=4), RowLayout((-1, 0), 4, k=3)),
        (
            MaskRule(name="contemplate", prefix=2, parents=[-1, 0, 1], k=1, carriers=[0]),
            RowLayout((-1, 0, 1), k=1, kind="contemplate", carriers=(0,)),
        ),
    ],
)
def test_the_trace_rule_expands_to_the_mask_that_runs(rule: MaskRule, layout: RowLayout):
    cache = RowCache(0, 1, 8)
    cache.lengths = [rule.prefix]
    used = MaskBuilder().build([layout], cache, torch.device("cpu"))[0, 0]
    assert expand_rule(rule).matrix() == used.tolist()


def test_a_window_hides_what_is_too_far_behind():
    trace = expand_rule(MaskRule(name="causal", prefix=3, parents=[-1], window=2))
    assert trace.matrix() == [[False, False, True, True]]
    assert explain_cell(trace.rule, 0, 0) == "hidden_window"


def test_windowed_columns_keep_the_count_of_the_earlier_ones():
    trace = expand_rule(MaskRule(name="tree", prefix=5, parents=[-1, 0]), first_column=4)
    assert (trace.first_column, trace.earlier_visible, len(trace.columns)) == (4, [4, 4], 3)
    assert trace.matrix() == [[True, True, False], [True, True, True]]


def test_every_cell_has_a_reason():
    rule = MaskRule(name="lookahead_causal", prefix=1, parents=[-1, 0, 0], k=2)
    # rows: 0 root, 1-2 nodes, 3-4 slots of the root, 5-6 of node 1, 7-8 of node 2; columns one more in front
    expected = {
        (0, 0): "context",
        (1, 1): "ancestor",
        (1, 3): "hidden_branch",
        (0, 2): "hidden_future",
        (0, 4): "hidden_added",
        (5, 2): "own_node",
        (5, 3): "hidden_branch",
        (4, 4): "earlier_slot",
        (3, 5): "hidden_later_slot",
        (5, 4): "hidden_other_group",
        (8, 9): "self",
    }
    assert {cell: explain_cell(rule, *cell) for cell in expected} == expected


def test_bits_are_row_major_most_significant_first():
    assert pack_bits([[True, False, False], [True, True, False]]) == "mA=="  # 100110 -> 0x98
    assert unpack_bits("mA==", 2, 3) == [[True, False, False], [True, True, False]]


def test_positions_follow_depth_and_slot():
    """Guards F22: siblings share a position, slot i sits i behind its node."""
    layout = RowLayout((-1, 0, 0, 1), n_pending=2, k=2, carriers=(0, 3))
    assert layout.positions(10) == [10, 11, 12, 12, 13, 12, 13, 14, 15]
