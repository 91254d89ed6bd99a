"""Which answers a step learns from, how rates move, which parameters move how, and how far a chain gets."""

import itertools

import pytest
import torch
from torch import nn

from specviz.training.corpus import Answer
from specviz.training.heldout import ChainScore
from specviz.training.optimizer import rate_share, split_parameters
from specviz.training.plan import is_held_out, plan_batches, split_corpus
from specviz.training.unroll import Span


def answer(prompt: str, temperature: float = 0.0, n: int = 10) -> Answer:
    return Answer("file", temperature, prompt, (1, 2, 3), tuple(range(10, 10 + n)))


def test_a_plan_passes_over_every_answer_once_an_epoch():
    lengths = [5, 7, 3, 9, 4, 8]
    batches = list(itertools.islice(plan_batches(lengths, 10, seed=1), 12))
    epoch = list(itertools.takewhile(lambda seen: len(seen) < 6, itertools.accumulate(batches)))
    assert sorted(epoch[-1] + batches[len(epoch)]) == list(range(6))
    assert all(sum(lengths[i] for i in batch[:-1]) < 10 for batch in batches)


def test_a_plan_goes_on_in_the_middle():
    lengths = list(range(3, 40))
    whole = list(itertools.islice(plan_batches(lengths, 30, seed=2), 60))
    assert list(itertools.islice(plan_batches(lengths, 30, seed=2, skip=41), 19)) == whole[41:]


def test_held_out_prompts_are_never_trained_on_at_any_temperature():
    prompts = [f"prompt {i}" for i in range(400)]
    answers = [answer(p, t) for p in prompts for t in (0.0, 1.0)] + [answer("short", n=3)]
    trained, measured = split_corpus(answers, 5)
    assert not {a.prompt for a in trained} & {p for p in prompts if is_held_out(p)}
    assert len(measured) == 5 and all(a.temperature == 0 and is_held_out(a.prompt) for a in measured)
    assert len(trained) == 2 * sum(not is_held_out(p) for p in prompts)


def test_the_rate_rises_stays_and_falls_to_zero():
    shares = [rate_share(step, 100, warm_up=10, cool_down=0.2) for step in range(101)]
    assert shares[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert shares[9:80] == [1.0] * 71
    assert shares[90] == pytest.approx(0.5) and shares[100] == 0


def test_what_was_added_moves_apart_from_matrices_and_the_output_embedding():
    module = nn.ModuleDict({"fc": nn.Linear(3, 3, bias=False), "lm_head": nn.Linear(3, 5, bias=False)})
    module["norm"], module["experts"] = nn.RMSNorm(3), nn.Linear(3, 2, bias=False)
    module["frozen"] = nn.Linear(3, 3).requires_grad_(False)
    module["router"] = nn.Linear(3, 4, bias=False)
    matrices, others, routers, added = split_parameters(module.named_parameters())
    assert [tuple(p.shape) for p in matrices] == [(3, 3)]
    assert [tuple(p.shape) for p in others] == [(5, 3), (3,)]
    assert [tuple(p.shape) for p in routers] == [(4, 3)]
    assert [tuple(p.shape) for p in added] == [(2, 3)]


def test_a_chain_walks_from_one_mistake_to_the_next():
    """Rows 0 to 4: two right, then none, then one, as a chain from row 0 meets them: passes of 3, 1 and 1 tokens."""
    right = torch.tensor([[1, 0, 0, 0, 1], [1, 1, 0, 1, 0]], dtype=torch.bool)
    valid = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]], dtype=torch.bool)
    score = ChainScore()
    score.add(right, valid, [Span(slice(0, 8), slice(0, 5), 3)])
    assert (score.n_tokens, score.n_passes) == (5, 3)
    assert score.accuracy == pytest.approx([2 / 5, 3 / 4])
