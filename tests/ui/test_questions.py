"""What the stage asks of Python: answered with plain values, nonsense with a sentence."""

from __future__ import annotations

import pytest
from fake_engine import FakeEngine, make_run

from specviz.settings import make_settings
from specviz.trace import to_json
from specviz.ui.questions import KeptTraces, MissingTraceError, answer

RUN = make_run(0, "hello", make_settings(max_new_tokens=20), FakeEngine().info("scripted"))


def test_explain_needs_nothing_but_the_step():
    step = next(step for step in RUN.steps if step.accepted)
    request = {"kind": "explain", "step": step.model_dump(mode="json"), "node": step.accepted[0]}
    assert answer(request)["value"].startswith("Accepted")
    extra = [token for token in step.committed if token.source in ("bonus", "correction")]
    assert not extra or "step" in answer({**request, "node": -1})["value"]


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        {},
        {"kind": "unheard of"},
        {"kind": "explain"},
        {"kind": "explain", "step": {}, "node": 0},
        {"kind": "explain", "step": RUN.steps[1].model_dump(mode="json"), "node": 999},
        {"kind": "keep", "trace": "not a trace"},
        {"kind": "keep", "trace": 3},
    ],
)
def test_nonsense_is_answered_with_a_sentence(request_):
    reply = answer(request_)
    assert set(reply) == {"error"} and reply["error"].endswith(".")


def test_a_kept_trace_is_found_by_its_handle():
    kept = KeptTraces(most=2)
    first = kept.keep(RUN)
    assert kept.run(first, 0).steps == RUN.steps
    assert answer({"kind": "keep", "trace": to_json(RUN)})["value"] != first


def test_the_trace_nobody_asked_about_is_forgotten_first():
    kept = KeptTraces(most=2)
    first, second = kept.keep(RUN), kept.keep(RUN)
    kept.run(first, 0)
    kept.keep(RUN)
    assert kept.run(first, 0)
    with pytest.raises(MissingTraceError):
        kept.run(second, 0)
