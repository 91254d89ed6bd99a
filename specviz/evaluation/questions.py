"""Questions in Spec-Bench's format: one JSON object a line with `question_id`, `category` and `turns`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError

SOURCE = "hemingkx/Spec-Bench, data/spec_bench/question.jsonl (Apache-2.0)"


@dataclass(frozen=True)
class Question:
    """The first turn of a question."""

    question_id: int | str
    category: str
    prompt: str


def load_questions(path: str | Path) -> list[Question]:
    """Read a questions file; raise SpecVizError with a sentence where it is not one."""
    questions = [Question(value["question_id"], value["category"], value["turns"][0]) for value in _read(Path(path))]
    repeated = [name for name, n in Counter(question.question_id for question in questions).items() if n > 1]
    if repeated:
        raise SpecVizError(f"{path} has more than one question with the question_id {repeated[0]!r}.")
    return questions


def load_turns(path: str | Path) -> list[str]:
    """Read every turn of a questions file, which is what must not be trained on."""
    return [turn for value in _read(Path(path)) for turn in value["turns"]]


def spread_over_categories(questions: list[Question], n: int) -> list[Question]:
    """Return the first `n` questions when categories take turns, so that each has as many as can be.

    Raises SpecVizError where `n` is less than 1.
    """
    if n < 1:
        raise SpecVizError(f"At least 1 question is needed, not {n}.")
    turns = chain.from_iterable(zip_longest(*_by_category(questions).values()))
    return [question for question in turns if question is not None][:n]


def first_of_categories(questions: list[Question], n: int) -> list[Question]:
    """Return the first `n` questions of each category."""
    return [question for group in _by_category(questions).values() for question in group[:n]]


def digest_questions(questions: Iterable[Question]) -> dict[str, str]:
    """Return a condition for each question: its prompt's digest."""
    return {f"question {q.question_id}": hashlib.sha256(q.prompt.encode("utf-8")).hexdigest()[:16] for q in questions}


def _by_category(questions: list[Question]) -> dict[str, list[Question]]:
    groups: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        groups[question.category].append(question)
    return groups


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a questions file, each with the fields that a question needs."""
    try:
        # Not splitlines: a question may hold U+2028, which JSON leaves as it is.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise SpecVizError(f"The questions file {path} could not be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SpecVizError(f"The questions file {path} is not text in UTF-8.") from None
    values = [_read_line(line, f"{path}, line {n}") for n, line in enumerate(lines, start=1) if line.strip()]
    if not values:
        raise SpecVizError(f"The questions file {path} is empty.")
    return values


def _read_line(line: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not _is_question(value):
        raise SpecVizError(
            f"No question stands in {place}: it needs question_id, category and turns, as {SOURCE} has them."
        )
    return value


def _is_question(value: Any) -> bool:
    if not isinstance(value, dict) or type(value.get("question_id")) not in (int, str):
        return False
    category, turns = value.get("category"), value.get("turns")
    texts = [category, *turns] if isinstance(turns, list) and turns else [None]
    return all(isinstance(text, str) and text.strip() for text in texts)
