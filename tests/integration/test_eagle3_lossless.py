"""EAGLE-3 in float32 gives the plain lane's tokens, whatever its head says; and what its records say."""

import pytest
import torch

from specviz.decoding.sampling import Sampler
from specviz.drafters.draft_tree import TreeShape
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.settings import make_settings
from specviz.trace import from_json, to_json
from tests.heads import GuidedDrafter, confu_drafter, guided, random_head
from tests.kit import OracleDrafter, Target, answer_of, plain_answer, run_lane, tiny_config, tiny_engine, tiny_target

PROMPT = list(b"the quick brown fox")
N_NEW = 32


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.mark.parametrize("method", ["eagle3", "confu"])
@pytest.mark.parametrize("nodes", [1, 8, 30, 60])
def test_an_untrained_head_changes_nothing(target: Target, nodes: int, method: str):
    """Guards F01."""
    engine = tiny_engine(target)
    fields = {"raw": True, "model": "tiny", "max_new_tokens": N_NEW}
    plain = engine.run("the quick brown fox", make_settings(method="plain", **fields))
    trace = engine.run("the quick brown fox", make_settings(method=method, nodes=nodes, **fields))
    assert [token.token_id for token in trace.answer] == [token.token_id for token in plain.answer]
    assert trace.drafter.source == "random" and not trace.drafter.trained
    assert "Random weights: shapes are real, proposals are noise." in trace.notices
    assert all(len(step.nodes) == nodes for step in trace.steps[1:-8])
    assert from_json(to_json(trace)) == trace


SAMPLINGS = [Sampler(), Sampler(0.8, 1.0, 3), Sampler(1.0, 0.7, 5), Sampler(1.5, 1.0, 11)]


@pytest.mark.parametrize("sampler", SAMPLINGS, ids=str)
@pytest.mark.parametrize("shape", [TreeShape(8, 3, 4), TreeShape(60, 6, 10)], ids=str)
def test_one_seed_gives_one_text(target: Target, sampler: Sampler, shape: TreeShape):
    plain = plain_answer(target, PROMPT, N_NEW, sampler=sampler)
    loaded = random_head(target, draft_vocab_size=512)
    eagle3 = Eagle3Drafter(target, loaded, shape)
    for drafter in (eagle3, confu_drafter(target, loaded, shape=shape)):
        assert answer_of(run_lane(target, drafter, PROMPT, N_NEW, sampler=sampler)[1]) == plain


@pytest.mark.parametrize("m", [0, 3])
@pytest.mark.parametrize("n_siblings", [1, 3])
def test_a_head_that_proposes_well_changes_nothing_either(target: Target, m: int, n_siblings: int):
    plain = plain_answer(target, PROMPT, N_NEW)
    drafter = GuidedDrafter(target, random_head(target), OracleDrafter(PROMPT + plain, 6, m, n_siblings))
    _, steps = run_lane(target, drafter, PROMPT, N_NEW)
    assert answer_of(steps) == plain
    assert any(step.accepted for step in steps)


@pytest.mark.parametrize("method", ["eagle3", "confu"])
@pytest.mark.parametrize("nodes", [1, 8, 30, 60])
def test_a_drafter_that_proposes_well_changes_nothing_with_any_tree(target: Target, nodes: int, method: str):
    """Most steps accept several nodes, scattered among siblings; every fifth token is proposed wrong."""
    plain = plain_answer(target, PROMPT, N_NEW)
    _, steps = run_lane(target, guided(target, method, OracleDrafter(PROMPT + plain, 5, 5, nodes=nodes)), PROMPT, N_NEW)
    assert answer_of(steps) == plain
    assert {len(step.nodes) for step in steps[1:-2]} == {nodes}
    assert nodes == 1 or sum(len(step.accepted) for step in steps) > N_NEW // 2


