"""Few messages a second, however many steps: a browser that gets every step alone falls behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

SECONDS_BETWEEN_MESSAGES = 0.1


def pace(
    items: Iterable[Item],
    interval: float = SECONDS_BETWEEN_MESSAGES,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[list[Item]]:
    """Group items in order, so that two groups are at least `interval` seconds apart.

    The first item goes out at once. It sleeps only before the last group, when the model's work is over:
    sleeping earlier would slow the decoding down, which waits for this generator.
    """
    group: list[Item] = []
    due = clock()
    for item in items:
        group.append(item)
        if clock() >= due:
            yield group
            group, due = [], clock() + interval
    if group:
        sleep(max(0.0, due - clock()))
        yield group
