"""What travels to the stage: packed, in order, small, and the record of it whole."""

from __future__ import annotations

import json

import pytest
from fake_engine import FakeEngine, make_run
from unpacking import read_answer, read_parts

from specviz.figures import explain_node, mask_figure
from specviz.settings import make_settings
from specviz.trace import BatchTrace, from_json
from specviz.ui import packing
from specviz.ui.questions import answer_question
from specviz.ui.record import explain_nodes
from specviz.ui.shelf import TraceShelf
from specviz.ui.step_item import NODE_FIELDS, shorten_mask, step_item

ENGINE = FakeEngine()


def make_trace(prompt: str = "hello", **fields):
    settings = make_settings(**{"max_new_tokens": 24, **fields})
    return make_run(0, prompt, settings, ENGINE.info("scripted"))


def items_of(trace) -> list[packing.Item]:
    return list(packing.trace_items(packing.runs_of(trace), "loaded", "handle"))


def rebuild(trace) -> str:
    """Put a trace together from heads and records, as assets/stage/run.js does."""
    shelf = TraceShelf()
    handle = shelf.keep(trace)
    runs = []
    for row, head in enumerate(items_of(trace)[-1]["heads"]):
        values = {"kind": "record", "run": handle, "row": row, "first": 0, "last": 10**6}
        steps = [record["step"] for record in read_answer(answer_question(values, shelf)["value"])]
        runs.append(f'{head[:-1]},"steps":[{",".join(steps)}]}}')
    return runs[0] if len(runs) == 1 else f'{{"schema_version":1,"batch":[{",".join(runs)}]}}'


def test_items_survive_the_stream_in_parts():
    items = [{"kind": "failed", "message": f"${{alert(1)}} <b> \u202e 😀 \x00 \n {i}"} for i in range(5)]
    stream = packing.ItemStream()
    assert read_parts([stream.pack(items[:2]), stream.pack([]), stream.pack(items[2:])]) == items


def test_a_lone_surrogate_does_not_break_the_stream():
    stream = packing.ItemStream()
    parts = [stream.pack([{"piece": "\ud83d"}]), stream.pack([{"piece": "b"}])]
    assert read_parts(parts)[1] == {"piece": "b"}


def test_the_record_is_exact():
    """A seed beyond 2**53 and every digit of a probability survive."""
    trace = make_trace(seed=2**60)
    trace.steps[2].nodes[1].target_prob = 0.1 + 0.2
    assert from_json(rebuild(trace)) == trace


def test_the_record_of_a_batch_is_exact():
    runs = [make_trace("one"), make_trace("two words")]
    batch = BatchTrace(batch=[run.model_copy(update={"row": row}) for row, run in enumerate(runs)])
    assert from_json(rebuild(batch)) == batch
    assert [len(item["heads"]) for item in items_of(batch) if item["kind"] == "start"] == [2]


def test_the_record_says_why_for_every_node():
    trace, shelf = make_trace(k=3), TraceShelf()
    values = {"kind": "record", "run": shelf.keep(trace), "first": 2, "last": 3}
    (record,) = read_answer(answer_question(values, shelf)["value"])
    step = trace.steps[2]
    assert record["why"]["1"] == explain_node(step, 1, trace.steps[3])
    assert set(record["why"]) == {"-1", *(str(node.idx) for node in step.nodes)}
    assert step.committed[-1].piece.strip() in record["why"]["-1"]


def test_the_targets_own_token_comes_before_unverified_ones():
    step = make_trace(selection="self-consistent", k=3).steps[2]
    own, taken = ("plain", 7, "target"), ("guess", 8, "unverified")
    tokens = [step.committed[0].model_copy(update={"piece": piece, "token_id": token_id, "source": source})
              for piece, token_id, source in (own, taken)]  # fmt: skip
    why = explain_nodes(step.model_copy(update={"committed": tokens}), None)
    assert "plain" in why["-1"] and "guess" not in why["-1"]


def test_nodes_travel_as_columns():
    step = make_trace(k=3).steps[2]
    nodes = step_item(0, step, [])["step"]["nodes"]
    assert nodes == {name: [getattr(node, name) for node in step.nodes] for name in NODE_FIELDS}


@pytest.mark.parametrize("fields", [{"k": 3}, {"k": 2, "candidates": 3}, {"method": "plain"}])
def test_a_shortened_mask_says_the_same(fields):
    step = make_trace(**fields).steps[3]
    whole = mask_figure(step, ["a"] * 9, theme=None)["data"][1]
    short = shorten_mask(mask_figure(step, ["a"] * 9, theme=None))["data"][1]
    assert short["x"] + short["y"] == whole["x"]
    assert [read_runs(line) for line in short["z"]] == whole["z"]


def test_a_shortened_block_of_earlier_columns_says_the_same():
    step = make_trace(max_new_tokens=120, k=3).steps[-1]
    figure = mask_figure(step, ["a"] * 200, theme=None)
    whole, short = figure["data"][0], shorten_mask(figure)["data"][0]
    assert whole["text"] and [text for count, text in short["text"] for _ in range(count)] == [
        text for (text,) in whole["text"]
    ]
    assert [[code] for code in read_runs(short["z"])] == whole["z"] and whole["y"] == figure["data"][1]["y"]


def read_runs(line: str) -> list[int]:
    codes, count, letter = [], "", ""
    for character in f"{line}z":
        if character.isdigit():
            count += character
            continue
        codes += [ord(letter) - ord("a")] * int(count) if letter else []
        letter, count = character, ""
    return codes


def test_what_a_stop_text_cuts_is_hidden():
    """F11: the text ends before the stop text, whose tokens are committed."""
    trace = make_trace(stop="lazy d", max_new_tokens=9, k=2)
    shown = "".join("".join(token["piece"] for token in item["step"]["committed"])[: -item["hidden"] or None]
                    for item in items_of(trace) if item["kind"] == "step")  # fmt: skip
    assert shown == trace.text == "The quick brown fox jumps over the "
    assert trace.text_cut == len("lazy dog")


def test_metrics_are_those_of_metrics_py():
    trace = make_trace()
    *_, finish = items_of(trace.model_copy(update={"metrics": {}}))
    assert json.loads(finish["heads"][0])["metrics"] == trace.metrics


def test_seed_figures_belong_to_lookahead_alone():
    assert set(packing.seed_figures(make_trace(k=3))) == {"drawing", "formula", "runs"}
    assert packing.seed_figures(make_trace(method="plain")) is None


def test_a_step_of_60_nodes_stays_small():
    trace = make_trace(max_new_tokens=96, k=2, candidates=30)
    assert max(len(step.nodes) for step in trace.steps) > 60
    stream = packing.ItemStream()
    sizes = [len(packing.write_base64(stream.pack([item]))) for item in items_of(trace) if item["kind"] == "step"]
    assert sum(sizes) / len(sizes) < 4096
