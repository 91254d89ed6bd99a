"""Which lanes a bench runs, by hand."""

import pytest

from specviz.errors import SpecVizError
from specviz.evaluation.plan import PlannedLane, plan_lanes


def names(*arguments) -> list[str]:
    return [lane.name for lane in plan_lanes(*arguments)]


def test_plain_comes_first_and_once():
    assert names(["eagle3"], {}, {}, {}) == ["plain", "eagle3"]
    assert names(["lookahead", "plain"], {}, {}, {}) == ["plain", "lookahead"]
    assert names(["plain"], {}, {}, {}) == ["plain"]


def test_a_setting_is_swept_by_the_methods_that_use_it():
    swept = names(["lookahead", "eagle3", "confu"], {"nodes": [8, 16], "k": [1], "confu_f": ["on", "off"]}, {}, {})
    assert swept == [
        "plain",
        "lookahead k=1",
        "eagle3 nodes=8",
        "eagle3 nodes=16",
        "confu nodes=8 confu-f=on",
        "confu nodes=8 confu-f=off",
        "confu nodes=16 confu-f=on",
        "confu nodes=16 confu-f=off",
    ]


def test_a_value_that_is_given_twice_is_run_once():
    assert names(["eagle3"], {"nodes": [8, 8]}, {}, {}) == ["plain", "eagle3 nodes=8"]


def test_checkpoints_take_the_method_s_place():
    assert plan_lanes(["plain", "confu"], {"nodes": [8]}, {}, {"old": "a", "new": "b"})[1:] == [
        PlannedLane("old", "confu", {"nodes": 8}, "a"),
        PlannedLane("new", "confu", {"nodes": 8}, "b"),
    ]


def test_a_drafter_goes_to_its_method():
    lanes = plan_lanes(["eagle3", "confu"], {}, {"confu": "folder"}, {})
    assert [lane.drafter for lane in lanes] == [None, None, "folder"]


def test_a_drafter_beside_lanes_is_refused():
    with pytest.raises(SpecVizError, match="one method"):
        plan_lanes(["eagle3"], {}, {"eagle3": "c"}, {"a": "b"})
