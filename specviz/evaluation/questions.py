"""Questions in Spec-Bench's format: one JSON object a line with `question_id`, `category` and `turns`."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from specviz.errors import SpecVizError

SOURCE = "hemingkx/Spec-Bench, data/spec_bench/question.jsonl (Apache-2.0)"


@dataclass(frozen=True)
class Question:
    """The first turn of a question."""

    question_id: int
    category: str
    prompt: str


def load_questions(path: str | Path) -> list[Question]:
    """Read a questions file; raise SpecVizError with a sentence where it is not one."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        values = [json.loads(line) for line in lines if line.strip()]
        return [Question(value["question_id"], value["category"], value["turns"][0]) for value in values]
    except OSError as error:
        raise SpecVizError(f"The questions file {path} could not be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, IndexError):
        raise SpecVizError(
            f"{path} is not a questions file: each line needs question_id, category and turns, as {SOURCE} has them."
        ) from None


def spread_over_categories(questions: list[Question], n: int) -> list[Question]:
    """Return the first `n` questions when categories take turns, so that each has as many as can be."""
    by_category: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_category[question.category].append(question)
    turns = chain.from_iterable(zip_longest(*by_category.values()))
    return [question for question in turns if question is not None][:n]
