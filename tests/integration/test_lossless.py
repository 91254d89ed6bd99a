"""On a tiny random model in float32: every lane gives the plain lane's tokens, and masks do what they say."""

import pytest
import torch

from specviz.decoding.sampling import Sampler
from specviz.settings import make_settings
from specviz.trace import BatchTrace, RunTrace
from tests.kit import OracleDrafter, Target, answer_of, plain_answer, run_lane, tiny_engine, tiny_target

PROMPT = list(b"the quick brown fox")
N_NEW = 40


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


def run(target: Target, prompts: str | list[str] = "the quick brown fox", **fields) -> RunTrace | BatchTrace:
    fields = {"method": "lookahead", "raw": True, "model": "tiny", "max_new_tokens": N_NEW} | fields
    return tiny_engine(target).run(prompts, make_settings(**fields))


def ids(trace: RunTrace) -> list[int]:
    return [token.token_id for token in trace.answer]


LANES = [
    {"k": 1},
    {"k": 2},
    {"k": 4},
    {"k": 8},
    {"k": 3, "slot_attention": "causal"},
    {"k": 2, "placeholder": "last-token"},
    {"k": 2, "candidates": 3, "rows": 24},
    {"k": 1, "candidates": 16, "rows": 64},
    {"k": 4, "candidates": 2, "rows": 60},
    {"k": 4, "rows": 5},
    {"k": 4, "threshold": 0.05},
    {"k": 4, "threshold": 1.0},
]


@pytest.mark.parametrize("lane", LANES, ids=str)
@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.8, "seed": 3}, {"temperature": 1.0, "top_p": 0.7}], ids=str)
def test_lookahead_verified_is_plain_token_for_token(target: Target, lane: dict, sampling: dict):
    """Guards F01: width, placeholder, slot attention and budget change nothing in the text."""
    plain = run(target, method="plain", **sampling)
    assert ids(run(target, **lane, **sampling)) == ids(plain)


@pytest.mark.parametrize("n_siblings", [1, 2, 3])
@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("k", [1, 4, 12])
def test_an_oracle_is_plain_token_for_token_and_leaves_a_clean_cache(target: Target, k: int, m: int, n_siblings: int):
    """Guards F21: with the right child as the last of its siblings, kept rows lie scattered."""
    plain = plain_answer(target, PROMPT, N_NEW)
    _, steps = run_lane(target, OracleDrafter(PROMPT + plain, k, m, n_siblings), PROMPT, N_NEW)
    assert answer_of(steps) == plain
    n_right = sum(len(step.accepted) for step in steps)
    assert n_right == 0 if m == 1 else n_right > 0


def test_a_right_oracle_accepts_everything(target: Target):
    plain = plain_answer(target, PROMPT, 21)
    _, steps = run_lane(target, OracleDrafter(PROMPT + plain + [0] * 9, 4), PROMPT, 21)
    assert [len(step.committed) for step in steps] == [1, 5, 5, 5, 5]


def test_cached_keys_equal_a_fresh_prefill(target: Target):
    """Guards F21 and F22: after scattered accepts, every column holds the key of its own token and position."""
    from specviz.decoding.layout import RowLayout
    from specviz.decoding.masks import MaskBuilder

    tree = RowLayout((-1, 0, 0, 2, 2))
    cache, masks = target.new_cache(1, 4), MaskBuilder()

    def forward(cache, layout, row_ids):
        positions = torch.tensor([layout.positions(cache.lengths[0])])
        target.forward(target.embed([row_ids]), positions, masks.build([layout], cache, target.device), cache)

    forward(cache, RowLayout((-1,), n_pending=6), PROMPT[:6])
    cache.keep([range(6)])
    forward(cache, tree, [10, 11, 12, 13, 14])
    cache.keep([tree.kept_rows([2, 4])])
    fresh = target.new_cache(1, 4)
    forward(fresh, RowLayout((-1,), n_pending=9), [*PROMPT[:6], 10, 12, 14])
    for kept, new in zip(cache.layers, fresh.layers, strict=True):
        assert torch.allclose(kept.keys[:, :, :9], new.keys[:, :, :9], atol=1e-4)
        assert torch.allclose(kept.values[:, :, :9], new.values[:, :, :9], atol=1e-4)


def test_stopping_anywhere_leaves_a_reusable_engine(target: Target):
    """Guards F20 and F41: a closed stream, then the same prompt again."""
    engine = tiny_engine(target)
    settings = make_settings(method="lookahead", raw=True, model="tiny", max_new_tokens=12, k=2)
    fresh = ids(engine.run("abc", settings))
    for n_events in range(1, 8):
        stream = engine.stream(["abc"], settings)
        for _ in range(n_events):
            next(stream)
        stream.close()
        assert ids(engine.run("abc", settings)) == fresh


