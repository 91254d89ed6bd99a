"""Lessons: narrated places of a recorded run, written as plain Markdown that a person reads as well."""

from specviz.lessons.lesson import Lesson, Scene, parse_lesson, write_lesson
from specviz.lessons.place import Place, find_place
from specviz.lessons.shelf import list_lessons

__all__ = ["Lesson", "Place", "Scene", "find_place", "list_lessons", "parse_lesson", "write_lesson"]
