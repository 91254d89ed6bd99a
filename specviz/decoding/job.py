"""One call of the engine: what is decoded, how each row is set up, and what is told of it while it runs."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version

import specviz
from specviz.decoding.events import Passing, Stepped
from specviz.decoding.limits import Ending
from specviz.decoding.loop import run_turns
from specviz.decoding.record import StepRecorder
from specviz.decoding.sampling import Sampler
from specviz.decoding.sequence import Sequence
from specviz.drafters.base import Drafter
from specviz.drafters.plain import PlainDrafter
from specviz.errors import SpecVizError
from specviz.metrics import complete_run, first_departure
from specviz.settings import RunSettings
from specviz.target.model import Target
from specviz.text import partial_bytes, piece_of
from specviz.trace import RunTrace, StepTrace, TokenTrace

VERSIONED = ("torch", "transformers")


@dataclass(frozen=True)
class Job:
    """One call: a target, a drafter, resolved settings, encoded prompts."""

    target: Target
    drafter: Drafter
    settings: RunSettings
    prompts: list[list[int]]

    def batches(self) -> Iterator[list[int]]:
        """Yield the rows that are decoded together."""
        rows = list(range(len(self.prompts)))
        size = self.drafter.max_batch or len(rows)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))

    def row_settings(self, row: int) -> RunSettings:
        """Return a row's settings: each row has its own seed, so that it equals its prompt run alone."""
        return self.settings.model_copy(update={"seed": self.settings.seed + row})

    def sequence(self, row: int, drafter: Drafter) -> Sequence:
        """Start a sequence of this row under a drafter."""
        settings, target, prompt = self.row_settings(row), self.target, self.prompts[row]
        sampler = Sampler(settings.temperature, settings.top_p, settings.seed)
        plain = isinstance(drafter, PlainDrafter)
        full = settings.record == "full"
        return Sequence(
            row=row,
            token_ids=list(prompt),
            session=drafter.begin(prompt),
            sampler=sampler,
            ending=Ending(
                target.tokenizer,
                target.eos_ids,
                settings.stop,
                settings.max_new_tokens,
                n_free=target.n_positions - len(prompt),
            ),
            recorder=StepRecorder(
                target,
                sampler,
                full and not plain,
                plain,
                settings.attention_row,
                routing=full and settings.method == "plain",
            ),
        )

    def header(self, row: int) -> RunTrace:
        """Return the trace of a row before its first step."""
        codec = self.target.tokenizer
        settings = self.row_settings(row)
        prompt = [
            TokenTrace(token_id=i, piece=piece_of(codec, i), bytes=partial_bytes(codec, i), source="prompt")
            for i in self.prompts[row]
        ]
        return RunTrace(
            run_id=uuid.uuid4().hex,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            method=settings.method,
            exact=settings.exact,
            settings=settings.model_dump(mode="json"),
            model=self.target.info,
            drafter=self.drafter.info,
            versions={"specviz": specviz.__version__, "python": platform.python_version()}
            | {name: version(name) for name in VERSIONED},
            prompt=prompt,
            steps=[],
            text="",
            finish_reason="stopped",
            notices=_notices(settings, self.target, self.drafter),
            row=row,
        )


class Lane:
    """A row while it is decoded: its sequence, its steps, and those that are not told yet."""

    def __init__(self, job: Job, row: int) -> None:
        self.sequence = job.sequence(row, job.drafter)
        self._header = job.header(row)
        self._steps: list[StepTrace] = []
        self._n_told = 0
        self._text = ""

    def add(self, step: StepTrace) -> None:
        """Take a step in, and let its late verdicts complete the step before it."""
        for late in step.late:
            node = self._steps[late.step].nodes[late.node]
            node.target_prob, node.target_rank = late.target_prob, late.target_rank
            node.target_argmax = late.target_argmax
        self._steps.append(step)

    def tellable(self) -> Iterator[Stepped]:
        """Yield the steps whose text can no longer become a stop text."""
        if self.sequence.ending.holds_text and self.sequence.finish_reason is None:
            return
        untold = self._steps[self._n_told :]
        n_visible = sum(_n_characters(step) for step in untold) + len(self._text) - self.sequence.text_cut
        for step in untold:
            self._text += "".join(token.piece for token in step.committed)
            yield Stepped(self.sequence.row, step, self._text[:n_visible])
        self._n_told = len(self._steps)

    def finished(self) -> RunTrace:
        """Return the whole trace of the row."""
        reason = self.sequence.finish_reason
        assert reason is not None, "a lane is finished when the loop has ended"
        return complete_run(
            self._header,
            self._steps,
            reason,
            self.sequence.text_cut,
            padding=self.sequence.padding,
            divergence=first_departure(self._steps),
        )


def _n_characters(step: StepTrace) -> int:
    return sum(len(token.piece) for token in step.committed)


def stream_batch(job: Job, lanes: list[Lane]) -> Iterator[Passing | Stepped]:
    """Decode rows together, telling each pass before it begins and each step once its text is final."""
    by_row = {lane.sequence.row: lane for lane in lanes}
    for told in run_turns(job.target, job.drafter, [lane.sequence for lane in lanes]):
        if isinstance(told, Passing):
            yield told
            continue
        sequence, step = told
        lane = by_row[sequence.row]
        lane.add(step)
        yield from lane.tellable()


def check_prompt(token_ids: list[int], target: Target) -> list[int]:
    """Return a prompt as it is; raise SpecVizError where the target cannot run it."""
    if not token_ids:
        raise SpecVizError("The prompt has no tokens.")
    if len(token_ids) >= target.n_positions:
        raise SpecVizError(
            f"The prompt has {len(token_ids)} tokens; this model's context holds {target.n_positions}, "
            "the answer included."
        )
    return token_ids


def _notices(settings: RunSettings, target: Target, drafter: Drafter) -> list[str]:
    """Return what a reader of the run should know beside it."""
    notices = []
    if not settings.exact:
        notices.append(
            "Lossy: the self-consistent selection commits tokens that the target never confirmed, so the text can "
            "leave the target's own."
        )
    if settings.temperature == 0 and settings.top_p < 1:
        notices.append("top-p has no effect at temperature 0.")
    if drafter.info is not None and not drafter.info.trained and drafter.info.source == "random":
        notices.append("Random weights: shapes are real, proposals are noise.")
    if drafter.info is not None and drafter.feature_layers is not None:
        notices.extend(drafter.info.notes)
    if target.windows.window is not None:
        notices.append(
            f"Some layers of this target see only the last {target.windows.window} positions; "
            + ("the masks shown are those of the others." if target.windows.mixed else "the masks show it.")
        )
    return notices