def test_a_batch_equals_its_prompts_alone(target: Target):
    """Guards F31: unequal lengths, different ends, one lookahead length."""
    prompts = ["a", "the quick brown fox jumps", "0123456789", "xyz xyz"]
    for fields in ({"k": 2}, {"k": 1, "candidates": 6, "rows": 16}, {"k": 3, "selection": "self-consistent"}):
        together = run(target, prompts, **fields)
        alone = [run(target, prompt, **fields) for prompt in prompts]
        assert [ids(trace) for trace in together.batch] == [ids(trace) for trace in alone]
        assert [trace.row for trace in together.batch] == [0, 1, 2, 3]
    assert ids(run(target, prompts, method="plain").batch[2]) == ids(run(target, prompts[2], method="plain"))


def test_a_batch_whose_rows_end_at_different_steps(target: Target):
    """The EOS trick: declare a produced id to be EOS, so that rows end early, each at its own place."""
    prompts = ["a", "the quick brown fox jumps", "0123456789", "xyz xyz"]
    produced = [ids(run(target, prompt, method="plain")) for prompt in prompts]
    original, target.eos_ids = target.eos_ids, frozenset({produced[0][5], produced[2][9]})
    try:
        together = run(target, prompts, k=2)
        alone = [run(target, prompt, k=2) for prompt in prompts]
        assert [ids(trace) for trace in together.batch] == [ids(trace) for trace in alone]
        assert len({len(trace.steps) for trace in together.batch}) > 1
        assert together.batch[0].padding >= 0
    finally:
        target.eos_ids = original


def test_batch_rows_have_their_own_seeds(target: Target):
    settings = {"temperature": 1.0, "seed": 5, "k": 2}
    together = run(target, ["same", "same"], **settings)
    assert [trace.settings["seed"] for trace in together.batch] == [5, 6]
    assert ids(together.batch[1]) == ids(run(target, "same", **(settings | {"seed": 6})))


def test_the_recorded_mask_is_what_its_rule_says_and_what_ran(target: Target):
    from specviz.trace import expand_rule

    trace = run(target, k=2, candidates=3, rows=24)
    for step in trace.steps[1:]:
        rule = step.mask.rule
        assert step.mask.matrix() == expand_rule(rule, step.mask.first_column).matrix()
        assert step.mask.earlier_visible == expand_rule(rule, step.mask.first_column).earlier_visible
        assert len(step.mask.rows) == step.n_rows


def test_self_consistent_says_where_it_left_greedy_decoding(target: Target):
    trace = run(target, selection="self-consistent", threshold=0.0, k=3, compare_plain=True)
    assert not trace.exact
    assert any("Lossy" in notice for notice in trace.notices)
    unverified = [token for token in trace.answer if token.source == "unverified"]
    assert unverified and trace.metrics["tau"] > 1
    assert trace.divergence is not None and trace.baseline.divergence is not None
    assert trace.divergence.index == trace.baseline.divergence.index
    assert trace.divergence.expected_id == trace.baseline.divergence.expected_id
    judged_late = [n for s in trace.steps[:-1] for n in s.nodes if n.status == "unverified"]
    assert judged_late and all(node.target_prob is not None for node in judged_late)
    assert all(node.target_prob is None for node in trace.steps[-1].nodes)


def test_self_consistent_that_takes_nothing_is_plain(target: Target):
    trace = run(target, selection="self-consistent", threshold=1.0, k=3)
    assert ids(trace) == ids(run(target, method="plain"))
    assert trace.divergence is None


def test_compare_plain_measures_and_agrees(target: Target):
    trace = run(target, k=2, compare_plain=True)
    assert trace.baseline.equal and trace.baseline.n_equal == N_NEW
    assert trace.metrics["speedup"] > 0
    assert run(target, k=2).metrics["speedup"] is None


def test_light_and_full_records_agree_on_everything_they_share(target: Target):
    full, light = run(target, k=2), run(target, k=2, record="light")
    assert ids(full) == ids(light)
    for one, other in zip(full.steps, light.steps, strict=True):
        assert [n.model_dump(exclude={"next", "miss"}) for n in one.nodes] == [
            n.model_dump(exclude={"next", "miss"}) for n in other.nodes
        ]
    assert light.steps[1].candidates is None and light.steps[1].mask.bits is None


def test_misses_are_explained(target: Target):
    trace = run(target, k=2, candidates=3, rows=12)
    misses = [node.miss for step in trace.steps[1:] for node in step.nodes if node.miss is not None]
    assert {miss.reason for miss in misses} <= {"below_top_k", "pruned", "depth_limit"}
    for step in trace.steps[2:]:
        extra = step.committed[-1]
        if extra.source == "correction":
            last = step.nodes[step.accepted[-1] if step.accepted else 0]
            assert last.miss is not None and last.miss.token_id == extra.token_id


def test_sampling_draws_the_same_number_for_the_same_place(target: Target):
    plain = plain_answer(target, PROMPT, N_NEW, sampler=Sampler(1.0, 0.9, 11))
    for k, n_siblings in ((1, 1), (4, 1), (3, 3)):
        drafter = OracleDrafter(PROMPT + plain, k, 3, n_siblings)
        _, steps = run_lane(target, drafter, PROMPT, N_NEW, sampler=Sampler(1.0, 0.9, 11))
        assert answer_of(steps) == plain
