"""Traces from files: read, refused with a sentence, shown."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from fake_engine import FakeEngine, make_run
from unpacking import read_parts, read_values

from specviz.errors import SpecVizError
from specviz.settings import make_settings
from specviz.trace import save_trace, to_json
from specviz.ui.recorded import file_value, stream_upload
from specviz.ui.shelf import TraceShelf
from specviz.ui.trace_file import list_recordings, read_trace_file, title_recording

LIMIT = 2**22


@pytest.fixture
def trace():
    return make_run(0, "hello", make_settings(max_new_tokens=20), FakeEngine().info("scripted"))


def test_plain_and_gzipped_files(tmp_path, trace):
    save_trace(trace, tmp_path / "a.json")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(to_json(trace).encode()))
    (tmp_path / "notes.txt").write_text("not a trace")
    found = list_recordings(tmp_path)
    assert list(found) == ["a", "b"]
    assert all(read_trace_file(path, LIMIT) == trace for path in found.values())


def test_no_folder_means_no_recordings(tmp_path):
    assert list_recordings(tmp_path / "nothing") == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a SpecViz trace"),
        (b"hello", "not a SpecViz trace"),
        (b"[1, 2]", "not a SpecViz trace"),
        (b'{"a": 1}', "not a SpecViz trace"),
        (b'{"schema_version": 9}', "update SpecViz"),
        (b'{"schema_version": 1}', "This trace is damaged"),
        (b"\x1f\x8b broken gzip", "could not be read"),
        (gzip.compress(b"[" + b" " * (2 * LIMIT) + b"]"), "longer than"),
        (b"\xff\xfe\x00", "not a SpecViz trace"),
        (b"[" * 100000, "not a SpecViz trace"),
    ],
)
def test_other_files_are_refused_with_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(SpecVizError, match=sentence):
        read_trace_file(path, LIMIT)


def test_a_trace_is_streamed_in_order(trace):
    items = read_values(stream_upload(TraceShelf(), trace, "mine", interval=0.0))
    assert items[0]["kind"] == "start" and items[0]["origin"] == "loaded" and items[-1]["kind"] == "finish"
    assert [item["step"]["index"] for item in items if item["kind"] == "step"] == list(range(len(trace.steps)))


def test_the_first_paint_points_to_a_file(tmp_path, trace):
    save_trace(trace, tmp_path / "first.json")
    value = file_value(TraceShelf(list_recordings(tmp_path)), "first")
    assert value["files"]["zh"]["meta"]["_type"] == "gradio.FileData"
    start, *_ = read_parts([Path(value["files"]["en"]["path"]).read_bytes()])
    assert (start["name"], start["origin"], start["handle"]) == ("first", "recorded", "recorded/first")


@pytest.mark.parametrize(
    ("name", "title"),
    [("03-lookahead-tree", "Lookahead tree"), ("batch", "Batch"), ("a-b", "A b"), ("7", "7"), ("1-", "1 ")],
)
def test_recordings_have_titles(name, title):
    assert title_recording(name) == title
