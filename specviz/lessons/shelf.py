"""The lessons that come with the page, in every language that they are written in."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from specviz.lessons.lesson import Lesson, parse_lesson

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "lessons"
LANGUAGES = ("en", "zh")


@cache
def list_lessons(folder: Path = FOLDER) -> dict[str, dict[str, Lesson]]:
    """Return the lessons by file name and language, in the order of their names."""
    names = sorted({path.stem for language in LANGUAGES for path in (folder / language).glob("*.md")})
    return {
        name: {
            language: parse_lesson(path.read_text(encoding="utf-8"))
            for language in LANGUAGES
            if (path := folder / language / f"{name}.md").exists()
        }
        for name in names
    }
