"""The corpus that drafters are trained on: the target's own answers, one JSON object a line.

| field | meaning |
|---|---|
| `src` | `file`: the prompt came from a file of prompts; `self`: the target wrote the prompt itself |
| `T` | the temperature of the answer |
| `prompt` | the text of the user turn |
| `ids` | token ids of the whole prompt, chat template included |
| `out` | token ids of the answer; the last is an end-of-text id where the answer ended by itself |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError
from specviz.training.line_file import read_lines

FILE_PATTERNS = ("answers*.jsonl", "answers*.jsonl.gz")
FORMAT = "each line needs src, T, prompt, ids and out"


@dataclass(frozen=True)
class Answer:
    """One answer of the target; `source` is `file` or `self`."""

    source: str
    temperature: float
    prompt: str
    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]

    def to_json(self) -> str:
        """Return the answer's line, without the line break."""
        fields = {
            "src": self.source,
            "T": self.temperature,
            "prompt": self.prompt,
            "ids": self.prompt_ids,
            "out": self.answer_ids,
        }
        return json.dumps(fields)

    @classmethod
    def from_json(cls, line: str) -> Answer:
        """Read a line; raise ValueError, KeyError or TypeError where it is not an answer."""
        value = json.loads(line)
        return cls(str(value["src"]), float(value["T"]), str(value["prompt"]), _ids(value["ids"]), _ids(value["out"]))


def read_corpus(paths: Sequence[Path]) -> list[Answer]:
    """Read the answers of .jsonl and .jsonl.gz files, and of folders that hold files `answers*` of these kinds.

    A last line that is only half written is left out: the file may still be growing. Raises
    SpecVizError for a path that is not there, that holds no answer, or whose lines are something else.
    """
    return [answer for path in paths for answer in _answers_at(Path(path))]


def read_answers(file: Path) -> list[Answer]:
    """Read the answers of one file, which may hold none yet."""
    try:
        return [_parse(line, file, number) for number, line in enumerate(read_lines(file), start=1)]
    except OSError as error:
        raise SpecVizError(f"The corpus {file} could not be read: {error.strerror or error}.") from None


def digest_answers(answers: Iterable[Answer]) -> str:
    """Return the digest of answers in their order, by which a training knows its corpus again."""
    digest = hashlib.sha256()
    for answer in answers:
        digest.update(answer.to_json().encode("utf-8"))
    return digest.hexdigest()[:16]


def _answers_at(path: Path) -> list[Answer]:
    answers = [answer for file in _files_at(path) for answer in read_answers(file)]
    if not answers:
        raise SpecVizError(f"The corpus {path} holds no answer.")
    return answers


def _files_at(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for pattern in FILE_PATTERNS for file in path.glob(pattern))


def _parse(line: str, file: Path, number: int) -> Answer:
    try:
        return Answer.from_json(line)
    except (ValueError, KeyError, TypeError):
        raise SpecVizError(f"Line {number} of {file} is not an answer: {FORMAT}.") from None


def _ids(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