def test_a_head_with_fewer_positions_than_the_target_stops_drafting_and_not_the_run(target: Target):
    """Guards F23."""
    drafter = Eagle3Drafter(target, random_head(target, n_positions=40), TreeShape(12, 4, 3))
    _, steps = run_lane(target, drafter, PROMPT, 60)
    assert answer_of(steps) == plain_answer(target, PROMPT, 60)
    sizes = [len(step.nodes) for step in steps]
    assert sizes[1] == 12 and sizes[-1] == 1
    assert all(step.prefix_len > 36 for step in steps[1:] if len(step.nodes) == 1)


def test_the_prompt_may_be_longer_than_the_head_knows(target: Target):
    drafter = confu_drafter(target, random_head(target, n_positions=8))
    _, steps = run_lane(target, drafter, PROMPT, 10)
    assert answer_of(steps) == plain_answer(target, PROMPT, 10)
    assert all(len(step.nodes) == 1 for step in steps)


def test_trees_end_with_the_context():
    small = tiny_target(tiny_config(max_position_embeddings=40))
    for drafter in (Eagle3Drafter(small, random_head(small), TreeShape(30, 6, 4)), confu_drafter(small)):
        sequence, steps = run_lane(small, drafter, PROMPT, 200)
        assert sequence.finish_reason == "context_full"
        assert len(sequence.token_ids) == 40
        for step in steps:
            assert max(step.prefix_len - 1 + node.depth for node in step.nodes) < 40


def test_a_full_record_gives_reasons_for_every_miss(target: Target):
    """A head of 100 odd ids: a target's even id is out of its vocabulary, others were ranked too low."""
    _, steps = run_lane(target, Eagle3Drafter(target, random_head(target), TreeShape(30, 4, 5)), PROMPT, N_NEW)
    reasons = set()
    for step in steps[1:]:
        root = step.nodes[0]
        assert root.next.draft_top5 and root.next.kl >= 0 and 0 <= root.next.outside_mass <= 1
        missed = [node.miss for node in step.nodes if node.miss is not None]
        assert len(missed) == 1
        reasons.add(missed[0].reason)
        if missed[0].token_id % 2 == 0:
            assert missed[0].reason == "out_of_draft_vocab"
        assert step.candidates
    assert reasons >= {"out_of_draft_vocab"}


def test_a_reached_leaf_says_depth_limit_and_one_above_it_says_pruned(target: Target):
    """At the deepest level nothing was expanded; above it, a leaf is where the beam went on elsewhere."""
    sampler = Sampler(3.0, 1.0, 2)  # hot enough that improbable drafts are accepted now and then
    loaded = random_head(target, draft_vocab_size=512)
    found = set()
    for shape in (TreeShape(200, 1, 60), TreeShape(250, 2, 30)):
        _, steps = run_lane(target, Eagle3Drafter(target, loaded, shape), PROMPT, 60, sampler=sampler)
        for step in steps[1:]:
            last = step.nodes[step.accepted[-1] if step.accepted else 0]
            if last.miss is not None and last.next.draft_top5 is None:
                assert last.miss.reason == ("depth_limit" if last.depth == shape.depth else "pruned")
                found.add(last.miss.reason)
    assert "depth_limit" in found


def test_a_light_record_never_spreads_a_distribution(target: Target, monkeypatch: pytest.MonkeyPatch):
    from specviz.drafters import draft_tree

    def refuse(*_: object) -> None:
        raise AssertionError("a light record asked for evidence")

    monkeypatch.setattr(draft_tree.NodeLogProbs, "__getitem__", refuse)
    monkeypatch.setattr(draft_tree.UnsentDrafts, "_tokens", property(refuse))
    drafter = Eagle3Drafter(target, random_head(target), TreeShape(8, 3, 4))
    run_lane(target, drafter, PROMPT, 5, full=False)


def test_no_number_is_nan_when_the_head_is_certain(target: Target):
    """Guards F06 for drafts: a one-hot draft distribution gives no NaN."""
    loaded = random_head(target)
    loaded.head.lm_head.weight.mul_(1e4)
    _, steps = run_lane(target, Eagle3Drafter(target, loaded, TreeShape(12, 4, 3)), PROMPT, 8)
    for step in steps[1:]:
        assert all(torch.tensor([node.draft_prob or 0.0, node.score or 0.0]).isfinite().all() for node in step.nodes)
