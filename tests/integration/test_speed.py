"""What `specviz.evaluation.speed` tells of drafting and verification; the times themselves are not tested."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from specviz.decoding.engine import Engine
from specviz.evaluation import draft_cost, verification_cost
from specviz.evaluation.timing import median_times
from tests.kit import tiny_target


def test_each_draft_level_and_each_verification_is_told(monkeypatch: pytest.MonkeyPatch):
    def time_in_order(functions: Sequence[Callable[[], Any]]) -> list[float]:
        for function in functions:
            function()
        return [float(10 * place) for place in range(1, len(functions) + 1)]

    monkeypatch.setattr(draft_cost, "median_times", time_in_order)
    monkeypatch.setattr(verification_cost, "median_times", time_in_order)
    engine = Engine(["tiny"])
    engine.add_target("tiny", tiny_target())
    eagle3, confu, *contemplate = draft_cost.draft_cost(engine, "tiny").splitlines()
    levels = "root's pass 10.0 ms (8 % of a step), further levels 10.0 (8 %)" + 4 * ", 10.0 (8 %)"
    assert f"draft of eagle3, 30 nodes, 10 a level: {levels}; in all 60.0 of 130.0 ms" == eagle3
    assert f"draft of confu, 30 nodes, 10 a level: {levels}; in all 60.0 of 130.0 ms" == confu
    assert [line.split("forward of ")[1].split()[0] for line in contemplate] == ["16", "32", "60", "120", "240"]
    assert all(line.endswith("20.0 ms: 0.50") for line in contemplate)


def test_functions_are_timed_in_turns():
    calls: list[str] = []
    times = median_times((lambda: calls.append("a"), lambda: calls.append("b")), repeats=2)
    assert "".join(calls) == "ab" * 5
    assert all(time >= 0 for time in times)
