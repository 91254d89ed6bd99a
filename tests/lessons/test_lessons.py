"""Lessons: read and written as Markdown, in two languages, and every place exists in its recording."""

from pathlib import Path

import pytest

from specviz.errors import SpecVizError
from specviz.lessons import Lesson, Scene, find_place, list_lessons, parse_lesson, write_lesson
from specviz.trace import BatchTrace, RunTrace, load_trace

TRACES = Path(__file__).resolve().parents[2] / "assets" / "traces"
LESSONS = [
    pytest.param(name, language, lesson, id=f"{name}-{language}")
    for name, languages in list_lessons().items()
    for language, lesson in languages.items()
]

TEXT = """# Masks & trees
<!-- recording: lookahead-tree -->

Two words.

## First
<!-- at: first rejected at depth 2; view: run -->

See **this**.

And that.

<details><summary>How many?</summary>

Two: *a* and `b`.

</details>

- [ ] Change k.

## Second
<!-- at: step 3 node 2; view: step; hide: outcome -->

No question.
"""


def test_a_lesson_is_read():
    lesson = parse_lesson(TEXT)
    assert (lesson.title, lesson.recording, lesson.intro) == ("Masks & trees", "lookahead-tree", "Two words.")
    first, second = lesson.scenes
    assert first == Scene(
        "First", "first rejected at depth 2", "See **this**.\n\nAnd that.", "run", "How many?", "Two: *a* and `b`.",
        "Change k.",
    )  # fmt: skip
    assert second == Scene("Second", "step 3 node 2", "No question.", "step", hides_outcome=True)


def test_writing_and_reading_are_inverse():
    lesson = parse_lesson(TEXT)
    assert parse_lesson(write_lesson(lesson)) == lesson


def test_what_a_teacher_types_cannot_become_another_part_of_the_lesson():
    scene = Scene("A\n## B", "last", "text --> </details>\n## Not a scene\n- [ ] no task", question="<summary>why?")
    lesson = parse_lesson(write_lesson(Lesson("T", "", "", (scene,))))
    (found,) = lesson.scenes
    assert found.title == "A ## B" and found.question == "why?" and found.task == ""
    assert "Not a scene" in found.text and "no task" in found.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "# Title"),
        ("text", "# Title"),
        ("# T\n\nno scenes", "at least one scene"),
        ("# T\n\n## S\n<!-- view: x -->", "choose step"),
    ],
)
def test_what_is_no_lesson_is_a_sentence(text, words):
    with pytest.raises(SpecVizError, match=words):
        parse_lesson(text)


def test_there_are_six_lessons_in_two_languages():
    assert len(list_lessons()) >= 6
    assert all(set(languages) == {"en", "zh"} for languages in list_lessons().values())


@pytest.mark.parametrize("name", list_lessons())
def test_translations_have_the_same_shape(name):
    one, other = (list_lessons()[name][language] for language in ("en", "zh"))
    assert one.recording == other.recording
    for left, right in zip(one.scenes, other.scenes, strict=True):
        assert (left.at, left.view, left.hides_outcome) == (right.at, right.view, right.hides_outcome)
        assert (bool(left.question), bool(left.answer), bool(left.task)) == (
            bool(right.question),
            bool(right.answer),
            bool(right.task),
        )


@pytest.mark.parametrize(("name", "language", "lesson"), LESSONS)
def test_a_lesson_has_a_question_with_an_answer_and_a_task(name, language, lesson):
    assert len(lesson.scenes) >= 3 and any(scene.task for scene in lesson.scenes)
    assert all(scene.text for scene in lesson.scenes)
    assert sum(bool(scene.question and scene.answer) for scene in lesson.scenes) >= 2


@pytest.mark.parametrize(("name", "language", "lesson"), LESSONS)
def test_every_place_exists_in_the_recording(name, language, lesson):
    run = find_recording(lesson.recording)
    for scene in lesson.scenes:
        assert find_place(run, scene.at) is not None, scene.at


def find_recording(name: str) -> RunTrace:
    found = [path for path in TRACES.glob("*.json*") if path.name.partition("-")[2].startswith(f"{name}.")]
    if not found:
        pytest.skip(f"no recording {name} yet")
    trace = load_trace(found[0])
    return trace.batch[0] if isinstance(trace, BatchTrace) else trace
