"""Every supported architecture, with small random weights made in memory: probed, lossless, nodes equal paths."""

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OlmoeConfig,
    OlmoeForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.drafters.confu import run_soft_prompt
from specviz.errors import SpecVizError
from specviz.target.probe import check_layer_kinds
from tests.heads import guided
from tests.kit import OracleDrafter, Target, answer_of, plain_answer, run_lane, tiny_config, tiny_target

SHAPE = tiny_config().to_dict()
COMMON = {
    name: SHAPE[name]
    for name in (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "max_position_embeddings",
        "bos_token_id",
        "eos_token_id",
        "initializer_range",
    )
}
WINDOW = 16
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2}
ARCHITECTURES = {
    "llama": (LlamaForCausalLM, tiny_config()),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**COMMON)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**COMMON, head_dim=16)),
    "mistral with a window": (MistralForCausalLM, MistralConfig(**COMMON, sliding_window=WINDOW)),
    "gemma3 with windowed and full layers": (
        Gemma3ForCausalLM,
        Gemma3TextConfig(**COMMON, head_dim=16, sliding_window=WINDOW, query_pre_attn_scalar=16),
    ),
    "qwen3-moe": (Qwen3MoeForCausalLM, Qwen3MoeConfig(**COMMON, head_dim=16, moe_intermediate_size=64, **EXPERTS)),
    "olmoe": (OlmoeForCausalLM, OlmoeConfig(**COMMON, **EXPERTS)),
}
PROMPT = list(b"the quick brown fox jumps")


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=str)
def target(request) -> Target:
    model_class, config = ARCHITECTURES[request.param]
    return tiny_target(config, model_class)


def test_plain_is_the_model_s_own_greedy_answer(target: Target):
    """The reference lane equals transformers' generate, past the window too (guards F17)."""
    own = plain_answer(target, PROMPT, 40)
    generated = target.model.generate(
        torch.tensor([PROMPT]), max_new_tokens=40, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    assert own == generated[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("n_siblings", [1, 3])
def test_speculation_past_the_window_is_lossless(target: Target, n_siblings: int):
    """Guards F02 and F17: rejected drafts once windows are full are rolled back exactly."""
    plain = plain_answer(target, PROMPT, 40)
    _, steps = run_lane(target, OracleDrafter(PROMPT + plain, 4, 3, n_siblings), PROMPT, 40)
    assert answer_of(steps) == plain
    assert {node.status for step in steps for node in step.nodes} >= {"accepted", "rejected", "unreached"}


@pytest.mark.parametrize("method", ["eagle3", "confu"])
def test_a_head_s_trees_are_lossless_past_the_window(target: Target, method: str):
    """Guards F17 and F30: the head runs, and for ConFu every pass has soft columns and contemplate rows."""
    plain = plain_answer(target, PROMPT, 40)
    drafter = guided(target, method, OracleDrafter(PROMPT + plain, 4, 3, nodes=30))
    _, steps = run_lane(target, drafter, PROMPT, 40)
    assert answer_of(steps) == plain
    assert {node.status for step in steps for node in step.nodes} >= {"accepted", "rejected", "unreached"}
    assert steps[1].n_rows == (60 if method == "confu" else 30)


@pytest.mark.parametrize("n_soft", [0, 16])
@pytest.mark.parametrize("seed", range(3))
def test_node_logits_equal_path_logits_on_random_trees_of_60(target: Target, seed: int, n_soft: int):
    """Guards F22, F25 and F30: every node, alone on its path, gives the same logits.

    A contemplate token rides behind every node, and soft prompts lie in the cache.
    """
    generator = torch.Generator().manual_seed(seed)
    parents = (-1, *(int(torch.randint(max(0, i - 12), i, (1,), generator=generator)) for i in range(1, 60)))
    tokens = torch.randint(0, 256, (60,), generator=generator).tolist()
    tree = RowLayout(parents, k=1, kind="contemplate")
    soft = run_soft_prompt(target, torch.randn(n_soft, target.hidden_size, generator=generator))
    cache, masks = target.new_cache(1, 32, soft), MaskBuilder()
    assert cache.n_soft == n_soft
    for layout, inputs in (
        (RowLayout((-1,), n_pending=len(PROMPT)), target.embed([PROMPT])),
        (tree, torch.cat([target.embed([tokens]), torch.randn(1, 60, target.hidden_size)], dim=1)),
    ):
        positions = torch.tensor([layout.positions(cache.lengths[0])])
        hidden = target.forward(inputs, positions, masks.build([layout], cache, target.device), cache)
        if layout is not tree:
            cache.keep([range(len(PROMPT))])
    logits = target.logits(hidden.last[0, tree.node_rows()])
    for node in range(60):
        path, at = [], node
        while at >= 0:
            path.insert(0, tokens[at])
            at = parents[at]
        alone = target.model(input_ids=torch.tensor([PROMPT + path]), use_cache=False).logits[0, -1]
        assert (logits[node] - alone).abs().max() <= 1e-4 * max(1.0, float(alone.abs().max()))


def test_layers_that_cannot_roll_back_are_refused():
    """Guards F16."""
    config = Qwen3Config(**COMMON)
    config.layer_types = ["linear_attention"] * 8
    with pytest.raises(SpecVizError, match="linear_attention, whose cache cannot be rolled back"):
        check_layer_kinds(config)


def test_attention_that_ignores_the_mask_is_refused_at_load():
    """Guards F25: one attention layer that looks at everything it is given."""

    class Deaf(LlamaForCausalLM):
        def __init__(self, config):
            super().__init__(config)
            for layer in self.model.layers:
                layer.self_attn.forward = self._without_mask(layer.self_attn.forward)

        @staticmethod
        def _without_mask(forward):
            def deaf(*args, attention_mask=None, **kwargs):
                everything = None if attention_mask is None else torch.ones_like(attention_mask)
                return forward(*args, attention_mask=everything, **kwargs)

            return deaf

    with pytest.raises(SpecVizError, match="ignores the mask or the positions"):
        tiny_target(model_class=Deaf)


def test_positions_that_are_ignored_are_refused_at_load():
    """Guards F22."""

    class Blind(LlamaForCausalLM):
        def __init__(self, config):
            super().__init__(config)
            rotary = self.model.rotary_emb.forward
            self.model.rotary_emb.forward = lambda x, position_ids: rotary(
                x, position_ids=torch.arange(x.shape[1])[None] + int(position_ids.min())
            )

    with pytest.raises(SpecVizError, match="ignores the mask or the positions"):
        tiny_target(model_class=Blind)
