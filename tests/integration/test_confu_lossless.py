"""ConFu: real rows never see what it adds, at gate 0 it is its EAGLE-3 parent, and its switches do what they say."""

import pytest
import torch

from specviz.decoding.loop import decode
from specviz.drafters.confu import ConfuConfig, ConfuDrafter, ConfuSwitches, run_soft_prompt
from specviz.drafters.draft_tree import NodeLogProbs, TreeShape
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.expert_embedding import ExpertConfig
from specviz.settings import make_settings
from specviz.target.hidden import Hidden
from tests.heads import SHAPE, confu_drafter, random_head, random_parts
from tests.kit import Target, answer_of, plain_answer, run_lane, tiny_config, tiny_engine, tiny_target

PROMPT = list(b"the quick brown fox")
N_NEW = 24


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("switches", [{}, {"future": False}, {"routed": False}, {"all_nodes": False}], ids=str)
def test_confu_is_plain_token_for_token(n_kv_heads: int, switches: dict):
    """Guards F29: soft prompts have as many heads as the target's cache."""
    target = tiny_target(tiny_config(num_key_value_heads=n_kv_heads))
    drafter = confu_drafter(target, **switches)
    assert drafter.soft_rows[0][0].shape == (1, n_kv_heads, 16, 16)
    assert answer_of(run_lane(target, drafter, PROMPT, N_NEW)[1]) == plain_answer(target, PROMPT, N_NEW)


def test_the_first_pass_runs_prompt_and_one_contemplate_row_and_later_ones_twice_the_tree(target: Target):
    _, steps = run_lane(target, confu_drafter(target), PROMPT, N_NEW)
    assert steps[0].n_rows == len(PROMPT) + 1
    assert all(step.n_rows == 2 * len(step.nodes) for step in steps[1:])
    assert all(step.kv.added == len(step.nodes) for step in steps)
    assert steps[1].mask.rule.s == 16


def test_contemplate_root_adds_one_row(target: Target):
    _, steps = run_lane(target, confu_drafter(target, all_nodes=False), PROMPT, N_NEW)
    assert all(step.n_rows == len(step.nodes) + 1 for step in steps[1:])
    assert [route.site for route in steps[3].routing] == ["con", "f"]


def passes(target: Target, drafter: ConfuDrafter, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, torch.Tensor]]:
    """Return for every pass of a run how many rows are real, and the final states of all rows."""
    seen: list[tuple[int, torch.Tensor]] = []
    forward = target.forward

    def listening(embeds, positions, mask, cache, *asked) -> Hidden:
        hidden = forward(embeds, positions, mask, cache, *asked)
        n_added = int(mask[0, 0, :, 0].sum()) if cache.n_soft else 0
        seen.append((embeds.shape[1] - n_added, hidden.last[0]))
        return hidden

    with monkeypatch.context() as patch:
        patch.setattr(target, "forward", listening)
        run_lane(target, drafter, PROMPT, N_NEW)
    return seen


def test_real_rows_do_not_change_by_a_bit_when_what_confu_adds_holds_other_numbers(
    target: Target, monkeypatch: pytest.MonkeyPatch
):
    """Guards F30. Without f the trees are the same, so both runs have the same shapes in every pass."""
    loaded = random_head(target)
    runs = [
        passes(
            target, confu_drafter(target, loaded, random_parts(target, loaded, seed=seed), future=False), monkeypatch
        )
        for seed in (1, 2)
    ]
    assert len(runs[0]) == len(runs[1]) > 10
    for (n_real, one), (_, other) in zip(*runs, strict=True):
        assert torch.equal(one[:n_real], other[:n_real])
        assert not torch.allclose(one[n_real:], other[n_real:])


def test_real_rows_stay_within_rounding_when_rows_are_added(target: Target, monkeypatch: pytest.MonkeyPatch):
    loaded = random_head(target)
    with_rows = passes(target, confu_drafter(target, loaded, future=False), monkeypatch)
    without = passes(target, Eagle3Drafter(target, loaded, SHAPE), monkeypatch)  # type: ignore[arg-type]
    for (n_real, one), (_, other) in zip(with_rows, without, strict=True):
        assert torch.allclose(target.logits(one[:n_real]), target.logits(other[:n_real]), atol=1e-4)


