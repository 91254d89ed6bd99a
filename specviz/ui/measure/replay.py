"""An engine that decodes nothing: it plays a recorded run again, as long and as fast as a measurement asks for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from specviz.decoding.events import Event, Finished, Started, Stepped
from specviz.metrics import complete_run
from specviz.settings import RunSettings
from specviz.trace import ModelInfo, RunTrace, StepTrace


@dataclass
class ReplayEngine:
    """Fits `specviz.ui.backend.Backend`; a pass takes `seconds`, and `begun` holds the clock time of each."""

    run: RunTrace
    n_steps: int
    seconds: float
    drafter_names: Sequence[str] = ()
    begun: list[float] = field(default_factory=list)

    @property
    def model_names(self) -> list[str]:
        """The recorded model's name."""
        return [self.run.model.name]

    @property
    def methods(self) -> list[str]:
        """The recorded run's method."""
        return [self.run.method]

    def info(self, model: str) -> ModelInfo:
        """Return what the recording says of its model."""
        return self.run.model

    def stream(self, prompts: list[str], settings: RunSettings) -> Iterator[Event]:
        """Tell the recorded steps again and again, renumbered, whatever the prompt is."""
        header = self.run.model_copy(update={"steps": [], "text": "", "metrics": {}, "baseline": None})
        yield Started([header])
        steps: list[StepTrace] = []
        text = ""
        for step in repeat_steps(self.run.steps, self.n_steps):
            self.begun.append(time.time())
            time.sleep(self.seconds)
            steps.append(step)
            text += "".join(token.piece for token in step.committed)
            yield Stepped(0, step, text)
        yield Finished(complete_run(header, steps, "length"))


def repeat_steps(recorded: Sequence[StepTrace], n_steps: int) -> Iterator[StepTrace]:
    """Yield the prefill and then `n_steps` steps: the others in a circle, renumbered."""
    prefill, others = recorded[0], recorded[1:]
    yield prefill
    for index in range(1, n_steps + 1):
        step = others[(index - 1) % len(others)]
        committed = [token.model_copy(update={"step": index}) for token in step.committed]
        yield step.model_copy(update={"index": index, "committed": committed})
