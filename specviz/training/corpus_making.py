"""Making a corpus in a folder: the plan, the running batch, and the files that let an interrupted run go on.

| file | what |
|---|---|
| `answers.jsonl` or `answers.jsonl.gz` | the corpus |
| `written.jsonl` | the prompts that the target wrote, by number; null where one did not end in time |
| `corpus.json` | the settings that decide what is generated |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError
from specviz.evaluation.questions import load_turns
from specviz.target.model import Target
from specviz.training.corpus import Answer, read_answers, read_corpus
from specviz.training.generate import BatchGenerator, Load
from specviz.training.line_file import LineFile, read_lines
from specviz.training.openings import OPENINGS
from specviz.training.overlap import QuestionOverlap, normalise_words
from specviz.training.production import (
    AnswerKey,
    AnswerMaker,
    AnswerRequest,
    FileSupply,
    Supply,
    WrittenSupply,
    file_requests,
    take_from,
)
from specviz.training.prompts import PromptGate, read_prompts
from specviz.training.self_written import PromptRequest, PromptWriter

FIXED = ("seed", "max_new_tokens", "max_prompt_tokens", "max_written_tokens", "openings")


@dataclass(frozen=True)
class CorpusSettings:
    """What a corpus is asked to be; checked once, with a sentence for each mistake."""

    out: Path
    n_answers: int
    prompts: Path | None = None
    evaluation: tuple[Path, ...] = ()
    known: tuple[Path, ...] = ()
    self_written: float = 0.5
    openings: tuple[str, ...] = OPENINGS
    max_new_tokens: int = 280
    max_prompt_tokens: int = 220
    max_written_tokens: int = 240
    n_places: int = 64
    seed: int = 0
    compressed: bool = False

    def __post_init__(self) -> None:
        for name in ("n_answers", "max_new_tokens", "max_prompt_tokens", "max_written_tokens", "n_places"):
            if getattr(self, name) < 1:
                raise SpecVizError(f"{name.removeprefix('n_').replace('_', ' ').capitalize()} must be at least 1.")
        if not 0 <= self.self_written <= 1:
            raise SpecVizError("The share of self-written prompts lies between 0 and 1.")
        if self.prompts is None and self.self_written == 0:
            raise SpecVizError("Without self-written prompts a file of prompts is needed: give it with --prompts.")

    @property
    def answers_path(self) -> Path:
        return self.out / ("answers.jsonl.gz" if self.compressed else "answers.jsonl")

    @property
    def written_path(self) -> Path:
        return self.out / "written.jsonl"


class CorpusMaker:
    """Makes the corpus that the settings ask for, or what is still missing of it."""

    def __init__(self, target: Target, settings: CorpusSettings) -> None:
        self._target = target
        self._settings = settings
        self._check_begun()
        self._own = self.answers()
        own = set(self._own)
        self._known = [answer for answer in read_corpus(settings.known) if answer not in own]
        turns = [turn for path in settings.evaluation for turn in load_turns(path)]
        encode = target.tokenizer.encode_chat
        self.gate = PromptGate(encode, settings.max_prompt_tokens, QuestionOverlap(turns))
        self._maker = AnswerMaker(settings.seed, settings.max_new_tokens, target.eos_ids)
        self._writer = PromptWriter(target, settings.seed, settings.max_written_tokens, settings.openings)
        self._files, self._written = self._plan()
        self.load = Load()

    @property
    def n_done(self) -> int:
        """Answers that earlier runs made."""
        return len(self._own)

    @property
    def n_wanted(self) -> int:
        """Answers that the corpus will hold; fewer than asked for where the prompts do not suffice."""
        return self._files.n_wanted + self._written.n_wanted

    def answers(self) -> list[Answer]:
        """Read the answers made so far."""
        path = self._settings.answers_path
        return read_answers(path) if path.exists() else []

    def make(self) -> Iterator[Answer]:
        """Generate what is missing, yielding each answer once it is in the file."""
        generator = self._generator()
        self.load = generator.load
        supplies: tuple[Supply, ...] = (self._files, self._written)
        with LineFile(self._settings.answers_path) as answers, LineFile(self._settings.written_path) as written:
            for request, token_ids in generator.generate(lambda: take_from(supplies)):
                if isinstance(request, AnswerRequest):
                    answer = request.answer(token_ids)
                    answers.append(answer.to_json())
                    yield answer
                elif isinstance(request, PromptRequest):
                    prompt = self._writer.read_prompt(request, token_ids)
                    written.append(json.dumps({"number": request.number, "prompt": prompt}))
                    self._written.add(request.number, prompt)

    def _plan(self) -> tuple[FileSupply, WrittenSupply]:
        settings, own = self._settings, {_key(answer) for answer in self._own}
        known = {_key(answer) for answer in self._known} - own
        prompts = read_prompts(settings.prompts) if settings.prompts else []
        requests = file_requests(prompts, self.gate, self._maker, known, settings.seed)
        requests = requests[: round(settings.n_answers * (1 - settings.self_written))]
        self.gate.remember(answer.prompt for answer in self._known)
        n_written = settings.n_answers - len(requests) if settings.self_written else 0
        written = WrittenSupply(self._writer, self._maker, self.gate, n_written, own)
        written.recall(_read_written(settings.written_path))
        return FileSupply(requests, own), written

    def _generator(self) -> BatchGenerator:
        settings = self._settings
        longest_answer = settings.max_prompt_tokens + settings.max_new_tokens
        capacity = max(longest_answer, self._writer.max_tokens if self._written.n_wanted else 0)
        if capacity > self._target.n_positions:
            raise SpecVizError(
                f"This model has {self._target.n_positions} positions; prompts and answers may take {capacity}: "
                "lower --max-prompt-tokens, --max-written-tokens or --max-new-tokens."
            )
        n_missing = max(self.n_wanted - self.n_done, 1)
        return BatchGenerator(self._target, min(settings.n_places, n_missing), capacity)

    def _check_begun(self) -> None:
        """Hold the settings that decide what is generated against those that the folder was begun with."""
        path = self._settings.out / "corpus.json"
        asked = self._deciding_settings()
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
            return
        begun = _read_json(path)
        if different := [name for name in asked if asked[name] != begun.get(name)]:
            raise SpecVizError(
                f"The corpus in {self._settings.out} was begun with another {different[0].replace('_', ' ')}: "
                "use the same one or another folder."
            )

    def _deciding_settings(self) -> dict[str, Any]:
        fixed = {name: getattr(self._settings, name) for name in FIXED}
        return {"model": self._target.info.name, **fixed, "openings": list(self._settings.openings)}


def _key(answer: Answer) -> AnswerKey:
    return normalise_words(answer.prompt), answer.temperature


def _read_written(path: Path) -> dict[int, str | None]:
    values = [json.loads(line) for line in read_lines(path)] if path.exists() else []
    return {value["number"]: value["prompt"] for value in values}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise SpecVizError(f"{path} is damaged: remove it, or use another folder.") from None
