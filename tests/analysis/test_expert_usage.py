"""The use of experts by hand: each routing counts as one, however its weights were scaled."""

import math

import pytest

from specviz.analysis.expert_usage import ExpertUsage, context_information, count_experts, pool_usage
from specviz.trace import RoutingTrace
from tests.analysis.traces import make_run, make_step


def route(site: str, **weights: float) -> RoutingTrace:
    selected = [int(name[1:]) for name in weights]
    return RoutingTrace(site=site, probabilities=[0.25] * 4, selected=selected, weights=list(weights.values()))


def test_each_routing_counts_as_one():
    first = make_step(routing=[route("con", e1=0.3, e3=0.1), route("f", e0=1.0)])
    second = make_step(index=2, routing=[route("con", e3=0.5)])
    assert count_experts(make_run([first, second])) == {
        "con": ExpertUsage(n_routings=2, weights=(0, 0.3 / 0.4, 0, 0.1 / 0.4 + 1)),
        "f": ExpertUsage(n_routings=1, weights=(1, 0, 0, 0)),
    }
    assert count_experts(make_run([make_step()])) == {}


def test_entropy_tells_collapse_from_even_use():
    alone = ExpertUsage(n_routings=5, weights=(5, 0, 0, 0))
    even = ExpertUsage(n_routings=8, weights=(2, 2, 2, 2))
    assert (alone.entropy, alone.n_effective) == (0, 1)
    assert even.entropy == pytest.approx(math.log(4)) and even.n_effective == pytest.approx(4)
    assert pool_usage([alone, even]).shares == pytest.approx([7 / 13, 2 / 13, 2 / 13, 2 / 13])


def test_the_context_may_decide_the_expert_or_not():
    prose = ExpertUsage(n_routings=3, weights=(3, 0))
    code = ExpertUsage(n_routings=3, weights=(0, 3))
    both = ExpertUsage(n_routings=6, weights=(3, 3))
    assert context_information([prose, code]) == pytest.approx(math.log(2))
    assert context_information([both, both]) == pytest.approx(0)
