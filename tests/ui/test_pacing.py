"""At most ten messages a second, and nothing lost or out of order."""

from __future__ import annotations

import itertools

import pytest

from specviz.ui.pacing import pace


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def arrive(clock: Clock, n: int, seconds: float):
    for i in range(n):
        clock.now += seconds
        yield i


@pytest.mark.parametrize("seconds", [0.0, 0.004, 0.03, 0.25])
def test_groups_keep_order_and_distance(seconds):
    """F42: a yield for every step saturates the browser."""
    clock, times, seen = Clock(), [], []
    for group in pace(arrive(clock, 300, seconds), 0.1, clock, clock.sleep):
        times.append(clock.now)
        seen += group
    assert seen == list(range(300))
    assert all(later - earlier >= 0.1 - 1e-9 for earlier, later in itertools.pairwise(times))


def test_the_first_item_goes_out_at_once():
    clock = Clock()
    assert next(pace(arrive(clock, 5, 0.0), 0.1, clock, clock.sleep)) == [0]


def test_closing_closes_the_source():
    """F41: what lies behind the last yield must run when the reader leaves."""
    closed = []

    def source():
        try:
            yield from range(10)
        finally:
            closed.append(True)

    items = source()
    groups = pace(items, 0.0)
    next(groups)
    groups.close()
    items.close()
    assert closed == [True]
