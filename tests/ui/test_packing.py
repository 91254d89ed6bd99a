"""What travels to the stage: packed, in order, whole."""

from __future__ import annotations

import json

from fake_engine import DEFAULTS, FakeEngine, make_run

from specviz.settings import make_settings
from specviz.trace import BatchTrace, from_json, to_json
from specviz.ui import packing

ENGINE = FakeEngine()


def make_trace(prompt: str = "hello", **fields):
    settings = make_settings(**{"max_new_tokens": 24, **fields})
    return make_run(0, prompt, settings, ENGINE.info("scripted"))


def rebuild(items) -> str:
    """Put a trace together as assets/stage/run.js does."""
    items = list(items)
    heads = next(item for item in items if item["kind"] == "finish")["heads"]
    steps = [
        [item["step"] for item in items if item["kind"] == "step" and item["row"] == row] for row in range(len(heads))
    ]
    runs = [f'{head[:-1]},"steps":{json.dumps(own)}}}' for head, own in zip(heads, steps, strict=True)]
    return runs[0] if len(runs) == 1 else f'{{"schema_version":1,"batch":[{",".join(runs)}]}}'


def test_pack_round_trip():
    item = {"kind": "failed", "message": "${alert(1)} <b> \u202e 😀 \x00"}
    assert packing.unpack(packing.pack(item)) == item


def test_pack_keeps_a_lone_surrogate_from_breaking_the_stream():
    assert isinstance(packing.pack({"piece": "\ud83d"}), str)


def test_trace_items_hold_the_whole_trace():
    trace = make_trace(seed=2**60)
    items = [packing.unpack(packing.pack(item)) for item in packing.trace_items(trace, "loaded")]
    assert from_json(rebuild(items)) == trace


def test_trace_items_of_a_batch():
    runs = [make_trace("one"), make_trace("two words")]
    batch = BatchTrace(batch=[run.model_copy(update={"row": row}) for row, run in enumerate(runs)])
    items = list(packing.trace_items(batch, "recorded", "batch"))
    assert from_json(rebuild(items)) == from_json(to_json(batch))
    assert [len(item["heads"]) for item in items if item["kind"] == "start"] == [2]


def test_what_a_stop_text_cuts_is_hidden():
    """F11: the text ends before the stop text, whose tokens are committed."""
    trace = make_trace(stop="lazy d", max_new_tokens=9, k=2)
    items = list(packing.trace_items(trace, "loaded"))
    shown = "".join("".join(token["piece"] for token in item["step"]["committed"])[: -item["hidden"] or None]
                    for item in items if item["kind"] == "step")  # fmt: skip
    assert shown == trace.text == "The quick brown fox jumps over the "
    assert trace.text_cut == len("lazy dog")


def test_metrics_are_those_of_metrics_py():
    trace = make_trace()
    *_, finish = packing.trace_items(trace.model_copy(update={"metrics": {}}), "loaded")
    assert json.loads(finish["heads"][0])["metrics"] == trace.metrics


def test_seed_figures_belong_to_lookahead_alone():
    assert set(packing.seed_figures(make_trace(k=3))) == {"drawing", "formula", "runs"}
    assert packing.seed_figures(make_trace(method="plain")) is None


def test_a_step_stays_small():
    trace = make_trace(max_new_tokens=96, k=DEFAULTS["lookahead"]["k"])
    sizes = [len(packing.pack(item)) for item in packing.trace_items(trace, "live") if item["kind"] == "step"]
    assert sum(sizes) / len(sizes) < 4096
