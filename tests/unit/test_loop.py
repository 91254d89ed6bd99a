"""The loop on scripted targets: ends, budgets, stop text, statuses, counting."""

import pytest

from specviz.drafters.plain import PlainDrafter
from specviz.metrics import acceptance_by_depth, acceptance_rate
from specviz.trace import StepTrace
from tests.kit import EOS_ID, OracleDrafter, ScriptTarget, answer_of, run_lane

PROMPT = list(b"Q:")


def script(text: bytes, *tail: int) -> tuple[ScriptTarget, list[int]]:
    answer = [*PROMPT, *text, *tail]
    return ScriptTarget(answer), answer


def tau(steps: list[StepTrace]) -> float:
    return sum(len(step.committed) for step in steps[1:]) / len(steps[1:])


def test_accepted_length_counts_the_correction_and_not_the_prefill():
    """Guards F13: all proposals right, k = 4, 21 tokens of which the first is the prefill's: exactly 5.0."""
    target, answer = script(b"abcdefghijklmnopqrstuvwxyz")
    _, steps = run_lane(target, OracleDrafter(answer, k=4), PROMPT, max_new_tokens=21)
    assert tau(steps) == 5.0
    assert [token.source for token in steps[0].committed] == ["target"]
    assert [token.source for token in steps[1].committed] == ["draft"] * 4 + ["bonus"]


def test_plain_decoding_has_one_token_a_step_from_the_target():
    target, _ = script(b"abc", EOS_ID)
    sequence, steps = run_lane(target, PlainDrafter(), PROMPT)
    assert answer_of(steps) == [*b"abc", EOS_ID]
    assert {token.source for step in steps for token in step.committed} == {"target"}
    assert sequence.finish_reason == "eos"


def test_nodes_behind_a_rejection_were_never_judged():
    """Guards F12: wrong at depth 1 of a chain of 5: one rejected, four unreached, rate 0 of 1."""
    target, answer = script(b"abcdefgh")
    _, steps = run_lane(target, OracleDrafter(answer, k=5, m=1), PROMPT, max_new_tokens=2)
    assert [node.status for node in steps[1].nodes] == ["root", "rejected"] + ["unreached"] * 4
    assert acceptance_rate(steps[1:]) == 0.0
    assert acceptance_by_depth(steps[1:]) == {"1": 0.0}
    assert steps[1].committed[0].source == "correction"


@pytest.mark.parametrize("place", range(7))
def test_eos_anywhere_in_a_block_ends_the_run_there(place: int):
    target, answer = script(b"abcdefgh"[:place], EOS_ID, *b"xyz12345")
    sequence, steps = run_lane(target, OracleDrafter(answer, k=3), PROMPT)
    assert answer_of(steps) == [*b"abcdefgh"[:place], EOS_ID]
    assert sequence.finish_reason == "eos"
    assert steps[-1].committed[-1].piece == ""


def test_what_matched_after_the_end_is_cut_and_its_children_were_not_judged():
    target, answer = script(b"a", EOS_ID, *b"xyz")
    _, steps = run_lane(target, OracleDrafter(answer, k=3), PROMPT)
    assert [node.status for node in steps[1].nodes] == ["root", "accepted", "cut", "cut"]
    assert steps[1].accepted == [1]
    assert steps[1].kv.kept == 2


def test_a_drafted_eos_that_is_rejected_ends_nothing():
    """Guards F14."""
    target, answer = script(b"abcdefghijklmnop")
    drafter = OracleDrafter(answer, k=3, m=3, wrong=lambda right: EOS_ID)
    sequence, steps = run_lane(target, drafter, PROMPT, max_new_tokens=12)
    assert answer_of(steps) == list(b"abcdefghijkl")
    assert sequence.finish_reason == "length"


@pytest.mark.parametrize("budget", range(1, 12))
def test_the_budget_is_exact(budget: int):
    target, answer = script(b"abcdefghijklmnop")
    sequence, steps = run_lane(target, OracleDrafter(answer, k=4), PROMPT, max_new_tokens=budget)
    assert answer_of(steps) == list(b"abcdefghijklmnop"[:budget])
    assert sequence.finish_reason == "length"


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_stop_text_is_found_anywhere_in_a_block(k: int):
    """Guards F11: the tokens through the completing one are committed, the text is cut before the stop."""
    target, answer = script(b"abc END xyz 12345")
    sequence, steps = run_lane(target, OracleDrafter(answer, k=k), PROMPT, stop=["END"])
    assert answer_of(steps) == list(b"abc END")
    assert (sequence.finish_reason, sequence.text_cut) == ("stop_text", 3)


def test_eos_wins_over_the_budget_and_budget_over_nothing():
    target, answer = script(b"ab", EOS_ID)
    sequence, _ = run_lane(target, OracleDrafter(answer, k=1), PROMPT, max_new_tokens=3)
    assert sequence.finish_reason == "eos"


def test_an_unknown_id_is_shown_and_the_run_goes_on():
    """Guards F37."""
    target, _ = script(b"a", 509, *b"b", EOS_ID)
    _, steps = run_lane(target, PlainDrafter(), PROMPT)
    assert "".join(token.piece for step in steps for token in step.committed) == "a⟨id 509⟩b"


def test_the_context_ends_a_run_exactly():
    target, answer = script(b"abcdefghijklmnop")
    target.n_positions = 10
    sequence, steps = run_lane(target, OracleDrafter(answer, k=4), PROMPT)
    assert len(PROMPT) + len(answer_of(steps)) == 10
    assert sequence.finish_reason == "context_full"
    assert all(position < 10 for step in steps for position in _deepest(step))


def _deepest(step: StepTrace) -> list[int]:
    return [step.prefix_len - 1 + node.depth for node in step.nodes]


def test_step_bookkeeping_adds_up():
    target, answer = script(b"abcdefghijklmnop")
    _, steps = run_lane(target, OracleDrafter(answer, k=3, m=4, n_siblings=2), PROMPT, max_new_tokens=12)
    n_committed = len(PROMPT)
    for step in steps:
        assert step.prefix_len == n_committed
        assert step.kv.prefix + step.kv.kept == step.prefix_len + len(step.accepted)
        assert step is steps[-1] or len(step.committed) == len(step.accepted) + 1
        n_committed += len(step.committed)


def test_at_temperature_zero_only_the_argmax_is_accepted():
    """Guards F10: in a wide tree a merely likely branch does not pass."""
    target, answer = script(b"abcdefghijklmnop")
    _, steps = run_lane(target, OracleDrafter(answer, k=3, n_siblings=4), PROMPT, max_new_tokens=12)
    accepted = [node for step in steps for node in step.nodes if node.status == "accepted"]
    assert accepted and all(node.token_id == node.target_argmax and node.target_rank == 0 for node in accepted)
    rejected = [node for step in steps for node in step.nodes if node.status == "rejected"]
    assert rejected and all(node.target_rank > 0 for node in rejected)
