"""A live run as messages: whole, paced, stoppable, and a sentence where it fails."""

from __future__ import annotations

import json

import pytest
from fake_engine import FakeEngine
from unpacking import read_values

from specviz.decoding.events import Passing
from specviz.settings import make_settings
from specviz.ui.live import UNEXPECTED, StopSwitch, stream_run
from specviz.ui.request import RunRequest
from specviz.ui.shelf import TraceShelf


def request(*prompts: str, **fields) -> RunRequest:
    return RunRequest(list(prompts or ["hello"]), make_settings(**{"max_new_tokens": 30, **fields}))


def run(engine: FakeEngine, asked: RunRequest, switch: StopSwitch | None = None, wall: float = 60.0):
    return read_values(stream(engine, asked, switch, wall))


def stream(engine: FakeEngine, asked: RunRequest, switch: StopSwitch | None = None, wall: float = 60.0):
    return stream_run(engine.stream, asked, switch or StopSwitch(), TraceShelf(), wall, interval=0.0)


def kinds(items) -> list[str]:
    return [item["kind"] for item in items if item["kind"] != "metrics"]


def test_a_run_is_told_from_start_to_finish():
    items = run(FakeEngine(delay=0), request())
    assert kinds(items)[0] == "start" and kinds(items)[-1] == "finish"
    indices = [item["step"]["index"] for item in items if item["kind"] == "step"]
    assert indices == list(range(len(indices))) and len(indices) > 3
    head = json.loads(items[-1]["heads"][0])
    assert head["finish_reason"] == "length" and head["text"]


def test_every_value_is_new():
    values = list(stream(FakeEngine(delay=0), request()))
    assert [value["n"] for value in values] == list(range(len(values)))
    assert len({value["run"] for value in values}) == 1


def test_runs_do_not_share_anything():
    engine = FakeEngine(delay=0)
    first = stream(engine, request("first"))
    second = stream(engine, request("second", max_new_tokens=60))
    mixed = [value for pair in zip(first, second, strict=False) for value in pair]
    for run_id in {value["run"] for value in mixed}:
        items = read_values(value for value in mixed if value["run"] == run_id)
        indices = [item["step"]["index"] for item in items if item["kind"] == "step"]
        assert indices == list(range(len(indices)))


def test_stop_ends_the_work_after_the_step_in_hand():
    engine, switch = FakeEngine(delay=0), StopSwitch()
    values = stream(engine, request("slow? no", max_new_tokens=300), switch)
    first = [next(values) for _ in range(4)]
    done = engine.n_steps
    switch.requested = True
    rest = read_values([*first, *values])
    assert engine.n_steps <= done + 1 and engine.closed == 1 and not switch.running
    assert rest[-1]["kind"] == "finish"
    assert json.loads(rest[-1]["heads"][0])["finish_reason"] == "stopped"


@pytest.mark.parametrize("n_passes", [0, 3, 40])
def test_stop_begins_no_further_pass(n_passes):
    """Guards a stop that was seen only after the pass behind the draft, and not at all in the plain lane."""
    engine, switch = FakeEngine(delay=0), StopSwitch()

    def decode(prompts, settings):
        for event in engine.stream(prompts, settings):
            switch.requested = isinstance(event, Passing) and engine.n_steps == n_passes
            yield event

    asked = request(compare_plain=True, k=1)
    items = read_values(stream_run(decode, asked, switch, TraceShelf(), 60.0, interval=0.0))
    assert engine.n_steps == n_passes
    assert json.loads(items[-1]["heads"][0])["finish_reason"] == "stopped"


def test_a_run_that_was_stopped_while_it_waited_never_begins():
    engine = FakeEngine(delay=0)
    items = run(engine, request(), StopSwitch(requested=True))
    assert kinds(items) == ["failed"] and engine.n_steps == 0


@pytest.mark.parametrize("n_values", range(1, 6))
def test_closing_releases_the_engine(n_values):
    """F41: a reader that leaves at any message leaves nothing running."""
    engine, switch = FakeEngine(delay=0), StopSwitch()
    values = stream(engine, request(), switch)
    for _ in range(n_values):
        next(values)
    values.close()
    assert engine.closed == 1 and not switch.running


def test_a_failure_keeps_what_there_is_and_tells_no_details():
    items = run(FakeEngine(delay=0), request("fail", max_new_tokens=200))
    head = json.loads(items[-1]["heads"][0])
    assert items[-1]["message"] == UNEXPECTED and head["finish_reason"] == "error"
    assert head["text"] and kinds(items).count("step") > 3


def test_a_refusal_is_the_engines_sentence():
    items = run(FakeEngine(delay=0), request("refuse"))
    assert [item["kind"] for item in items] == ["failed"]
    assert items[0]["message"].startswith("The prompt has 9000 tokens")


def test_time_is_limited():
    items = run(FakeEngine(delay=0.01), request(max_new_tokens=400), wall=0.03)
    assert "0.03 seconds" in items[-1]["message"]


def test_a_batch_keeps_its_rows_apart():
    items = run(FakeEngine(delay=0), request("one", "two", "three"))
    for row in range(3):
        indices = [item["step"]["index"] for item in items if item["kind"] == "step" and item["row"] == row]
        assert indices == list(range(len(indices))) and indices


def test_a_stop_text_is_hidden_while_it_streams():
    items = run(FakeEngine(delay=0), request(stop="jumps", max_new_tokens=5))
    hidden = sum(item["hidden"] for item in items if item["kind"] == "step")
    assert hidden == len("jumps") and json.loads(items[-1]["heads"][0])["text"] == "The quick brown fox "


def test_metrics_come_with_the_steps_they_count():
    items = run(FakeEngine(delay=0), request())
    last = [item for item in items if item["kind"] == "metrics"][-1]
    head = json.loads(items[-1]["heads"][0])
    finish = next(item for item in reversed(items) if item["kind"] == "finish")
    assert finish is items[-1]
    assert last["values"]["n_tokens"] == head["metrics"]["n_tokens"]


def test_the_page_may_ask_about_a_run_from_its_start_on():
    shelf = TraceShelf()
    values = stream_run(FakeEngine(delay=0).stream, request(), StopSwitch(), shelf, 60, interval=0.0)
    first = [next(values) for _ in range(3)]
    handle = read_values(first)[0]["handle"]
    n_first = len(shelf.runs(handle)[0].steps)
    assert n_first >= 1
    list(values)
    assert len(shelf.runs(handle)[0].steps) > n_first and shelf.runs(handle)[0].finish_reason == "length"
