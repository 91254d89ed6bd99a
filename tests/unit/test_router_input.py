"""The input of a router in training, and its folding into the weight that is saved."""

import torch

from specviz.training.router_input import RouterInput, measure_input


def test_a_hand_case():
    """Sizes 2 and 4, common direction (0.6, 0.8): (2, 4) is (1, 1), of which 1.4 times the direction goes."""
    router_input = RouterInput(torch.tensor([2.0, 4.0]), torch.tensor([0.6, 0.8]))
    assert torch.allclose(router_input(torch.tensor([2.0, 4.0])), torch.tensor([1 - 0.84, 1 - 1.12]))


def test_what_contexts_share_cannot_choose_an_expert():
    draw = torch.Generator().manual_seed(0)
    states = torch.randn(500, 16, generator=draw) + 9 * torch.randn(16, generator=draw)
    router_input = measure_input(states)
    assert torch.allclose(router_input(states).mean(dim=0), torch.zeros(16), atol=1e-4)
    assert float(router_input(states).std(dim=0).min()) > 0.01


def test_the_saved_weight_routes_plain_states_as_training_did():
    draw = torch.Generator().manual_seed(1)
    states, weight = torch.randn(50, 12, generator=draw) + 2, torch.randn(8, 12, generator=draw)
    router_input = measure_input(states)
    folded = router_input.fold(weight)
    assert torch.allclose(states @ folded.T, router_input(states) @ weight.T, atol=1e-5)
    again = router_input.unfold(folded)
    assert torch.allclose(router_input(states) @ again.T, router_input(states) @ weight.T, atol=1e-5)


def test_a_router_at_zero_stays_at_zero():
    router_input = measure_input(torch.zeros(3, 4))
    assert not router_input.unfold(torch.zeros(8, 4)).any() and not router_input.fold(torch.zeros(8, 4)).any()
    assert not router_input(torch.zeros(4)).any()
