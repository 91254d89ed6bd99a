"""A target that is itself a mixture of experts: what its routers decided at the reached nodes."""

import pytest
import torch
from transformers import OlmoeConfig, OlmoeForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from specviz.decoding.engine import Engine
from specviz.drafters.draft_tree import TreeShape
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.settings import make_settings
from specviz.trace import RunTrace
from tests.heads import random_head
from tests.kit import Target, answer_of, run_lane, tiny_config, tiny_target

PROMPT = list(b"the quick brown fox")
SIZES = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "initializer_range": 0.2,
    "eos_token_id": 257,
    "bos_token_id": 256,
    "pad_token_id": None,
}


def olmoe() -> Target:
    return tiny_target(OlmoeConfig(**SIZES), OlmoeForCausalLM)


def qwen3() -> Target:
    return tiny_target(Qwen3MoeConfig(**SIZES, head_dim=16, moe_intermediate_size=64), Qwen3MoeForCausalLM)


@pytest.mark.parametrize("build", [olmoe, qwen3])
def test_reached_nodes_carry_the_routing_of_every_layer(build):
    target = build()
    drafter = Eagle3Drafter(target, random_head(target), TreeShape(6, 2, 3))
    _, steps = run_lane(target, drafter, PROMPT, 6)
    ids = torch.tensor([PROMPT + answer_of(steps)])
    logits = target.model(input_ids=ids, output_router_logits=True, use_cache=False).router_logits
    for step in steps[1:]:
        assert [(r.site, r.node) for r in step.routing if r.node == 0] == [(f"target.{i}", 0) for i in range(8)]
        assert {r.node for r in step.routing} == {0, *step.accepted}
        for route in (r for r in step.routing if r.node == 0):
            layer = int(route.site.removeprefix("target."))
            expected = logits[layer][step.prefix_len - 1].softmax(-1)
            assert route.probabilities == pytest.approx(expected.tolist(), abs=1e-4)
            assert route.selected == expected.topk(2).indices.tolist()
            assert len(route.weights) == 2


def test_a_light_record_and_a_dense_target_have_none():
    target = olmoe()
    drafter = Eagle3Drafter(target, random_head(target), TreeShape(6, 2, 3))
    assert all(not step.routing for step in run_lane(target, drafter, PROMPT, 4, full=False)[1])
    dense = tiny_target(tiny_config())
    drafter = Eagle3Drafter(dense, random_head(dense), TreeShape(6, 2, 3))
    assert all(not step.routing for step in run_lane(dense, drafter, PROMPT, 4)[1])


def test_the_plain_lane_records_the_routing_of_each_token_at_level_full():
    engine = Engine(["tiny"])
    target = qwen3()
    engine.add_target("tiny", target)
    levels = {level: _plain_run(engine, level) for level in ("light", "full")}
    assert all(not step.routing for step in levels["light"].steps)
    run = levels["full"]
    ids = torch.tensor([PROMPT + [token.token_id for token in run.answer]])
    logits = target.model(input_ids=ids, output_router_logits=True, use_cache=False).router_logits
    assert not run.steps[0].routing
    for step in run.steps[1:]:
        assert [(route.site, route.node) for route in step.routing] == [(f"target.{i}", 0) for i in range(8)]
        for layer, route in enumerate(step.routing):
            expected = logits[layer][step.prefix_len - 1].softmax(-1)
            assert route.probabilities == pytest.approx(expected.tolist(), abs=1e-4)
            assert route.selected == expected.topk(2).indices.tolist()


def _plain_run(engine: Engine, level: str) -> RunTrace:
    prompt = bytes(PROMPT).decode()
    run = engine.run(prompt, make_settings(method="plain", model="tiny", max_new_tokens=4, raw=True, record=level))
    assert isinstance(run, RunTrace)
    return run
