"""Passes and draft rounds of fixed shape give what those of their own shape give; a stand-in plays the CUDA graph.

The stand-in keeps what a graph demands: the same function over the same tensors, into memory that is used again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from specviz.drafters.draft_round import FixedWindow, SlicedWindow
from specviz.drafters.draft_tree import DraftedRound
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.eagle3_head import DraftCache
from specviz.drafters.plain import PlainDrafter
from specviz.settings import make_settings
from specviz.target.fixed_pass import ROW_RUNGS
from specviz.target.hidden import Hidden
from specviz.target.model import Target
from specviz.trace import BatchTrace, NodeTrace
from tests.heads import SHAPE, GuidedDrafter, confu_drafter, random_head
from tests.kit import OracleDrafter, answer_of, plain_answer, run_lane, tiny_engine, tiny_target

PROMPT = list(b"the quick brown fox")
N_NEW = 60


class Recorder:
    """Makes stand-ins of graphs and counts them."""

    def __init__(self) -> None:
        self.n_captured = self.n_replayed = 0

    def __call__(self, run: Callable[[], Any]) -> Callable[[], Any]:
        kept = run()
        self.n_captured += 1

        def replay() -> Any:
            self.n_replayed += 1
            for old, new in zip(tensors_of(kept), tensors_of(run()), strict=True):
                old.copy_(new)
            return kept

        return replay


def tensors_of(result: Hidden | DraftedRound) -> list[torch.Tensor]:
    """Return what a pass or a round returns in memory of the graph's."""
    if isinstance(result, Hidden):
        return [part for part in (result.last, result.features) if part is not None]
    return [*vars(result.candidates).values(), result.chosen, result.expanded, result.log_probs]


@pytest.fixture
def target() -> Target:
    return tiny_target()


@pytest.fixture(params=[False, True], ids=["fixed", "captured"])
def fixed(request) -> Target:
    """The same target with fixed shapes, and with graphs."""
    made = tiny_target()
    made.fixed_shapes, made.capture = True, Recorder() if request.param else None
    return made


def make_drafter(name: str, target: Target, answer: list[int]):
    oracle = OracleDrafter(PROMPT + answer, 4, 3, 3)
    return {
        "plain": PlainDrafter,
        "oracle": lambda: oracle,
        "eagle3": lambda: GuidedDrafter(target, random_head(target), oracle),
        "confu": lambda: confu_drafter(target),
    }[name]()


@pytest.mark.parametrize("name", ["plain", "oracle", "eagle3", "confu"])
def test_a_run_has_the_tokens_and_the_trees_of_passes_of_their_own_shape(target: Target, fixed: Target, name: str):
    answer = plain_answer(target, PROMPT, N_NEW)
    own, other = (run_lane(each, make_drafter(name, each, answer), PROMPT, N_NEW)[1] for each in (target, fixed))
    assert answer_of(own) == answer_of(other) == answer
    assert [[node.token_id for node in step.nodes] for step in own] == [
        [node.token_id for node in step.nodes] for step in other
    ]
    assert [step.mask for step in own] == [step.mask for step in other]
    assert [step.kv for step in own] == [step.kv for step in other]


def draft_tops(node: NodeTrace) -> list[int]:
    tops = node.next.draft_top5 if node.next else None
    return [top.token_id for top in tops or []]


@pytest.mark.parametrize("method", ["eagle3", "confu"])
def test_a_round_is_held_for_each_depth_and_copied_out(target: Target, fixed: Target, method: str):
    """What a record reads later, of any step, is that step's own; the shadow tree without f is a round too."""
    runs = []
    for each in (target, fixed):
        drafter = confu_drafter(each) if method == "confu" else Eagle3Drafter(each, random_head(each), SHAPE)
        runs.append(run_lane(each, drafter, PROMPT, N_NEW)[1])
    assert any(draft_tops(node) for step in runs[0] for node in step.nodes)
    for own, other in zip(*runs, strict=True):
        assert [node.token_id for node in own.nodes] == [node.token_id for node in other.nodes]
        assert [node.token_id for node in own.candidates or []] == [node.token_id for node in other.candidates or []]
        assert [node.token_id for node in own.shadow or []] == [node.token_id for node in other.shadow or []]
        for node, twin in zip(own.nodes, other.nodes, strict=True):
            assert (node.score, node.draft_prob) == pytest.approx((twin.score, twin.draft_prob), abs=1e-4)
            assert draft_tops(node) == draft_tops(twin)
    if isinstance(fixed.capture, Recorder):
        assert fixed.capture.n_replayed > 1.5 * N_NEW  # passes and rounds


