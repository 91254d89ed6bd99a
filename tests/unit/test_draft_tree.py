"""The dynamic tree, by hand: which nodes a level runs, which candidates are kept, and in which order."""

import math

import pytest
import torch

from specviz.drafters.draft_tree import Frontier, NodeLogProbs, TreeShape, UnsentDrafts, grow_tree, rank
from specviz.drafters.draft_vocabulary import DraftVocabulary

VOCABULARY = DraftVocabulary(torch.tensor([10, 20, 30, 40]), 50)


def logs(*probs: float) -> torch.Tensor:
    return torch.tensor(probs).log()


ROOT = logs(0.5, 0.3, 0.15, 0.05)
AFTER = {10: logs(0.9, 0.05, 0.03, 0.02), 20: logs(0.4, 0.35, 0.15, 0.1)}


class Draft:
    """Stands in for the head: knows the distribution after each token, and writes down what it was asked."""

    def __init__(self) -> None:
        self.frontiers: list[Frontier] = []

    def expand(self, frontier: Frontier) -> torch.Tensor:
        self.frontiers.append(frontier)
        return torch.stack([AFTER.get(token, ROOT) for token in frontier.token_ids.tolist()])


def grow(nodes: int, depth: int, top_k: int) -> tuple:
    draft = Draft()
    return grow_tree(ROOT, draft.expand, TreeShape(nodes, depth, top_k), VOCABULARY), draft


def test_one_level_holds_the_best_children_of_the_root():
    drafted, draft = grow(nodes=3, depth=1, top_k=3)
    tree = drafted.tree(7)
    assert (tree.token_ids, tree.parents) == ((7, 10, 20), (-1, 0, 0))
    assert tree.draft_probs == pytest.approx((1.0, 0.5, 0.3))
    assert draft.frontiers == []


def test_reranking_prefers_a_deep_probable_node_to_a_shallow_improbable_one():
    """Level 1: 10 (0.5), 20 (0.3). Level 2: 10-10 (0.45), 10-20 (0.025), 20-10 (0.12), 20-20 (0.105)."""
    drafted, draft = grow(nodes=4, depth=2, top_k=2)
    tree = drafted.tree(7)
    assert tree.token_ids == (7, 10, 20, 10)
    assert tree.parents == (-1, 0, 0, 1)
    assert tree.scores == pytest.approx((0.0, math.log(0.5), math.log(0.3), math.log(0.45)), abs=1e-6)
    assert tree.draft_probs == pytest.approx((1.0, 0.5, 0.3, 0.9))
    assert draft.frontiers[0].token_ids.tolist() == [10, 20]
    assert draft.frontiers[0].parent_rows.tolist() == [0, 0]


def test_a_level_runs_the_best_of_all_children_and_names_their_parents_rows():
    """Level 2 scores: 10-10 0.45, 20-10 0.12, 20-20 0.105, 10-20 0.025; the best two are rows 0 and 1."""
    _, draft = grow(nodes=8, depth=3, top_k=2)
    assert draft.frontiers[1].token_ids.tolist() == [10, 10]
    assert draft.frontiers[1].parent_rows.tolist() == [0, 1]
    assert [frontier.level for frontier in draft.frontiers] == [1, 2]


@pytest.mark.parametrize("nodes", [2, 3, 5, 8, 30, 200])
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("top_k", [1, 2, 4, 9])
def test_parents_precede_children_and_depths_stay_within_the_limit(nodes: int, depth: int, top_k: int):
    drafted, _ = grow(nodes, depth, top_k)
    tree = drafted.tree(7)
    k = min(top_k, 4)
    assert len(tree) == min(nodes, 1 + k + (depth - 1) * k * k)
    assert all(parent < node for node, parent in enumerate(tree.parents))
    assert max(tree.depths) <= depth
    assert len(tree.child_of) == len(tree) - 1


def test_equal_scores_never_orphan_a_node():
    """Guards the re-ranking against ties: a certain child scores exactly what its parent scores."""
    certain = torch.tensor([0.0, float("-inf"), float("-inf"), float("-inf")])
    drafted = grow_tree(certain, lambda f: certain.expand(len(f.token_ids), -1), TreeShape(4, 6, 1), VOCABULARY)
    tree = drafted.tree(7)
    assert tree.parents == (-1, 0, 1, 2)
    assert tree.scores == (0.0, 0.0, 0.0, 0.0)


def test_rank_puts_the_earlier_of_equals_first():
    assert rank(torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0]), 4).tolist() == [1, 2, 4, 3]


def test_evidence_names_what_was_expanded_and_what_was_left_out():
    drafted, _ = grow(nodes=4, depth=2, top_k=2)
    log_probs = NodeLogProbs(drafted)
    assert sorted(log_probs) == [0, 1, 2]
    assert log_probs[1][[10, 20, 30, 40]].exp().tolist() == pytest.approx([0.9, 0.05, 0.03, 0.02])
    assert int(log_probs[0].isfinite().count_nonzero()) == 4
    unsent = [(draft.parent, draft.depth, draft.token_id) for draft in UnsentDrafts(drafted)]
    assert unsent == [(1, 2, 20), (2, 2, 10), (2, 2, 20)]


def test_drafts_below_an_unsent_node_have_no_parent_in_the_tree():
    drafted, _ = grow(nodes=2, depth=2, top_k=2)
    assert [(draft.parent, draft.depth, draft.token_id) for draft in UnsentDrafts(drafted)] == [
        (0, 1, 20),
        (1, 2, 10),
        (1, 2, 20),
        (-1, 2, 10),
        (-1, 2, 20),
    ]
    assert [draft.behind for draft in UnsentDrafts(drafted)] == [None, None, None, 0, 0]
