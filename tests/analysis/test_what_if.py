"""What-if on steps written by hand; the last tests grow real trees and hold both ways together."""

import math

import pytest
from traces import make_node, make_step, make_token

from specviz.analysis.regrow import Change
from specviz.analysis.what_if import change_step, describe_change
from specviz.trace import CandidateTrace, MaskRule, MaskTrace

SLOTS = {"k": 2, "candidates": 2}
SETTINGS = {"nodes": 4, "depth": 2, "tree_top_k": 2}


def drafted(idx, parent, depth, status, token_id, prob, score):
    return make_node(idx, parent, depth, status, token_id, draft_prob=prob, score=math.log(score))


def unsent(parent, depth, token_id, prob, score, behind=None):
    return CandidateTrace(
        parent=parent, behind=behind, depth=depth, token_id=token_id, piece="", draft_prob=prob, score=math.log(score)
    )


def tree_step(committed=((11, "draft"), (22, "correction"))):
    """Root, 11 (0.6), 12 (0.4), 21 behind 11 (0.48); unsent: 31 behind 12 (0.3), 22 behind 11 (0.12)."""
    nodes = [
        make_node(0, -1, 0, "root"),
        drafted(1, 0, 1, "accepted", 11, 0.6, 0.6),
        drafted(2, 0, 1, "rejected", 12, 0.4, 0.4),
        drafted(3, 1, 2, "rejected", 21, 0.8, 0.48),
    ]
    candidates = [unsent(2, 2, 31, 0.75, 0.3), unsent(1, 2, 22, 0.2, 0.12)]
    tokens = [make_token(f" {token_id}", source, token_id) for token_id, source in committed]
    return make_step(tokens, nodes, candidates=candidates)


def ids(tokens):
    return [token.token_id for token in tokens]


def test_the_same_settings_give_what_happened():
    outcome = change_step(tree_step(), describe_change(tree_step(), SETTINGS), SETTINGS)
    assert ids(outcome.accepted) == [11] and outcome.extra.token_id == 22 and outcome.n_tokens == 2
    assert ids(outcome.tree[1:]) == [11, 21, 12] and not outcome.unknown


@pytest.mark.parametrize(
    ("change", "tree", "n_tokens"),
    [
        (Change(nodes=1), [], 1),
        (Change(nodes=2), [11], 2),
        (Change(nodes=5), [11, 21, 12, 31], 2),
        (Change(nodes=6), [11, 21, 12, 31, 22], 3),
        (Change(nodes=9), [11, 21, 12, 31, 22], 3),
        (Change(depth=1), [11, 12], 2),
        (Change(top_k=1), [11, 21], 2),
    ],
)
def test_another_tree_is_walked_again(change, tree, n_tokens):
    following = [make_token(" 7", "bonus", 7)]
    outcome = change_step(tree_step(), change, SETTINGS, following)
    assert (ids(outcome.tree[1:]), outcome.n_tokens) == (tree, n_tokens)


def test_what_the_record_does_not_hold_is_said():
    for change, words in [
        (Change(depth=3), "deeper one"),
        (Change(top_k=3), "more are not in the record"),
    ]:
        outcome = change_step(tree_step(), change, SETTINGS)
        assert words in outcome.unknown and outcome.n_tokens is None
    outcome = change_step(tree_step(), Change(nodes=6), SETTINGS)
    assert ids(outcome.accepted) == [11, 22] and "not at hand" in outcome.unknown
    assert change_step(make_step(), Change(nodes=2), SETTINGS).unknown == "Nothing was drafted in this step."


def test_a_light_record_tells_smaller_trees_alone():
    light = tree_step().model_copy(update={"candidates": None})
    outcome = change_step(light, Change(nodes=3), SETTINGS)
    assert ids(outcome.tree[1:]) == [11, 21] and outcome.n_tokens == 2
    assert "best 3 drafts" in change_step(light, Change(nodes=5), SETTINGS).unknown
    slots = slots_step().model_copy(update={"candidates": None})
    assert ids(change_step(slots, Change(nodes=2), SLOTS).tree[1:]) == [11]
    assert "best 3 nodes" in change_step(slots, Change(nodes=4), SLOTS).unknown


def test_the_end_of_the_answer_ends_the_walk():
    outcome = change_step(tree_step(), Change(nodes=6), SETTINGS, [])
    assert outcome.n_tokens == 2 and outcome.extra is None


def test_a_long_list_of_unsent_drafts_has_an_end():
    step = tree_step()
    many = [unsent(1, 2, 500 + i, 0.01, 0.01 - i * 1e-4) for i in range(64)]
    step = step.model_copy(update={"candidates": many})
    assert len(change_step(step, Change(nodes=68), SETTINGS).tree) == 68
    assert "best 67 drafts" in change_step(step, Change(nodes=69), SETTINGS).unknown


