"""Median times of functions that are run in turns, so that a machine's slow minutes fall on all of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch

WARM_UP = 3


def median_times(functions: Sequence[Callable[[], Any]], repeats: int = 20) -> list[float]:
    """Return the median milliseconds of each function; on CUDA each is waited for."""
    times: list[list[float]] = [[] for _ in functions]
    for repeat in range(WARM_UP + repeats):
        for own, function in zip(times, functions, strict=True):
            elapsed = _time_once(function)
            if repeat >= WARM_UP:
                own.append(elapsed)
    return [statistics.median(own) for own in times]


def _time_once(function: Callable[[], Any]) -> float:
    started = perf_counter()
    function()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return 1000 * (perf_counter() - started)
