"""The trace file: round trip, versions, damage."""

import json

import pytest

from specviz.drafters.plain import PlainDrafter
from specviz.errors import SpecVizError
from specviz.metrics import complete_run, compute_metrics
from specviz.trace import SCHEMA_VERSION, BatchTrace, RunTrace, from_json, load_trace, save_trace, to_json
from tests.kit import TINY_INFO, OracleDrafter, ScriptTarget, run_lane


def make_run() -> RunTrace:
    answer = list(b"Q:abcdefgh")
    _, steps = run_lane(ScriptTarget(answer), OracleDrafter(answer, k=2, m=5), answer[:2], max_new_tokens=6)
    header = RunTrace(
        run_id="r",
        created="2026-01-01T00:00:00+00:00",
        method="lookahead",
        exact=True,
        settings={},
        model=TINY_INFO,
        versions={},
        prompt=[],
        steps=[],
        text="",
        finish_reason="stopped",
    )
    return complete_run(header, steps, "length")


def test_round_trip(tmp_path):
    run = make_run()
    batch = BatchTrace(batch=[run, run])
    for trace in (run, batch):
        assert from_json(to_json(trace)) == trace
        save_trace(trace, tmp_path / "t.json")
        assert load_trace(tmp_path / "t.json") == trace


def test_unknown_fields_of_a_newer_minor_version_are_kept():
    values = json.loads(to_json(make_run())) | {"schema_version": "1.7", "novelty": {"a": 1}}
    values["steps"][0]["sparkle"] = [1, 2]
    again = json.loads(to_json(from_json(json.dumps(values))))
    assert (again["novelty"], again["steps"][0]["sparkle"], again["schema_version"]) == ({"a": 1}, [1, 2], "1.7")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "no schema_version"),
        ('{"a": 1}', "no schema_version"),
        ('{"schema_version": "x"}', "schema_version is 'x'"),
        ('{"schema_version": 2}', "update SpecViz"),
        ('{"schema_version": 1}', "damaged at"),
        ('{"schema_version": 1, "batch": [{}]}', "damaged at batch.0"),
    ],
)
def test_what_is_not_a_trace_is_refused_with_a_sentence(text, words: str):
    with pytest.raises(SpecVizError, match=words) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(SpecVizError, match="could not be read"):
        load_trace(tmp_path / "nothing.json")
    with pytest.raises(SpecVizError, match="could not be written"):
        save_trace(make_run(), tmp_path / "no" / "folder.json")


def test_the_text_and_the_metrics_follow_from_the_steps():
    run = make_run()
    assert run.text == "abcdef"
    assert run.metrics == compute_metrics(run)
    assert run.metrics["n_tokens"] == 6
    assert run.metrics["speedup"] is None
    assert run.schema_version == SCHEMA_VERSION


def test_a_run_without_passes_has_no_rates():
    _, steps = run_lane(ScriptTarget(list(b"Q:a")), PlainDrafter(), list(b"Q:"), max_new_tokens=1)
    run = complete_run(make_run(), steps, "length")
    assert run.metrics["tau"] is None and run.metrics["acceptance_rate"] is None
