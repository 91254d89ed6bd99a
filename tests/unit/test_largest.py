"""The largest few values of a row, on a CPU by a bound and elsewhere by sorting."""

import pytest
import torch

from specviz.decoding.largest import Largest, argmaxes, largest


def by_sorting(rows: torch.Tensor, n: int) -> Largest:
    best = rows.sort(dim=-1, descending=True, stable=True)
    return Largest(best.values[:, :n], best.indices[:, :n])


@pytest.mark.parametrize("n_values", [1, 3, 64, 500, 1000, 49152])
def test_the_bound_finds_what_sorting_finds(n_values: int):
    rows = torch.randn(4, n_values, generator=torch.Generator().manual_seed(n_values))
    rows[1] = (rows[1] * 4).round() / 4  # many equal values, as 16-bit logits have
    rows[2, n_values // 3 :] = float("-inf")  # what a draft cannot say
    rows[3] = 0.5
    for n in (1, 5, 32):
        expected, found = by_sorting(rows, n), largest(rows, n)
        assert torch.equal(found.values, expected.values)
        assert torch.equal(found.indices, expected.indices)


def test_equal_values_go_to_the_lowest_id():
    """Guards against a top-five list whose first token is not the argmax."""
    rows = torch.zeros(1, 1000)
    rows[0, [700, 3, 650]] = 2.0
    assert largest(rows, 4).indices.tolist() == [[3, 650, 700, 0]]


def test_the_argmax_of_equal_values_is_the_lowest_id():
    rows = torch.zeros(3, 1000)
    rows[1, [700, 3, 650]] = 2.0
    rows[2, 999] = 1.0
    assert argmaxes(rows) == [0, 3, 999] == rows.argmax(dim=-1).tolist()
