"""The public endpoints, through gradio's own client."""

from __future__ import annotations

import pytest
from fake_engine import FakeEngine, make_run
from gradio_client import Client
from gradio_client.exceptions import AppError

from specviz.settings import RunSettings, make_settings
from specviz.trace import RunTrace, save_trace
from specviz.ui import VisitorLimits, build_page
from specviz.ui.endpoints import DESCRIPTIONS

LIMITS = VisitorLimits(new_tokens=200, wall_seconds=20)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    page = build_page(FakeEngine(delay=0.001), limits=LIMITS, recordings=tmp_path_factory.mktemp("none"))
    page.launch(prevent_thread_lock=True, quiet=True, run_history=False, server_name="127.0.0.1")
    yield page
    page.close()


@pytest.fixture(scope="module")
def client(server):
    return Client(server.local_url, verbose=False)


def test_only_the_public_endpoints_are_listed(client):
    named = client.view_api(return_format="dict")["named_endpoints"]
    assert set(named) == {"/trace", "/run"}


def test_the_schema_is_that_of_the_settings(client):
    parameters = client.view_api(return_format="dict")["named_endpoints"]["/trace"]["parameters"]
    by_name = {parameter["parameter_name"]: parameter for parameter in parameters}
    assert set(by_name) == {"prompt", *RunSettings.model_fields} == set(DESCRIPTIONS)
    assert by_name["method"]["type"]["enum"] == ["plain", "lookahead", "eagle3", "confu"]
    assert by_name["max_new_tokens"]["type"] == {"type": "integer"}
    assert not by_name["prompt"]["parameter_has_default"] and by_name["k"]["parameter_has_default"]


def test_trace_gives_the_whole_trace(client):
    values = client.predict(prompt="hello", max_new_tokens=20, k=3, api_name="/trace")
    trace = RunTrace.model_validate(values)
    assert trace.settings["k"] == 3 and len(trace.answer) == 20 and trace.metrics["tau"]


def test_several_prompts_give_a_batch(client):
    values = client.predict(prompt=["one", "two"], max_new_tokens=8, api_name="/trace")
    assert len(values["batch"]) == 2 and values["schema_version"] == 1


def test_run_streams_every_step(client):
    job = client.submit(prompt="hello", max_new_tokens=30, api_name="/run")
    job.result()
    events = job.outputs()
    assert [event["event"] for event in events[:2]] == ["started", "step"] and events[-1]["event"] == "finished"
    steps = [event["step"]["index"] for event in events if event["event"] == "step"]
    assert steps == list(range(len(events[-1]["trace"]["steps"])))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": "a", "k": 99}, "K should be less than or equal to 32, not 99."),
        ({"prompt": "a", "model": "/etc/passwd"}, "There is no model called /etc/passwd here"),
        ({"prompt": "a", "max_new_tokens": 201}, "at most 200 new tokens"),
        ({"prompt": "a", "method": "confu"}, "not offered here"),
        ({"prompt": "refuse"}, "The prompt has 9000 tokens, but <b>scripted</b>"),
        ({"prompt": "fail", "max_new_tokens": 100}, "Something went wrong on the server"),
    ],
)
@pytest.mark.parametrize("endpoint", ["/trace", "/run"])
def test_mistakes_are_sentences_and_the_next_call_works(client, endpoint, arguments, sentence):
    with pytest.raises(AppError) as error:
        client.predict(**arguments, api_name=endpoint)
    assert sentence in str(error.value) and "Traceback" not in str(error.value)
    assert client.predict(prompt="a", max_new_tokens=4, api_name="/trace")["text"]


def test_time_is_limited():
    page = build_page(FakeEngine(delay=0.05), limits=VisitorLimits(wall_seconds=0.2))
    page.launch(prevent_thread_lock=True, quiet=True, run_history=False, server_name="127.0.0.1")
    try:
        with pytest.raises(AppError, match=r"may take 0\.2 seconds"):
            Client(page.local_url, verbose=False).predict(prompt="a", max_new_tokens=100, api_name="/trace")
    finally:
        page.close()


def test_loaded_page_has_a_recording_in_its_first_bytes(tmp_path):
    run = make_run(0, "hello", make_settings(max_new_tokens=20), FakeEngine().info("scripted"))
    save_trace(run, tmp_path / "first.json")
    page = build_page(FakeEngine(), recordings=tmp_path)
    stage = next(block for block in page.blocks.values() if getattr(block, "elem_id", "") == "stage-block")
    assert stage.value["files"]["en"]["path"].endswith("first.en.packed")
