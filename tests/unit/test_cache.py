"""The key/value cache: what is kept, where it lies, how it grows."""

import pytest
import torch

from specviz.target.cache import RowCache


@torch.inference_mode()
def write(cache: RowCache, *rows: float, layer: int = 0) -> torch.Tensor:
    """Write one row for each value to every batch row; keys are the values themselves."""
    n_batch = len(cache.lengths)
    states = torch.tensor(rows).reshape(1, 1, -1, 1).expand(n_batch, 2, -1, 4)
    keys, _ = cache.update(states, states, layer)
    return keys[:, 0, :, 0]


def columns(cache: RowCache, batch_row: int = 0) -> list[float]:
    """Return the prefix of a batch row, as the next pass sees it."""
    start = cache.n_soft
    return write(cache, -1.0)[batch_row, start : start + cache.lengths[batch_row]].tolist()


def test_scattered_rows_are_kept_in_order():
    """Guards F21: accepted rows of a tree become a dense prefix."""
    cache = RowCache(1, 1, 4)
    write(cache, 0, 1, 2)
    cache.keep([[0, 1, 2]])
    write(cache, 10, 11, 12, 13, 14)
    cache.keep([[0, 2, 4]])
    assert columns(cache) == [0, 1, 2, 10, 12, 14]


@pytest.mark.parametrize("kept", [[], [0], [0, 1, 2]])
def test_the_length_is_what_was_kept(kept: list[int]):
    """Guards F15 and F19: nothing, something, everything; the length is exact each time."""
    cache = RowCache(1, 1, 2)
    for _ in range(5):
        before = cache.lengths[0]
        write(cache, 1, 2, 3)
        cache.keep([kept])
        assert cache.lengths[0] == before + len(kept)


def test_a_row_that_was_not_written_is_refused():
    cache = RowCache(1, 1, 4)
    write(cache, 1, 2)
    with pytest.raises(IndexError):
        cache.keep([[0, 500]])


def test_growth_keeps_every_value():
    cache = RowCache(1, 1, 1)
    expected = []
    for value in range(40):
        write(cache, float(value), 99.0)
        cache.keep([[0]])
        expected.append(float(value))
    assert columns(cache) == expected


def test_batch_rows_are_compacted_apart():
    """Guards F31: rows of a batch accept different numbers of tokens."""
    cache = RowCache(1, 2, 4)
    write(cache, 0, 1, 2)
    cache.keep([[0], [0, 1, 2]])
    write(cache, 10, 11)
    cache.keep([[1], [0]])
    assert (columns(cache, 0), columns(cache, 1)) == ([0, 11], [0, 1, 2, 10])


def test_a_finished_batch_row_can_leave():
    cache = RowCache(1, 3, 4)
    write(cache, 0, 1)
    cache.keep([[0], [0, 1], [1]])
    cache.select([1, 2])
    assert (cache.lengths, columns(cache, 0), columns(cache, 1)) == ([2, 1], [0, 1], [1])


def test_soft_rows_stay_in_front_and_are_not_counted():
    """Guards F29: soft rows come with the model's key/value heads."""
    soft = torch.full((1, 2, 3, 4), 7.0)
    cache = RowCache(1, 1, 4, soft=[(soft, soft)])
    seen = write(cache, 1, 2)
    assert seen[0].tolist() == [7, 7, 7, 1, 2]
    cache.keep([[1]])
    assert (cache.lengths, columns(cache)) == ([1], [2])
