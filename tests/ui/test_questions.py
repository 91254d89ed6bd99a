"""What the stage asks of Python: answered with plain values, nonsense with a sentence."""

from __future__ import annotations

import pytest
from fake_engine import FakeEngine, make_run

from specviz.settings import make_settings
from specviz.trace import save_trace, to_json
from specviz.ui.questions import answer_question
from specviz.ui.shelf import MOST_KEPT, MissingTraceError, TraceShelf

RUN = make_run(0, "hello", make_settings(max_new_tokens=20), FakeEngine().info("scripted"))


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        {},
        {"kind": "unheard of"},
        {"kind": "record"},
        {"kind": "record", "run": 3, "first": 0, "last": 1},
        {"kind": "keep", "trace": "not a trace"},
        {"kind": "keep", "trace": 3},
    ],
)
def test_nonsense_is_answered_with_a_sentence(request_):
    reply = answer_question(request_, TraceShelf())
    assert set(reply) == {"error"} and reply["error"].endswith(".")


def test_a_forgotten_trace_is_missing_until_it_is_brought_again():
    shelf = TraceShelf()
    question = {"kind": "record", "run": "gone", "first": 0, "last": 1}
    assert answer_question(question, shelf) == {"missing": True}
    handle = answer_question({"kind": "keep", "trace": to_json(RUN)}, shelf)["value"]
    assert set(answer_question({**question, "run": handle}, shelf)) == {"value"}


def test_the_trace_nobody_asked_about_is_forgotten_first():
    shelf = TraceShelf()
    handles = [shelf.keep(RUN) for _ in range(MOST_KEPT)]
    shelf.runs(handles[0])
    shelf.keep(RUN)
    assert shelf.runs(handles[0])[0].steps == RUN.steps
    with pytest.raises(MissingTraceError):
        shelf.runs(handles[1])


def test_recordings_are_there_for_everybody_and_nothing_else_is(tmp_path):
    save_trace(RUN, tmp_path / "a.json")
    shelf = TraceShelf({"a": tmp_path / "a.json"})
    assert shelf.runs("recorded/a")[0].steps == RUN.steps
    for handle in ("a", "recorded/b", "recorded/../a", ""):
        with pytest.raises(MissingTraceError):
            shelf.runs(handle)
