"""Mixtures of experts by hand: softmax over all first, then the best K (guards F38)."""

import math

import pytest
import torch

from specviz.drafters.expert_embedding import ExpertConfig, ExpertEmbedding, choose_experts, routing_trace

LOGITS = torch.tensor([0.0, 1.0, 2.0, 3.0])
TOTAL = 1 + math.e + math.e**2 + math.e**3
PROBS = [1 / TOTAL, math.e / TOTAL, math.e**2 / TOTAL, math.e**3 / TOTAL]


@pytest.mark.parametrize(("k", "selected"), [(1, [3]), (2, [3, 2]), (4, [3, 2, 1, 0])])
def test_weights_are_the_softmax_over_all_experts(k: int, selected: list[int]):
    routing = choose_experts(LOGITS, k, renormalise=False)
    assert routing.probabilities.tolist() == pytest.approx(PROBS)
    assert routing.selected.tolist() == selected
    assert routing.weights.tolist() == pytest.approx([PROBS[expert] for expert in selected])


@pytest.mark.parametrize(("k", "weights"), [(1, [1.0]), (2, [math.e / (1 + math.e), 1 / (1 + math.e)])])
def test_renormalised_weights_sum_to_one(k: int, weights: list[float]):
    assert choose_experts(LOGITS, k, renormalise=True).weights.tolist() == pytest.approx(weights)


def test_equal_experts_are_chosen_by_index():
    assert choose_experts(torch.zeros(8), 2, renormalise=True).selected.tolist() == [0, 1]


def mixture(n_selected: int, renormalise: bool = True) -> ExpertEmbedding:
    experts = ExpertEmbedding(ExpertConfig(4, n_selected, renormalise), input_size=4, embedding_size=2)
    with torch.no_grad():
        experts.router.weight.copy_(torch.eye(4))
        experts.experts.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 0.0], [0.0, 4.0]]))
    return experts.requires_grad_(False)


def test_the_embedding_is_the_weighted_sum_of_the_selected_experts():
    experts = mixture(2, renormalise=False)
    assert experts.mix(experts.route(LOGITS)).tolist() == pytest.approx([4 * PROBS[2], 4 * PROBS[3]])


def test_the_uniform_mixture_is_the_mean_of_all_experts():
    experts = mixture(2)
    routing = experts.uniform()
    assert experts.mix(routing).tolist() == pytest.approx([1.25, 1.25])
    assert routing.selected.tolist() == [0, 1, 2, 3]


def test_a_routing_is_traced_as_it_was_used():
    experts = mixture(2)
    trace = routing_trace("f", experts.route(LOGITS))
    assert (trace.site, trace.node, trace.selected) == ("f", None, [3, 2])
    assert trace.probabilities == pytest.approx(PROBS)
    assert sum(trace.weights) == pytest.approx(1.0)
