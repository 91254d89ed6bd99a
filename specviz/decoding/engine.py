"""The facade that page, API and command line share: prompts and settings in, events and traces out."""

from __future__ import annotations

import logging
import platform
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import specviz
from specviz.decoding.baseline import attach_baseline, warm_up
from specviz.decoding.events import Event, Finished, Passing, Started, Stepped
from specviz.decoding.limits import Ending
from specviz.decoding.loop import run_turns
from specviz.decoding.record import StepRecorder
from specviz.decoding.sampling import Sampler
from specviz.decoding.sequence import Sequence
from specviz.drafters.base import Drafter
from specviz.drafters.build import WeightShelf, build_drafter, default_settings
from specviz.drafters.plain import PlainDrafter
from specviz.errors import SpecVizError
from specviz.metrics import complete_run, first_departure
from specviz.settings import METHODS, Method, RunSettings
from specviz.target.loading import load_target
from specviz.target.model import Target
from specviz.text import partial_bytes, piece_of
from specviz.trace import BatchTrace, ModelInfo, RunTrace, StepTrace, TokenTrace

VERSIONED = ("torch", "transformers")
DRAFTERS = Path(__file__).resolve().parents[2] / "assets" / "drafters"
Progress = Callable[[str], None]
logger = logging.getLogger(__name__)


class Engine:
    """Loads the targets and drafters that an operator named, and runs prompts on them.

    `models` and `drafters` are hub ids, folders or files (and `bundled`); runs name them by
    `model_names` and `drafter_names`, which show no path.
    """

    methods: tuple[Method, ...] = METHODS

    def __init__(
        self,
        models: tuple[str, ...] | list[str] = ("bundled",),
        drafters: tuple[str, ...] | list[str] = (),
        device: str = "auto",
        dtype: str = "auto",
        progress: Progress = logger.info,
        cuda_graphs: bool = False,
    ) -> None:
        self._models = _named(models)
        self._drafters = _named(drafters)
        self._device, self._dtype, self._progress = device, dtype, progress
        self._cuda_graphs = cuda_graphs
        self._targets: dict[tuple[str, str, str], Target] = {}
        self._shelf = WeightShelf()
        self._loading = threading.Lock()

    @property
    def model_names(self) -> list[str]:
        """The targets that a run may name."""
        return list(self._models)

    @property
    def drafter_names(self) -> list[str]:
        """The drafters that a run may name."""
        return list(self._drafters)

    def info(self, model: str) -> ModelInfo:
        """Return what is known of a target, loading it where needed."""
        return self.target(model).info

    def target(self, model: str, device: str = "auto", dtype: str = "auto") -> Target:
        """Return a loaded target by name; `auto` means the engine's own device and dtype."""
        if model not in self._models:
            raise SpecVizError(f"There is no model {model!r} here; choose one of {', '.join(self._models)}.")
        key = (model, self._device if device == "auto" else device, self._dtype if dtype == "auto" else dtype)
        with self._loading:
            if key not in self._targets:
                self._targets[key] = load_target(self._models[model], key[1], key[2], self._progress)
                if self._cuda_graphs and (refusal := self._targets[key].use_cuda_graphs()):
                    self._progress(refusal)
            return self._targets[key]

    def add_target(self, model: str, target: Target) -> None:
        """Take a target that is loaded already, under one of the engine's model names."""
        self._targets[(model, self._device, self._dtype)] = target

    def run(self, prompts: str | list[str], settings: RunSettings) -> RunTrace | BatchTrace:
        """Run to the end and return the trace."""
        for event in self.stream([prompts] if isinstance(prompts, str) else prompts, settings):
            if isinstance(event, Finished):
                return event.trace
        raise AssertionError("a stream ends with Finished")

    def stream(self, prompts: list[str], settings: RunSettings) -> Iterator[Event]:
        """Run prompts and tell each pass before it begins and each step; closing the generator ends the run there."""
        job = self._prepare(prompts, settings)
        yield Started([job.header(row) for row in range(len(job.prompts))])
        if settings.compare_plain:
            yield from warm_up(job.target, job.drafter, job.prompts[0])
        done: list[RunTrace] = []
        for rows in job.batches():
            lanes = [_Lane(job, row) for row in rows]
            yield from _stream_batch(job, lanes)
            done.extend(lane.finished() for lane in lanes)
        if settings.compare_plain:
            for i, run in enumerate(done):
                done[i] = yield from attach_baseline(job.target, job.sequence(run.row, PlainDrafter()), run)
        yield Finished(done[0] if len(done) == 1 else BatchTrace(batch=done))

    def find_checkpoint(self, settings: RunSettings, target: Target) -> Path | None:
        """Return the folder of the drafter that was asked for, or of the one shipped for this target."""
        if settings.drafter is not None:
            if settings.drafter not in self._drafters:
                known = ", ".join(self._drafters) or "none was given at start"
                raise SpecVizError(f"There is no drafter {settings.drafter!r} here; choose one of: {known}.")
            return Path(self._drafters[settings.drafter])
        shipped = DRAFTERS / target.info.name.lower() / settings.method
        return shipped if shipped.is_dir() else None

    def _prepare(self, prompts: list[str], settings: RunSettings) -> _Job:
        if settings.method not in self.methods:
            raise SpecVizError(f"The method {settings.method} is not available yet.")
        if not prompts or any(not prompt.strip() for prompt in prompts):
            raise SpecVizError("The prompt is empty.")
        target = self.target(settings.model, settings.device, settings.dtype)
        checkpoint = self.find_checkpoint(settings, target)
        settings = settings.resolved(default_settings(settings, checkpoint))
        drafter = build_drafter(target, settings, checkpoint, self._shelf)
        encode = target.tokenizer.encode if settings.raw else target.tokenizer.encode_chat
        return _Job(target, drafter, settings, [_checked(encode(prompt), target) for prompt in prompts])


@dataclass(frozen=True)
class _Job:
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


class _Lane:
    """A row while it is decoded: its sequence, its steps, and those that are not told yet."""

    def __init__(self, job: _Job, row: int) -> None:
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


def _stream_batch(job: _Job, lanes: list[_Lane]) -> Iterator[Passing | Stepped]:
    by_row = {lane.sequence.row: lane for lane in lanes}
    for told in run_turns(job.target, job.drafter, [lane.sequence for lane in lanes]):
        if isinstance(told, Passing):
            yield told
            continue
        sequence, step = told
        lane = by_row[sequence.row]
        lane.add(step)
        yield from lane.tellable()


def _checked(token_ids: list[int], target: Target) -> list[int]:
    """Refuse prompts that the target cannot run."""
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


def _named(sources: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Return display names that show no path: the last part of a path, numbered where two are equal."""
    named: dict[str, str] = {}
    for source in sources:
        is_path = Path(source).expanduser().exists() or source.endswith(".gguf")
        name = Path(source).name if is_path else source
        while name in named:
            name += "'"
        named[name] = source
    return named
