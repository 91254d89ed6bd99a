"""The distribution, the random number, and the output law of verification."""

import math
from collections import Counter

import pytest
import torch

from specviz.decoding.sampling import Sampler, draw, nucleus, uniform
from specviz.decoding.tree import DraftTree
from specviz.decoding.verification import verify

LOGITS = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -3.0])
N_DRAWS = 20_000


TREES = pytest.mark.parametrize(
    "tree",
    [
        DraftTree((9, 0), (-1, 0), (1.0,) * 2, (0.0,) * 2),
        DraftTree((9, 0, 2), (-1, 0, 1), (1.0,) * 3, (0.0,) * 3),
        DraftTree((9, 0, 3, 1, 2, 7), (-1, 0, 0, 0, 1, 2), (1.0,) * 6, (0.0,) * 6),
    ],
    ids=["chain of 1", "chain of 2", "tree"],
)


def chi_square(counts: Counter, probabilities: torch.Tensor) -> float:
    expected = (probabilities * sum(counts.values())).tolist()
    assert all(counts[i] == 0 for i, value in enumerate(expected) if value == 0)
    return sum((counts[i] - value) ** 2 / value for i, value in enumerate(expected) if value > 0)


def pool_rare(counts: Counter, law: torch.Tensor) -> tuple[Counter, torch.Tensor]:
    """Pool the possible cells that fewer than 5 draws are expected in, where chi-square is no approximation, in one."""
    rare = (law > 0) & (law * sum(counts.values()) < 5)
    pooled = Counter({cell: n for cell, n in counts.items() if not rare[cell]})
    pooled[len(law)] = sum(n for cell, n in counts.items() if rare[cell])
    return pooled, torch.cat([law.masked_fill(rare, 0), law[rare].sum()[None]])


def critical(n_cells: int) -> float:
    """Return the 99.9 % point of chi-square with n_cells - 1 degrees (Wilson and Hilferty's approximation)."""
    n = n_cells - 1
    return n * (1 - 2 / (9 * n) + 3.09 * math.sqrt(2 / (9 * n))) ** 3


@pytest.mark.parametrize("top_p", [1.0, 0.8])
@TREES
def test_the_first_token_follows_the_target_whatever_is_drafted(tree: DraftTree, top_p: float):
    """Guards F03, F04 and F05: the output law is the target's, for chains and trees, with and without top-p."""
    counts: Counter = Counter()
    for seed in range(N_DRAWS):
        sampler = Sampler(temperature=0.7, top_p=top_p, seed=seed)
        verdict = verify(tree, lambda node, s=sampler: s.choose(LOGITS, 100 + tree.depths[node]))
        counts[tree.token_ids[verdict.accepted[0]] if verdict.accepted else verdict.extra_id] += 1
    law = nucleus(torch.softmax(LOGITS / 0.7, dim=-1), top_p)
    assert chi_square(counts, law) < critical(int((law > 0).sum()))


@TREES
@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_the_first_two_tokens_follow_the_target_together(tree: DraftTree, top_p: float):
    """Guards F03 and F05: the second token's law depends on the first, and it may fall in the same step or the next.

    A number that the walk used twice, or used where the plain lane does not, would tie the two together.
    """
    after = torch.stack([LOGITS.roll(token) for token in range(len(LOGITS))])  # (V, V), a law after each token
    counts: Counter = Counter()
    for seed in range(N_DRAWS):
        sampler = Sampler(temperature=0.7, top_p=top_p, seed=seed)

        def choose(node: int, s: Sampler = sampler) -> int:
            return s.choose(after[tree.token_ids[node]] if node else LOGITS, 100 + tree.depths[node])

        verdict = verify(tree, choose)
        committed = [*(tree.token_ids[node] for node in verdict.accepted), verdict.extra_id]
        if len(committed) == 1:
            committed.append(sampler.choose(after[committed[0]], 101))
        counts[committed[0] * len(LOGITS) + committed[1]] += 1
    first = nucleus(torch.softmax(LOGITS / 0.7, dim=-1), top_p)
    second = torch.stack([nucleus(torch.softmax(logits / 0.7, dim=-1), top_p) for logits in after])
    law = (first[:, None] * second).flatten()  # (V * V,)
    counts, law = pool_rare(counts, law)
    assert chi_square(counts, law) < critical(int((law > 0).sum()))


def test_a_child_is_accepted_with_the_target_s_probability_of_it():
    """The rule of EAGLE-2 accepts a deterministic child x with probability p(x); so does ours."""
    tree = DraftTree((9, 1), (-1, 0), (1.0,) * 2, (0.0,) * 2)
    samplers = [Sampler(temperature=1.0, seed=seed) for seed in range(N_DRAWS)]
    n_accepted = sum(bool(verify(tree, lambda node, s=s: s.choose(LOGITS, 5 + node)).accepted) for s in samplers)
    p = float(torch.softmax(LOGITS, dim=-1)[1])
    assert abs(n_accepted / N_DRAWS - p) < 4 * math.sqrt(p * (1 - p) / N_DRAWS)


def test_the_number_depends_on_seed_and_position_alone_and_is_uniform():
    assert uniform(3, 7) == uniform(3, 7)
    assert len({uniform(seed, position) for seed in range(30) for position in range(30)}) == 900
    tenths = Counter(int(10 * uniform(seed, 11)) for seed in range(N_DRAWS))
    assert chi_square(tenths, torch.full((10,), 0.1)) < critical(10)


def test_nucleus_keeps_the_smallest_set_and_renormalises():
    kept = nucleus(torch.tensor([0.5, 0.1, 0.3, 0.1]), 0.7)
    assert kept.tolist() == pytest.approx([0.625, 0.0, 0.375, 0.0])


def test_nucleus_of_a_flat_large_vocabulary_is_exact():
    """The shortcut that looks among 1,024 tokens first must not change a nucleus that is larger."""
    flat = torch.full((4096,), 1 / 4096)
    assert int((nucleus(flat, 0.5) > 0).sum()) == 2048


def test_greedy_ties_go_to_the_lowest_id():
    assert Sampler().choose(torch.tensor([0.0, 3.0, 3.0]), 0) == 1


def test_a_number_near_one_never_draws_an_impossible_token():
    """Guards F06: rounding at the end of the cumulative sum must not fall off the distribution."""
    assert draw(torch.tensor([0.3, 0.7, 0.0, 0.0]), 1 - 2**-53) == 1


@pytest.mark.parametrize("temperature", [0.01, 1.0, 5.0])
def test_extreme_logits_give_no_nan(temperature: float):
    """Guards F06: one-hot targets and tiny temperatures."""
    sampler = Sampler(temperature=temperature, top_p=0.9, seed=1)
    logits = torch.tensor([-1e4, 1e4, 0.0])
    assert sampler.probabilities(logits).isfinite().all()
    assert sampler.choose(logits, 0) == 1


def test_one_hot_target_on_a_rejected_token_gives_a_correction():
    tree = DraftTree((9, 4), (-1, 0), (1.0,) * 2, (0.0,) * 2)
    verdict = verify(tree, lambda node: 6)
    assert (verdict.accepted, verdict.extra_id, verdict.is_correction) == ((), 6, True)


def test_a_fully_accepted_chain_ends_with_a_bonus():
    tree = DraftTree((9, 4, 5), (-1, 0, 1), (1.0,) * 3, (0.0,) * 3)
    verdict = verify(tree, [4, 5, 6].__getitem__)
    assert (verdict.accepted, verdict.extra_id, verdict.is_correction) == ((1, 2), 6, False)
