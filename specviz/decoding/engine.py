"""The facade that page, API and command line share: prompts and settings in, events and traces out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from specviz.decoding.baseline import attach_baseline, warm_up
from specviz.decoding.events import Event, Finished, Started
from specviz.decoding.job import Job, Lane, check_prompt, stream_batch
from specviz.drafters.build import WeightShelf, build_drafter, default_settings
from specviz.drafters.plain import PlainDrafter
from specviz.errors import SpecVizError
from specviz.settings import METHODS, Method, RunSettings
from specviz.target.loading import load_target
from specviz.target.model import Target
from specviz.trace import BatchTrace, ModelInfo, RunTrace

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
            lanes = [Lane(job, row) for row in rows]
            yield from stream_batch(job, lanes)
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

    def _prepare(self, prompts: list[str], settings: RunSettings) -> Job:
        if settings.method not in self.methods:
            raise SpecVizError(f"The method {settings.method} is not available yet.")
        if not prompts or any(not prompt.strip() for prompt in prompts):
            raise SpecVizError("The prompt is empty.")
        target = self.target(settings.model, settings.device, settings.dtype)
        checkpoint = self.find_checkpoint(settings, target)
        settings = settings.resolved(default_settings(settings, checkpoint))
        drafter = build_drafter(target, settings, checkpoint, self._shelf)
        encode = target.tokenizer.encode if settings.raw else target.tokenizer.encode_chat
        return Job(target, drafter, settings, [check_prompt(encode(prompt), target) for prompt in prompts])


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
