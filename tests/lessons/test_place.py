"""Places by rule, on a run written by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "analysis"))

from traces import make_node, make_run, make_step, make_token

from specviz.errors import SpecVizError
from specviz.lessons import find_place
from specviz.trace import LateVerdict, RoutingTrace

ROUTING = RoutingTrace(site="con", node=None, probabilities=[1.0], selected=[0], weights=[1.0])
LATE = LateVerdict(step=2, node=1, target_prob=0.1, target_rank=3, target_argmax=7, argmax_piece="x", gap=1.0)

RUN = make_run(
    [
        make_step([make_token("a", "target")], index=0),
        make_step(
            [make_token("b", "draft"), make_token("c", "correction")],
            [
                make_node(0, -1, 0, "root"),
                make_node(1, 0, 1, "accepted"),
                make_node(2, 0, 1, "rejected"),
                make_node(3, 1, 2, "rejected"),
            ],
            routing=[ROUTING],
        ),
        make_step(
            [make_token(letter, "unverified") for letter in "def"],
            [make_node(0, -1, 0, "root"), make_node(1, 0, 1, "unverified")],
            index=2,
        ),
        make_step([make_token("g", "bonus")], index=3, late=[LATE]),
    ]
)


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ("prefill", (0, None)),
        ("last", (3, None)),
        ("most tokens", (2, None)),
        ("most nodes", (1, None)),
        ("step 2", (2, None)),
        ("step 1 node 3", (1, 3)),
        ("step 9", None),
        ("step 1 node 9", None),
        ("first accepted", (1, 1)),
        ("first rejected", (1, 2)),
        ("first rejected at depth 2", (1, 3)),
        ("first rejected at depth 3", None),
        ("first correction", (1, -1)),
        ("first bonus", (3, -1)),
        ("first unverified", (2, 1)),
        ("first departure", (2, 1)),
        ("first routing", (1, 0)),
        ("first contemplate", None),
        ("first miss", None),
        ("first cut", None),
    ],
)
def test_a_rule_leads_to_a_place(rule, place):
    assert find_place(RUN, rule) == place


@pytest.mark.parametrize("rule", ["", "somewhere", "first", "first dragon", "step x", "first prompt"])
def test_other_words_are_a_sentence(rule):
    with pytest.raises(SpecVizError, match="cannot go to"):
        find_place(RUN, rule)
