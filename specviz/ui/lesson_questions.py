"""Lessons as answers to the stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specviz.lessons import Lesson, Scene, find_place, list_lessons, parse_lesson, write_lesson
from specviz.ui.offline import offline_page

if TYPE_CHECKING:
    from specviz.ui.questions import Question

MOST_CHARACTERS = 200_000
MOST_SCENES = 100

Answer = dict[str, Any]


def answer_lessons(question: Question) -> list[Answer]:
    """Answer all lessons in every language, each with the recorded run that it is about, None where that is missing."""
    recordings = question.shelf.recordings
    return [
        {
            "name": name,
            "recording": find_recording(next(iter(languages.values())).recording, list(recordings)),
            "languages": {language: asdict(lesson) for language, lesson in languages.items()},
        }
        for name, languages in list_lessons().items()
    ]


def find_recording(wanted: str, names: list[str]) -> str | None:
    """Return the recording that a lesson names; recordings may carry a number in front."""
    return next((name for name in names if wanted in (name, name.partition("-")[2])), None)


def answer_places(question: Question) -> list[Answer | None]:
    """Answer where each of the value `rules` leads in the run, None where it has no such place."""
    run = question.run()
    places = [find_place(run, str(rule)) for rule in question.values["rules"][:MOST_SCENES]]
    return [None if place is None else {"step": place.step, "node": place.node} for place in places]


def answer_read_lesson(question: Question) -> Answer:
    """Answer the lesson that the value `text` holds as Markdown, and in `found` its recording where it is here."""
    lesson = parse_lesson(question.values["text"][:MOST_CHARACTERS])
    found = find_recording(lesson.recording, list(question.shelf.recordings)) if lesson.recording else None
    return asdict(lesson) | {"found": found}


def answer_write_lesson(question: Question) -> str:
    """Answer the Markdown of the value `lesson`."""
    return write_lesson(_read_lesson(question.values["lesson"]))


def answer_lesson_page(question: Question) -> str:
    """Answer the value `lesson` with its run as one HTML file that works without a server."""
    lesson, name = _read_lesson(question.values["lesson"]), str(question.values.get("name", ""))
    opened = {"lesson": asdict(lesson), "places": answer_places(question)}
    return offline_page(question.runs(), name, opened, question.language)


def _read_lesson(values: dict[str, Any]) -> Lesson:
    scenes = tuple(Scene(**scene) for scene in values["scenes"][:MOST_SCENES])
    return Lesson(values["title"], values["recording"], values["intro"], scenes)


LESSONS: dict[str, Callable[[Question], Any]] = {
    "lessons": answer_lessons,
    "places": answer_places,
    "read_lesson": answer_read_lesson,
    "write_lesson": answer_write_lesson,
    "lesson_page": answer_lesson_page,
}
