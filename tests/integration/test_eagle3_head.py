"""The EAGLE-3 head against a second, plain implementation; its alignment, its features and its cache."""

import pytest
import torch

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.drafters.base import PassResult
from specviz.drafters.draft_tree import NodeLogProbs, TreeShape
from specviz.drafters.eagle3 import Eagle3Drafter, HeadRun
from specviz.drafters.eagle3_head import FIRST_COLUMN
from tests.heads import GuidedDrafter, random_head
from tests.kit import OracleDrafter, Target, answer_of, plain_answer, run_lane, tiny_target
from tests.plain_head import PlainHead, path_to

PROMPT = list(b"the quick brown fox jumps")
VARIANTS = [
    {},
    {"n_kv_heads": 1},
    {"n_kv_heads": 4},
    {"norm_before_residual": True},
    {"norm_before_fc": True},
    {"fc_norm": True},
    {"norm_output": True},
    {"attention_bias": True},
    {"qk_norm": True},
    {"own_embedding": True, "hidden_size": 48, "head_dim": 12},
]


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_node_equals_its_path_in_a_plain_implementation(target: Target, variant: dict):
    loaded = random_head(target, **variant)
    drafter = Eagle3Drafter(target, loaded, TreeShape(nodes=20, depth=4, top_k=3))
    run = HeadRun(drafter, PROMPT)
    torch.manual_seed(1)
    features = torch.randn(len(PROMPT), 3 * target.hidden_size)
    run._ids, run._news = [*PROMPT, 7], features
    assert run.absorb(max_depth=99) == 4
    drafted = run.draft(4)
    tree, plain = drafted.tree(7), PlainHead(loaded, target)
    log_probs = NodeLogProbs(drafted)
    assert len(log_probs) > 5
    for node in log_probs:
        expected = plain.path_log_probs([*PROMPT[1:], 7], features, path_to(tree, node))
        said = log_probs[node][loaded.vocabulary.target_ids]
        assert torch.allclose(said, expected, atol=1e-4), node


def test_features_are_the_inputs_of_the_named_layers(target: Target):
    """Guards F34: hidden_states[i] of transformers is what enters layer i, before any norm."""
    ids = torch.tensor([PROMPT])
    states = target.model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
    loaded = random_head(target, feature_layers=(1, 4, 7))
    drafter = GuidedDrafter(target, loaded, OracleDrafter(PROMPT, 1))
    _, steps = run_lane(target, drafter, PROMPT, 1)
    run = HeadRun(drafter, PROMPT)
    layout = RowLayout((-1,), n_pending=len(PROMPT))
    cache = target.new_cache(1, len(PROMPT))
    mask = MaskBuilder().build([layout], cache, target.device)
    hidden = target.forward(target.embed(ids), torch.arange(len(PROMPT))[None], mask, cache, drafter.feature_layers)
    run.observe(PassResult(layout, hidden.last[0], hidden.features[0], (), tuple(answer_of(steps))))
    expected = torch.cat([states[layer] for layer in (1, 4, 7)], -1)[0]
    assert torch.allclose(run._news, expected, atol=1e-5)


@pytest.mark.parametrize("n_siblings", [1, 3])
def test_the_heads_cache_holds_the_verified_rows_alone(target: Target, n_siblings: int):
    """Guards F19 and F21: after scattered accepts it equals one fresh reading of the text, and never lags."""
    loaded = random_head(target)
    plain = plain_answer(target, PROMPT, 40)
    drafter = GuidedDrafter(target, loaded, OracleDrafter(PROMPT + plain, k=5, m=4, n_siblings=n_siblings))
    sequence, steps = run_lane(target, drafter, PROMPT, 40)
    session = drafter.sessions[0]
    assert sum(len(step.accepted) for step in steps) > 10
    assert all(held == verified for held, verified in session.lengths[1:])

    cache = session.own.run.cache
    text = torch.tensor([sequence.token_ids[: cache.length]])
    states = target.model(input_ids=text, output_hidden_states=True, use_cache=False).hidden_states
    features = torch.cat([states[layer] for layer in target.feature_layers], -1)[0]
    fresh = HeadRun(Eagle3Drafter(target, loaded, drafter.shape), sequence.token_ids[: cache.length + 1])
    fresh._news = features
    fresh.absorb(99)
    columns = slice(FIRST_COLUMN, FIRST_COLUMN + cache.length)
    assert torch.allclose(cache.keys[:, columns], fresh.cache.keys[:, columns], atol=1e-3)
    assert torch.allclose(cache.values[:, columns], fresh.cache.values[:, columns], atol=1e-3)
