"""Trees made again from the record equal the trees that the drafters themselves grow."""

import itertools
import random

import pytest
import torch
from traces import make_node, make_step

from specviz.analysis.regrow import Change, NotRecordedError, grow_slots, prune_tree
from specviz.drafters.draft_tree import TreeShape, UnsentDrafts, grow_tree
from specviz.drafters.draft_vocabulary import DraftVocabulary
from specviz.drafters.lookahead import slot_tree
from specviz.trace import N_CANDIDATES, CandidateTrace, MaskRule, MaskTrace

N_TOKENS = 12


class RandomHead:
    """A draft whose distribution after a token depends on the token, the level and a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def after(self, level: int, token_id: int) -> torch.Tensor:
        chance = torch.Generator().manual_seed(1000 * self.seed + 100 * level + token_id)
        return (3 * torch.randn(N_TOKENS, generator=chance)).log_softmax(dim=-1)

    def expand(self, frontier) -> torch.Tensor:
        return torch.stack([self.after(frontier.level, token) for token in frontier.token_ids.tolist()])

    def grow(self, nodes: int, depth: int, top_k: int):
        vocabulary = DraftVocabulary.first(N_TOKENS, N_TOKENS)
        return grow_tree(self.after(0, 0), self.expand, TreeShape(nodes, depth, top_k), vocabulary)


def record(tree, unsent, rule_name="tree"):
    """Return the step of a tree with its unsent drafts, as `record_full` lists them."""
    nodes = [
        make_node(i, tree.parents[i], tree.depths[i], "rejected" if i else "root", tree.token_ids[i]).model_copy(
            update={"draft_prob": tree.draft_probs[i] if i else None, "score": tree.scores[i]}
        )
        for i in range(len(tree))
    ]
    best = sorted(range(len(unsent)), key=lambda place: -unsent[place].score)[:N_CANDIDATES]
    listed = {place: i for i, place in enumerate(best)}
    candidates = [
        CandidateTrace(piece="", **{**vars(unsent[place]), "behind": listed.get(unsent[place].behind)})
        for place in best
    ]
    mask = MaskTrace(rule=MaskRule(name=rule_name, prefix=4, parents=list(tree.parents), k=0))
    return make_step(nodes=nodes, candidates=candidates, mask=mask)


def paths_of_drafted(drafted):
    by_place = {token.place: token for token in drafted}

    def path(token):
        return (*path(by_place[token.parent]), token.token_id) if token.depth else ()

    return {path(token) for token in drafted}


def paths_of_tree(tree):
    paths = [()]
    for parent, token_id in zip(tree.parents[1:], tree.token_ids[1:], strict=True):
        paths.append((*paths[parent], token_id))
    return set(paths)


@pytest.mark.parametrize("seed", range(20))
def test_pruned_trees_are_those_that_a_smaller_shape_drafts(seed):
    head, chance = RandomHead(seed), random.Random(seed)
    shape = {"nodes": 16, "depth": 4, "top_k": 4}
    drafted = head.grow(**shape)
    step = record(drafted.tree(0), UnsentDrafts(drafted))
    settings = {"nodes": 16, "depth": 4, "tree_top_k": 4}
    n_told = 0
    for _ in range(12):
        changed = {"nodes": chance.randint(1, 40), "depth": chance.randint(1, 4), "top_k": chance.randint(1, 4)}
        try:
            tree = prune_tree(step, Change(**changed), settings)
        except NotRecordedError:
            continue
        n_told += 1
        assert paths_of_drafted(tree) == paths_of_tree(head.grow(**changed).tree(0)), changed
    assert n_told >= 6


@pytest.mark.parametrize("seed", range(10))
def test_slot_trees_are_those_that_other_settings_draft(seed):
    chance = random.Random(seed)
    choices = [
        sorted(((token, -chance.expovariate(0.7)) for token in range(4)), key=lambda pair: -pair[1]) for _ in range(3)
    ]
    step = record(*slot_tree(0, choices, 12), "lookahead_diagonal")
    deepest = max(candidate.depth for candidate in [*step.nodes[1:], *step.candidates])
    for nodes, depth, top_k in itertools.product((1, 5, 12, 30), range(1, deepest + 1), (1, 3, 4)):
        expected, _ = slot_tree(0, [slot[:top_k] for slot in choices[:depth]], nodes)
        tree = grow_slots(step, Change(nodes=nodes, depth=depth, top_k=top_k), {"k": 3, "candidates": 4})
        assert paths_of_drafted(tree) == paths_of_tree(expected)


@pytest.mark.parametrize("seed", range(10))
def test_slot_trees_are_told_as_far_as_the_record_goes(seed):
    chance = random.Random(seed)
    choices = [
        sorted(((token, -chance.expovariate(0.7)) for token in range(40)), key=lambda pair: -pair[1]) for _ in range(3)
    ]
    step = record(*slot_tree(0, choices, 12), "lookahead_diagonal")
    assert len(step.candidates) == N_CANDIDATES
    settings, n_told = {"k": 3, "candidates": 40}, 0
    for nodes, threshold in itertools.product((3, 12, 20, 40, 70, 200), (0.0, 0.1, 0.4)):
        try:
            tree = grow_slots(step, Change(nodes=nodes, threshold=threshold), settings)
        except NotRecordedError:
            continue
        n_told += 1
        assert paths_of_drafted(tree) == paths_of_tree(slot_tree(0, choices, nodes, threshold)[0])
    assert n_told >= 6
