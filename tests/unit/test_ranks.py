"""Ranks of tokens in the target's distribution, against a sort; both ways of counting agree."""

import torch

from specviz.decoding.record import _count_before_at_once, ranks_of


def test_the_rank_is_the_place_in_a_stable_descending_sort():
    torch.manual_seed(0)
    rows = torch.randint(0, 5, (4, 40)).float()  # many ties
    row_of = torch.arange(4).repeat_interleave(40)
    token_ids = torch.arange(40).repeat(4)
    order = rows.sort(dim=-1, descending=True, stable=True).indices
    expected = order.argsort(dim=-1)[row_of, token_ids].tolist()
    assert ranks_of(rows, row_of, token_ids) == expected
    assert _count_before_at_once(rows, row_of, token_ids).tolist() == expected


def test_the_argmax_has_rank_0():
    rows = torch.tensor([[1.0, 3.0, 3.0]])
    assert ranks_of(rows, torch.tensor([0, 0, 0]), torch.tensor([0, 1, 2])) == [2, 0, 1]
    assert int(rows.argmax()) == 1
