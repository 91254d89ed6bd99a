"""Lessons as answers, and the words of the page."""

from __future__ import annotations

from dataclasses import asdict

from fake_engine import FakeEngine, make_run

from specviz.lessons import list_lessons, parse_lesson
from specviz.settings import make_settings
from specviz.ui import build_page
from specviz.ui.lesson_questions import find_recording
from specviz.ui.questions import answer_question
from specviz.ui.shelf import TraceShelf
from specviz.ui.words import read_tables

RUN = make_run(0, "hello", make_settings(max_new_tokens=20), FakeEngine().info("scripted"))


def ask(kind, shelf=None, **values):
    return answer_question({"kind": kind, **values}, shelf or TraceShelf())


def test_a_lesson_names_its_recording_without_the_number():
    assert find_recording("lookahead-tree", ["01-plain", "03-lookahead-tree"]) == "03-lookahead-tree"
    assert find_recording("plain", ["plain"]) == "plain"
    assert find_recording("eagle3", ["01-plain"]) is None


def test_lessons_come_in_both_languages():
    lessons = ask("lessons")["value"]
    assert len(lessons) == len(list_lessons()) and all(set(each["languages"]) == {"en", "zh"} for each in lessons)
    assert all(each["recording"] is None for each in lessons)


def test_places_are_found_in_the_run():
    shelf = TraceShelf()
    handle = shelf.keep(RUN)
    found = ask("places", shelf, run=handle, row=0, rules=["prefill", "most tokens", "first departure"])["value"]
    assert found[0] == {"step": 0, "node": None} and found[1]["step"] > 0 and found[2] is None
    assert "cannot go to" in ask("places", shelf, run=handle, row=0, rules=["nowhere"])["error"]


def test_a_lesson_of_ones_own_is_written_and_read():
    lesson = next(iter(list_lessons().values()))["zh"]
    text = ask("write_lesson", lesson=asdict(lesson))["value"]
    assert parse_lesson(text) == lesson and ask("read_lesson", text=text)["value"] == asdict(lesson) | {"found": None}
    assert ask("read_lesson", text="nothing")["error"].startswith("A lesson begins")
    assert set(ask("write_lesson", lesson={"title": "x"})) == {"error"}


def test_labels_are_translated_by_their_english_words():
    page = build_page(FakeEngine())
    labels = {getattr(block, "label", None) for block in page.blocks.values()}
    keys = {label.key for label in labels if hasattr(label, "key")}
    assert {"Prompt", "Method", "New tokens"} <= keys <= set(read_tables()["zh"]["page"])
