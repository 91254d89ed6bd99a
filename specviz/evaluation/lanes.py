"""Lanes side by side: every question is decoded by each lane in turn, in one process, and the result resumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from specviz.analysis.expert_usage import count_experts
from specviz.analysis.misses import find_miss
from specviz.analysis.token_kind import token_kind
from specviz.decoding.engine import Engine
from specviz.evaluation.counts import PassCounts, count_passes
from specviz.evaluation.exactness import judge_answer
from specviz.evaluation.questions import Question
from specviz.evaluation.records import Exactness, LaneRecord, MissRecord, RecordFile
from specviz.metrics import step_ms
from specviz.settings import RunSettings
from specviz.target.model import Target
from specviz.trace import BatchTrace, RunTrace

PLAIN = "plain"
WARM_UP_TOKENS = 8


@dataclass(frozen=True)
class Answer:
    """What a lane made of a question; `run` is the trace of a lane that writes one."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    seconds: float
    counts: PassCounts
    run: RunTrace | None = None


class Lane(Protocol):
    """One way to answer questions: a method under fixed settings, or a peer."""

    def warm_up(self, questions: Sequence[Question]) -> None:
        """Answer a few tokens, whose time nobody counts."""

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions, decoded together where the lane can."""


@dataclass(frozen=True)
class EngineLane:
    """A method of this product."""

    engine: Engine
    settings: RunSettings

    def warm_up(self, questions: Sequence[Question]) -> None:
        short = min(WARM_UP_TOKENS, self.settings.max_new_tokens)
        self._run(questions, self.settings.model_copy(update={"max_new_tokens": short}))

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        return [read_answer(run) for run in self._run(questions, self.settings)]

    def _run(self, questions: Sequence[Question], settings: RunSettings) -> list[RunTrace]:
        trace = self.engine.run([question.prompt for question in questions], settings)
        return trace.batch if isinstance(trace, BatchTrace) else [trace]


@dataclass(frozen=True)
class Runner:
    """Runs lanes over questions and keeps what they make in a folder.

    `greedy` says whether a difference from plain decoding may be explained by a near-tie of logits. With `batch`
    above 1 so many questions are decoded together; a record's times are then the batch's.
    """

    target: Target
    folder: Path
    greedy: bool = True
    batch: int = 1

    def run(self, lanes: Mapping[str, Lane], questions: Sequence[Question]) -> list[LaneRecord]:
        """Return one record a question and lane, in this order; what the folder holds already is not run again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = RecordFile(self.folder)
        wanted = [(question, name) for question in questions for name in lanes]
        n_done = sum(file.find(question.question_id, name) is not None for question, name in wanted)
        with tqdm(total=len(wanted), initial=n_done, unit="answer") as bar:
            for start in range(0, len(questions), self.batch):
                for name, lane in lanes.items():
                    bar.set_description(name)
                    bar.update(self._answer(file, name, lane, questions[start : start + self.batch]))
        found = (file.find(question.question_id, name) for question, name in wanted)
        return [record for record in found if record is not None]

    def _answer(self, file: RecordFile, name: str, lane: Lane, questions: Sequence[Question]) -> int:
        """Answer those of `questions` that have no record of this lane, and return how many these were."""
        missing = [question for question in questions if file.find(question.question_id, name) is None]
        if missing:
            lane.warm_up(missing)
            for question, answer in zip(missing, lane.answer(missing), strict=True):
                file.add(self._record(file, name, question, answer))
        return len(missing)

    def _record(self, file: RecordFile, name: str, question: Question, answer: Answer) -> LaneRecord:
        run = answer.run
        return LaneRecord(
            question_id=question.question_id,
            category=question.category,
            lane=name,
            token_ids=answer.token_ids,
            seconds=answer.seconds,
            counts=answer.counts,
            exactness=self._judge(file, question, answer),
            misses=None if run is None else list_misses(run),
            experts={} if run is None else count_experts(run),
            trace=None if run is None else file.keep_trace(question.question_id, name, run),
        )

    def _judge(self, file: RecordFile, question: Question, answer: Answer) -> Exactness | None:
        plain = file.find(question.question_id, PLAIN)
        if plain is None:
            return None
        return judge_answer(self.target, answer.prompt_ids, answer.token_ids, plain.token_ids, self.greedy)


def read_answer(run: RunTrace) -> Answer:
    """Return what the tables need of a run."""
    return Answer(
        prompt_ids=tuple(token.token_id for token in run.prompt),
        token_ids=tuple(token.token_id for token in run.answer),
        seconds=sum(step_ms(step) for step in run.steps) / 1000,
        counts=count_passes(run.steps),
        run=run,
    )


def list_misses(run: RunTrace) -> tuple[MissRecord, ...] | None:
    """Return the misses of a drafting run recorded at level `full`; None for any other, which holds none."""
    if run.method == "plain" or run.settings["record"] != "full":
        return None
    misses = []
    for step in run.steps:
        miss = find_miss(step)
        if miss is not None:
            misses.append(
                MissRecord(
                    step=step.index,
                    depth=len(step.accepted) + 1,
                    reason=miss.reason,
                    kind=token_kind(step.committed[-1].piece),
                    piece=step.committed[-1].piece,
                    draft_rank=miss.draft_rank,
                    draft_prob=miss.draft_prob,
                )
            )
    return tuple(misses)