def test_a_window_of_fixed_shape_shows_the_columns_in_use_and_no_other(target: Target):
    """Two verified rows in a cache of six columns, behind the future token's; two tree rows before this one's two."""
    loaded = random_head(target)
    cache = DraftCache(loaded.head.config, 6, target.device, target.dtype)
    cache.length = 2
    window = FixedWindow(loaded.head.rotary.at(0, 16, cache.keys), cache, torch.tensor([cache.end]))
    seen = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 1]], dtype=torch.bool)
    assert window.view(None, None).tree.int().tolist() == [[1, 1, 0, 0, 0, 0]]
    assert window.view(seen, None).tree.int().tolist() == [[1, 1, 1, 0, 1, 0], [1, 1, 0, 1, 0, 1]]
    rows = torch.ones(2, 2, 16)
    window.write(2, rows, 2 * rows)
    assert cache.keys[0, :, 0].tolist() == [0, 0, 0, 0, 0, 1, 1] and cache.values[1, 6, 3] == 2
    sliced = SlicedWindow(loaded.head, cache)
    for level in (0, 3):
        for own, other in zip(window.angles(level, rows), sliced.angles(level, rows), strict=True):
            assert torch.equal(own, other)


def test_a_graph_serves_all_passes_of_its_shape_until_the_memory_moves(fixed: Target):
    _, steps = run_lane(fixed, PlainDrafter(), PROMPT, N_NEW)
    if fixed.capture is None:
        return
    # Of 60 passes the first is the prompt's; the cache of 19 + 64 columns grows once: two graphs, each a pass late.
    assert len(steps) == N_NEW
    assert isinstance(fixed.capture, Recorder)
    assert fixed.capture.n_captured <= 3 and fixed.capture.n_replayed >= N_NEW - 6


def test_a_batch_that_shrinks_equals_itself_in_its_own_shapes(target: Target, fixed: Target):
    prompts = ["the quick", "a much longer prompt than the first", "x"]
    settings = make_settings(method="lookahead", raw=True, model="tiny", max_new_tokens=30, k=2, candidates=2, rows=12)
    own, other = (tiny_engine(each).run(prompts, settings) for each in (target, fixed))
    assert isinstance(own, BatchTrace) and isinstance(other, BatchTrace)
    for one, two in zip(own.batch, other.batch, strict=True):
        assert [token.token_id for token in one.answer] == [token.token_id for token in two.answer]


@pytest.mark.parametrize("n_rows", [1, 2, 8, 9, 128, 129])
def test_states_are_those_of_a_pass_in_its_own_shape(target: Target, fixed: Target, n_rows: int):
    """Rows of padding neither reach the real rows nor leave a NaN in the cache; more than 128 rows stay as they are."""
    found = []
    for each in (target, fixed):
        cache, generator = each.new_cache(1, 40), torch.Generator().manual_seed(n_rows)
        for n in (5, n_rows, n_rows, n_rows):
            embeds = torch.randn(1, n, each.hidden_size, generator=generator)
            positions = cache.lengths[0] + torch.arange(n)[None]
            mask = torch.ones(n, cache.base + n, dtype=torch.bool).tril(cache.base)[None, None]
            hidden = each.forward(embeds, positions, mask, cache, (1, 2, 3))
            cache.keep([range(min(n, 5))])
        assert hidden.features is not None and hidden.last.shape[1] == n_rows
        found.append((hidden.last, hidden.features))
    for own, other in zip(*found, strict=True):
        assert torch.allclose(own, other, atol=1e-4)
    assert n_rows <= ROW_RUNGS[-1] or not cache.passes


def test_a_target_that_cannot_says_why(target: Target):
    assert "one CUDA device" in str(target.use_cuda_graphs()) and not target.fixed_shapes
    sizes = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = MistralConfig(**sizes, **heads, sliding_window=8, eos_token_id=1, bos_token_id=0)
    assert "sliding windows" in str(tiny_target(config, MistralForCausalLM).use_cuda_graphs())