def test_at_gate_zero_confu_is_its_parent(target: Target):
    loaded = random_head(target)
    confu = confu_drafter(target, loaded, random_parts(target, loaded, gate=0.0))
    parent = Eagle3Drafter(target, loaded, SHAPE)
    _, own = run_lane(target, confu, PROMPT, N_NEW)
    _, parents = run_lane(target, parent, PROMPT, N_NEW)
    for step, other in zip(own, parents, strict=True):
        assert [(n.parent, n.token_id) for n in step.nodes] == [(n.parent, n.token_id) for n in other.nodes]
        for node, twin in zip(step.nodes, other.nodes, strict=True):
            assert node.score == pytest.approx(twin.score, abs=1e-5)


def rounds(target: Target, drafter: Eagle3Drafter, n: int) -> list[torch.Tensor]:
    """Return the draft's log-probabilities after the root for the first `n` rounds, with the plain answer committed."""
    from specviz.decoding.limits import Ending
    from specviz.decoding.record import StepRecorder
    from specviz.decoding.sampling import Sampler
    from specviz.decoding.sequence import Sequence

    said: list[torch.Tensor] = []
    session = drafter.begin(PROMPT)
    propose = session.propose

    def listening(root_id: int, max_depth: int):
        proposal = propose(root_id, max_depth)
        if isinstance(proposal.evidence.log_probs, NodeLogProbs):
            said.append(proposal.evidence.log_probs[0])
        return proposal

    session.propose = listening  # type: ignore[method-assign]
    ending = Ending(target.tokenizer, frozenset(), (), n + 1, 400)
    sequence = Sequence(0, list(PROMPT), session, Sampler(), ending, StepRecorder(target, Sampler(), False, False))
    list(decode(target, drafter, [sequence]))
    return said


def test_the_gate_decides_how_much_of_f_the_first_drafted_token_sees(target: Target):
    loaded = random_head(target)
    parent = rounds(target, Eagle3Drafter(target, loaded, TreeShape(2, 1, 1)), 1)[0]
    shape = TreeShape(2, 1, 1)
    said = {
        gate: rounds(target, confu_drafter(target, loaded, random_parts(target, loaded, gate=gate), shape), 1)[0]
        for gate in (0.0, 0.5, 1.0)
    }
    sayable = parent.isfinite()
    distance = {gate: float((said[gate] - parent)[sayable].abs().max()) for gate in said}
    assert distance[0.0] <= 1e-5
    assert distance[1.0] > distance[0.5] > 1e-3


def test_without_f_the_gate_means_nothing(target: Target):
    loaded = random_head(target)
    _, own = run_lane(target, confu_drafter(target, loaded, future=False), PROMPT, N_NEW)
    _, parents = run_lane(target, Eagle3Drafter(target, loaded, SHAPE), PROMPT, N_NEW)
    assert [[n.token_id for n in step.nodes] for step in own] == [[n.token_id for n in step.nodes] for step in parents]
    assert all([route.site for route in step.routing] == ["con"] for step in own)
    assert all(step.shadow is None for step in own)


def test_routing_is_uniform_in_the_prefill_and_then_follows_the_text(target: Target):
    loaded = random_head(target)
    config = ConfuConfig(n_soft=4, experts=ExpertConfig(n_experts=5, n_selected=2, renormalise=False))
    drafter = confu_drafter(target, loaded, random_parts(target, loaded, config=config))
    _, steps = run_lane(target, drafter, PROMPT, N_NEW)
    assert [route.site for route in steps[0].routing] == ["con"]
    assert steps[0].routing[0].weights == pytest.approx([0.2] * 5)
    for step in steps[1:]:
        for route in step.routing:
            assert sum(route.probabilities) == pytest.approx(1.0)
            assert len(route.selected) == 2
            assert route.weights == pytest.approx([route.probabilities[expert] for expert in route.selected])
    assert len({tuple(step.routing[0].probabilities) for step in steps[1:]}) > 3