def test_a_child_of_an_unsent_draft_is_found_by_its_link():
    nodes = [make_node(0, -1, 0, "root"), drafted(1, 0, 1, "rejected", 11, 0.6, 0.6)]
    candidates = [unsent(0, 1, 12, 0.4, 0.4), unsent(-1, 2, 13, 0.5, 0.2, behind=0)]
    tokens = [make_token(" 12", "correction", 12)]
    following = [make_token(" 13", "draft", 13), make_token(" 14", "bonus", 14)]
    step = make_step(tokens, nodes, candidates=candidates)
    assert change_step(step, Change(nodes=4), SETTINGS, following).n_tokens == 3
    candidates[1] = unsent(-1, 2, 13, 0.5, 0.2)
    step = make_step(tokens, nodes, candidates=candidates)
    assert "parent" in change_step(step, Change(nodes=4), SETTINGS, following).unknown


def test_a_candidate_that_was_never_run_hides_its_children():
    """With two children each, 12's strong children fill the beam; with one each, 21 would run instead of 32."""
    nodes = [make_node(0, -1, 0, "root"), drafted(1, 0, 1, "rejected", 11, 0.5, 0.5)]
    candidates = [
        unsent(0, 1, 12, 0.4, 0.4),
        unsent(-1, 2, 31, 0.5, 0.2, behind=0),
        unsent(-1, 2, 32, 0.4, 0.16, behind=0),
        unsent(1, 2, 21, 0.2, 0.1),
    ]
    step = make_step([make_token(" 9", "correction", 9)], nodes, candidates=candidates)
    settings = {"depth": 3, "tree_top_k": 2}
    known = change_step(step, Change(top_k=1, nodes=3), settings)
    assert not known.unknown and ids(known.tree[1:]) == [11, 21]
    assert "can be told" in change_step(step, Change(top_k=1, nodes=4), settings).unknown


def slots_step(source="draft", **fields):
    """Slot 1 says 11 (0.6) or 12 (0.32), slot 2 says 21 (0.5) or 22 (0.4); three nodes were sent."""
    nodes = [
        make_node(0, -1, 0, "root"),
        drafted(1, 0, 1, "accepted", 11, 0.6, 0.6),
        drafted(2, 0, 1, "rejected", 12, 0.32, 0.32),
    ]
    candidates = [unsent(1, 2, 21, 0.5, 0.3), unsent(1, 2, 22, 0.4, 0.24)]
    rule = MaskRule(name="lookahead_diagonal", prefix=4, parents=[-1, 0, 0], k=2)
    tokens = [make_token(" 11", source, 11), make_token(" 22", "bonus", 22)]
    return make_step(tokens, nodes, candidates=candidates, mask=MaskTrace(rule=rule), **fields)


@pytest.mark.parametrize(
    ("change", "tree", "n_tokens"),
    [
        (Change(), [11, 12], 2),
        (Change(nodes=4), [11, 12, 21], 2),
        (Change(nodes=5), [11, 12, 21, 22], 3),
        (Change(nodes=99), [11, 12, 21, 22, 21, 22], 3),
        (Change(nodes=99, threshold=0.45), [11, 21], 2),
        (Change(nodes=99, threshold=0.7), [], 1),
        (Change(nodes=99, top_k=1), [11, 21], 2),
        (Change(nodes=99, depth=1), [11, 12], 2),
    ],
)
def test_slots_are_combined_again(change, tree, n_tokens):
    following = [make_token(" 7", "bonus", 7)]
    outcome = change_step(slots_step(), change, SLOTS, following)
    assert (ids(outcome.tree[1:]), outcome.n_tokens) == (tree, n_tokens)


def test_slots_that_did_not_speak_are_not_guessed():
    assert "2 slots spoke" in change_step(slots_step(), Change(depth=3), SLOTS).unknown
    assert "2 candidates" in change_step(slots_step(), Change(top_k=3), SLOTS).unknown


def test_a_higher_threshold_takes_fewer_tokens_unseen():
    nodes = [
        make_node(0, -1, 0, "root"),
        make_node(1, 0, 1, "unverified", 11, draft_prob=0.9),
        make_node(2, 1, 2, "unverified", 12, draft_prob=0.6),
    ]
    tokens = [make_token(" 10", "correction", 10), *(make_token("", "unverified", 11 + i) for i in range(2))]
    step = make_step(tokens, nodes, accepted=[])
    settings = {"threshold": 0.5, "k": 4}
    assert change_step(step, Change(threshold=0.7), settings).n_tokens == 2
    assert change_step(step, Change(threshold=0.5), settings).n_tokens == 3
    assert "below 0.5" in change_step(step, Change(threshold=0.4), settings).unknown
