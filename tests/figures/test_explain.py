"""The sentences agree with the definitions of the trace."""

from __future__ import annotations

import pytest
from figure_steps import make_node, make_small_tree, make_step, make_token

from specviz.figures import explain_node, explain_step, explain_token
from specviz.trace import LateVerdict, StepTrace

UNKNOWN = {"target_prob": None, "target_rank": None, "target_argmax": None}


def make_cut_step() -> StepTrace:
    nodes = [
        make_node(0, -1, 0, " the", "root"),
        make_node(1, 0, 1, " end", "accepted", target_prob=0.9, target_rank=0),
        make_node(2, 1, 2, " of", "cut", target_prob=0.8, target_rank=0),
        make_node(3, 1, 2, " or", "unreached"),
    ]
    return make_step(nodes, [1], [make_token(" end", "draft", node=1)])


def make_unverified_step() -> StepTrace:
    nodes = [make_node(0, -1, 0, " the", "root"), make_node(1, 0, 1, " cat", "unverified", draft_prob=0.7, **UNKNOWN)]
    return make_step(nodes, [], [make_token(" big", "bonus"), make_token(" cat", "unverified", node=1)])


def test_root() -> None:
    assert explain_node(make_small_tree(), 0).startswith("Root: “␣the” is the last committed token")


def test_accepted_with_numbers() -> None:
    assert explain_node(make_small_tree(), 1) == (
        "Accepted: behind “␣the” the target took “␣cat” too. "
        "Draft probability 0.41, target probability 0.62, rank 1 for the target."
    )


def test_rejected_names_what_was_taken() -> None:
    step = make_small_tree()
    assert "“␣the” was reached, and there the target took “␣cat”, not “␣dog”." in explain_node(step, 2)
    assert "“␣cat” was reached, and there the target took “␣slept”, not “␣sat”." in explain_node(step, 3)


def test_tokens_that_look_alike_are_told_apart_by_id() -> None:
    nodes = [make_node(0, -1, 0, "a", "root"), make_node(1, 0, 1, ",", "rejected")]
    step = make_step(nodes, [], [make_token(",", "correction", token_id=9)])
    assert "took “,” (id 9), not “,” (id 101)" in explain_node(step, 1)


def test_unreached_is_never_called_rejected() -> None:
    """Guards: nodes that were drafted but never tested counted or spoken of as rejected."""
    sentence = explain_node(make_small_tree(), 5)
    assert sentence.startswith("Never judged: its parent “␣dog” (itself rejected) was not reached")
    assert "target probability" not in sentence


def test_unreached_behind_the_end_says_that_the_run_ended() -> None:
    assert "the run ended before a token behind “␣end” was committed" in explain_node(make_cut_step(), 3)


def test_cut() -> None:
    sentence = explain_node(make_cut_step(), 2)
    assert sentence.startswith("Cut: “␣of” matched the target's token, but the run ended before it")


def test_cut_slot_is_not_said_to_have_matched() -> None:
    step = make_step(
        [make_node(0, -1, 0, " the", "root"), make_node(1, 0, 1, " cat", "cut", **UNKNOWN)],
        [],
        [make_token(" big", "bonus")],
    )
    assert "matched" not in explain_node(step, 1)


def test_unverified_and_its_late_verdict() -> None:
    step = make_unverified_step()
    assert "without the target's word. Draft probability 0.70." in explain_node(step, 1)
    verdict = {"step": 3, "node": 1, "target_prob": 0.2, "target_rank": 4, "argmax_piece": " dog", "gap": 0.5}
    other = make_step([], [], [], late=[LateVerdict(target_argmax=7, **verdict)])
    assert (
        "One pass later the target would have chosen “␣dog” (target probability 0.20, rank 5 for this token)."
        in explain_node(step, 1, other)
    )
    same = make_step([], [], [], late=[LateVerdict(target_argmax=101, **verdict)])
    assert "would have chosen it too" in explain_node(step, 1, same)


def test_missing_numbers_are_said_to_be_missing() -> None:
    step = make_step(
        [make_node(0, -1, 0, "a", "root"), make_node(1, 0, 1, "b", "accepted", draft_prob=None, target_rank=None)],
        [1],
        [make_token("b", "draft")],
    )
    assert "Draft probability not recorded, target probability 0.25." in explain_node(step, 1)


def test_an_unknown_node_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        explain_node(make_small_tree(), 99)


def test_step_sentences() -> None:
    assert explain_step(make_small_tree()) == (
        "Step 3: of 5 drafted tokens the target judged 4 and accepted 1, and the target added the correction “␣slept”; "
        "2 tokens committed: “␣cat” “␣slept”."
    )
    assert "1 of 1 slot token taken without the target's word" in explain_step(make_unverified_step())
    assert "1 more cut by the end of the run" in explain_step(make_cut_step())
    prefill = make_step([], [], [make_token("Hi", "target")], index=0)
    assert explain_step(prefill) == "Prefill: the target reads the prompt and gives the first token: “Hi”."
    plain = make_step([make_node(0, -1, 0, "a", "root")], [], [make_token("b", "target")])
    assert explain_step(plain) == "Step 3: one target pass without a draft gives 1 token: “b”."


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("prompt", "belongs to the prompt"),
        ("target", "the target's own next token"),
        ("draft", "drafted and accepted"),
        ("correction", "none of the drafted tokens there matched"),
        ("bonus", "no draft was left to judge"),
        ("unverified", "without the target's word"),
    ],
)
def test_token_sentences(source: str, words: str) -> None:
    assert words in explain_token(make_token(" x", source))


def test_sentences_show_hostile_text_as_it_is_and_short() -> None:
    token = make_token("\u202e" + "<b>" * 4000, "draft")
    sentence = explain_token(token)
    assert len(sentence) < 200
    assert "\u202e" not in sentence
    assert "⟨U+202E⟩<b>" in sentence