def test_fixed_experts_are_the_uniform_mixture_at_both_sites(target: Target):
    _, steps = run_lane(target, confu_drafter(target, routed=False), PROMPT, N_NEW)
    for step in steps[1:]:
        assert [route.site for route in step.routing] == ["con", "f"]
        assert all(route.weights == pytest.approx([1 / 8] * 8) for route in step.routing)


def test_the_contemplate_embedding_is_routed_by_the_last_verified_token_of_the_round_before(target: Target):
    """The row of a pass is routed by features that were known before the pass; here a chain of single tokens."""
    loaded = random_head(target)
    parts = random_parts(target, loaded)
    _, steps = run_lane(target, ConfuDrafter(target, loaded, parts, TreeShape(1, 1, 1), ConfuSwitches()), PROMPT, 6)
    ids = torch.tensor([PROMPT + answer_of(steps)])
    states = target.model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
    features = torch.cat([states[layer] for layer in target.feature_layers], -1)[0]
    for step in steps[1:]:
        expected = parts.con_experts.route(features[step.prefix_len - 2])
        assert step.routing[0].probabilities == pytest.approx(expected.probabilities.tolist(), abs=1e-4)


def test_a_soft_prompt_is_run_alone_at_its_own_positions(target: Target):
    """Its keys equal those of an ordinary text with these embeddings."""
    embeds = torch.randn(5, target.hidden_size)
    rows = run_soft_prompt(target, embeds)
    plain = target.model(inputs_embeds=embeds[None], use_cache=True).past_key_values
    for (keys, values), layer in zip(rows, plain.layers, strict=True):
        assert torch.allclose(keys, layer.keys, atol=1e-5)
        assert torch.allclose(values, layer.values, atol=1e-5)


def test_no_soft_prompt_is_possible(target: Target):
    loaded = random_head(target)
    parts = random_parts(target, loaded, config=ConfuConfig(n_soft=0))
    drafter = confu_drafter(target, loaded, parts)
    assert drafter.soft_rows is None
    assert answer_of(run_lane(target, drafter, PROMPT, N_NEW)[1]) == plain_answer(target, PROMPT, N_NEW)


def test_a_full_record_holds_contemplate_tops_and_the_shadow(target: Target):
    loaded = random_head(target)
    _, steps = run_lane(target, confu_drafter(target, loaded, random_parts(target, loaded, gate=1.0)), PROMPT, N_NEW)
    _, parents = run_lane(target, Eagle3Drafter(target, loaded, SHAPE), PROMPT, N_NEW)
    for step, parent in zip(steps[1:], parents[1:], strict=True):
        assert all(node.contemplate_top5 for node in step.nodes)
        assert [node.token_id for node in step.shadow] == [node.token_id for node in parent.nodes]
        assert [node.status for node in step.shadow] == [node.status for node in parent.nodes]
    assert any([n.token_id for n in step.nodes] != [n.token_id for n in step.shadow] for step in steps[1:])


@pytest.mark.parametrize(
    ("settings", "n_rows", "sites"),
    [
        ({}, 24, ["con", "f"]),
        ({"confu_f": "off"}, 24, ["con"]),
        ({"contemplate": "root"}, 13, ["con", "f"]),
        ({"experts": "fixed"}, 24, ["con", "f"]),
    ],
    ids=str,
)
def test_each_switch_reaches_the_run_and_the_trace(target: Target, settings: dict, n_rows: int, sites: list[str]):
    """Guards F39."""
    fields = {"method": "confu", "raw": True, "model": "tiny", "max_new_tokens": 6, "nodes": 12, "depth": 2}
    trace = tiny_engine(target).run("the quick", make_settings(**fields, **settings))
    step = trace.steps[1]
    assert step.n_rows == n_rows
    assert [route.site for route in step.routing] == sites
    assert all(trace.settings[name] == value for name, value in settings.items())
    if settings.get("experts") == "fixed":
        assert step.routing[0].weights == pytest.approx([1 / 8] * 8)
