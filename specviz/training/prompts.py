"""Prompts for the target to answer: read from a file, and admitted where nothing speaks against them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from specviz.errors import SpecVizError
from specviz.training.overlap import Gram, QuestionOverlap, normalise_words


def read_prompts(path: Path) -> list[str]:
    """Read a file of prompts, one JSON object with `prompt` a line; raise SpecVizError where it is not one."""
    try:
        # Not splitlines: a prompt may hold U+2028, which JSON leaves as it is.
        lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
        return [_text(json.loads(line)["prompt"]) for line in lines]
    except OSError as error:
        raise SpecVizError(f"The prompts file {path} could not be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise SpecVizError(f"{path} is not a prompts file: each line needs source and prompt.") from None


class PromptGate:
    """Admits each prompt once, and none that overlaps with an evaluation question or is too long.

    `dropped` counts what was turned away, by source and reason.
    """

    def __init__(self, encode: Callable[[str], list[int]], max_tokens: int, questions: QuestionOverlap) -> None:
        self._encode = encode
        self._max_tokens = max_tokens
        self._questions = questions
        self._seen: set[Gram] = set()
        self.dropped: Counter[tuple[str, str]] = Counter()

    def admit(self, source: str, prompt: str | None) -> tuple[int, ...] | None:
        """Return the prompt's ids, chat template included, or None; a prompt of None did not end in time."""
        words = normalise_words(prompt or "")
        prompt_ids = tuple(self._encode(prompt)) if prompt else ()
        if reason := self._reason_against(prompt, words, prompt_ids):
            self.dropped[source, reason] += 1
            return None
        self._seen.add(words)
        return prompt_ids

    def remember(self, prompts: Iterable[str]) -> None:
        """Count these prompts as seen."""
        self._seen.update(map(normalise_words, prompts))

    def _reason_against(self, prompt: str | None, words: Gram, prompt_ids: tuple[int, ...]) -> str | None:
        if prompt is None:
            return "not ended in time"
        if not words:
            return "no words"
        if words in self._seen:
            return "duplicate"
        if self._questions.covers(prompt):
            return "evaluation question"
        return "too long" if len(prompt_ids) > self._max_tokens else None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
