"""The training loop that every drafter shares: plan, loss, gradient, move, average, measure, save.

A run is a function of its corpus, its configuration and its seed: each step's answers and random draws follow from the
step's number, so a run that was interrupted goes on where its last checkpoint was, on the same curve. Several processes
(`accelerate launch --multi_gpu --num_processes 2`, without GPUs too) share each step's answers; their gradients are
sums over all of them.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from specviz.conditions import refuse_contradiction
from specviz.errors import SpecVizError
from specviz.training.curve import Curve
from specviz.training.optimizer import Movers, rate_share
from specviz.training.plan import plan_batches
from specviz.training.seeds import derive_draws

STATE = "training_state.pt"
KEPT = {"conditions", "module", "average", "movers", "curve", "step", "seconds"}  # in the state
FREE = ("steps", "measure_every", "save_every")  # may change in a run that is resumed; steps while the rate allows it


@dataclass(frozen=True)
class TrainingConfig:
    """What every training is asked to do. Counts of tokens are tokens of answers.

    `warm_up` is in steps, `cool_down` a share of the run, `average` the decay of the averaged weights, which are
    what is measured and saved; `measure_every` and `save_every` are in steps.
    """

    steps: int
    batch_tokens: int = 1500
    learning_rate: float = 2e-3
    warm_up: int = 20
    cool_down: float = 0.3
    clip: float = 1.0
    average: float = 0.98
    measure_every: int = 100
    save_every: int = 100
    seed: int = 0


@dataclass(frozen=True)
class StepLoss:
    """The loss of this process's share of a step, summed and divided by the whole step's rows, and plain figures."""

    total: Tensor
    figures: dict[str, float]

    def times(self, factor: float) -> StepLoss:
        return StepLoss(self.total * factor, {name: value * factor for name, value in self.figures.items()})


Module = TypeVar("Module", bound=nn.Module)


class Trainee(Protocol[Module]):
    """What is trained: parameters, a loss over answers, a measure, and files."""

    module: Module
    lengths: Sequence[int]  # answer tokens of each answer
    autocast: bool  # whether the loss is computed in bfloat16 where that is safe

    def loss(self, answers: Sequence[int], n_tokens: int, draws: Sequence[torch.Generator]) -> StepLoss:
        """Return the loss of these answers (indices), each with its own random draw.

        `n_tokens` are the whole step's answer tokens.
        """

    def measure(self, module: Module) -> dict[str, float]:
        """Return figures of weights on held-out answers; `tau` is among them."""

    def save(self, module: Module, folder: Path, training: dict[str, Any]) -> None:
        """Write weights as a drafter that loads in the page and the command line."""


class Training:
    """One run in its output folder: a drafter, a curve, and the state to go on from.

    `conditions` are what the run depends on beside its configuration (corpus, target, parent, the trainee's settings):
    a checkpoint made under others is refused, because a curve of two trainings is none.
    """

    def __init__(
        self,
        trainee: Trainee[Any],
        config: TrainingConfig,
        out: Path,
        notes: dict[str, Any] | None = None,
        after_save: Callable[[Path], None] | None = None,
        conditions: Mapping[str, Any] | None = None,
    ) -> None:
        self.trainee, self.config, self.out = trainee, config, out
        self.notes, self.after_save = notes or {}, after_save
        on_cpu = next(trainee.module.parameters()).device.type == "cpu"
        # Accelerate keeps one precision for a whole process; trainees of one process differ in theirs.
        self.accelerator = Accelerator(mixed_precision="no", cpu=on_cpu)
        self.conditions = {**(conditions or {}), **self._own_conditions()}
        self.movers = Movers(trainee.module, config.learning_rate)
        self.average = AveragedModel(trainee.module, multi_avg_fn=get_ema_multi_avg_fn(config.average))
        self.curve = Curve()
        self.step = 0
        self.seconds = 0.0

    def run(self) -> Curve:
        """Train to the configured number of steps, from the last checkpoint where there is one.

        Raises SpecVizError, before the first step, where the output folder cannot be written or holds another run.
        """
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SpecVizError(f"The folder {self.out} cannot be written to: {error.strerror}.") from None
        self.resume()
        n_processes = self.accelerator.num_processes
        lengths = self.trainee.lengths
        plan = plan_batches(lengths, self.config.batch_tokens * n_processes, self.config.seed, skip=self.step)
        with tqdm(total=self.config.steps, initial=self.step, unit="step", disable=not self._leads) as bar:
            while self.step < self.config.steps:
                batch = next(plan)
                started = perf_counter()
                figures = self._advance(batch, sum(lengths[i] for i in batch))
                self.seconds += perf_counter() - started
                self.step += 1
                self.curve.add_step(self.step, figures | {"seconds": self.seconds})
                self._after_step()
                bar.update()
                bar.set_postfix_str(self.curve.summary())
        return self.curve

    def resume(self) -> None:
        """Take up the last checkpoint of the output folder, if there is one.

        Raises SpecVizError where it is damaged, was made under other conditions, or at a rate that this run would not
        have had.
        """
        path = self.out / STATE
        if not path.is_file():
            return
        state = _read_state(path, self.accelerator.device)
        before = json.loads(state["conditions"])
        refuse_contradiction(self.out, before, self.conditions)
        self._check_rate(state["step"], before["steps"])
        self.trainee.module.load_state_dict(state["module"])
        self.average.load_state_dict(state["average"])
        self.movers.load_state_dict(state["movers"])
        self.curve = Curve.from_dict(json.loads(state["curve"]))
        self.step, self.seconds = state["step"], state["seconds"]

    def _own_conditions(self) -> dict[str, Any]:
        """Return what the configuration says of the curve; how often it is measured and saved changes nothing."""
        config = asdict(self.config)
        config["batch_tokens"] *= self.accelerator.num_processes
        return {name: value for name, value in config.items() if name not in FREE}

    def _check_rate(self, n_done: int, n_planned: int) -> None:
        """Refuse another number of steps once the rate of the steps that are done depends on it."""
        warm_up, cool_down, steps = self.config.warm_up, self.config.cool_down, self.config.steps
        if any(
            rate_share(step, n_planned, warm_up, cool_down) != rate_share(step, steps, warm_up, cool_down)
            for step in range(n_done)
        ):
            raise SpecVizError(
                f"{self.out} has done {n_done} of {n_planned} steps at a rate that falls towards the last: ask for "
                f"--steps {n_planned}, or go on from its weights with --from and another --out."
            )

    @property
    def _leads(self) -> bool:
        return self.accelerator.is_main_process

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=self.trainee.autocast)

    def _own_loss(self, batch: Sequence[int], n_tokens: int) -> StepLoss:
        """Return the loss of this process's share of a step's answers, each with the draw it has anywhere."""
        places = range(self.accelerator.process_index, len(batch), self.accelerator.num_processes)
        # An epoch's last batch may have fewer answers than there are processes. Who has none computes one that counts
        # nothing, for the processes add up gradients and figures of the same names.
        idle, places = not places, places or range(1)
        loss = self.trainee.loss(
            [batch[place] for place in places], n_tokens, derive_draws(places, self.config.seed, self.step)
        )
        return loss.times(0.0) if idle else loss

    def _advance(self, batch: Sequence[int], n_tokens: int) -> dict[str, float]:
        """Take one step over a batch of answers and return its figures, summed over the processes."""
        self.movers.set_rate(rate_share(self.step, self.config.steps, self.config.warm_up, self.config.cool_down))
        with self._autocast():
            loss = self._own_loss(batch, n_tokens)
        self.accelerator.backward(loss.total)
        self._sum_gradients()
        norm = self.movers.step(self.config.clip)
        self.average.update_parameters(self.trainee.module)
        names, values = zip(*{"loss": float(loss.total.detach()), **loss.figures}.items(), strict=True)
        summed = self.accelerator.reduce(torch.tensor(values, device=self.accelerator.device), "sum").tolist()
        return dict(zip(names, summed, strict=True)) | {"gradient": norm, "tokens": n_tokens}

    def _sum_gradients(self) -> None:
        if self.accelerator.num_processes > 1:
            for parameter in self.movers.parameters:
                own = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
                parameter.grad = self.accelerator.reduce(own, "sum")

    def _after_step(self) -> None:
        last = self.step == self.config.steps
        measured = last or self.step % self.config.measure_every == 0
        if measured:
            with torch.no_grad(), self._autocast():
                self.curve.add_measure(self.step, self.trainee.measure(self.average.module))
        if self._leads and (measured or self.step % self.config.save_every == 0):
            self.save()

    def save(self) -> None:
        """Write drafter, curve, configuration and checkpoint; a checkpoint that is half written never counts."""
        training = {
            **self.notes,
            **asdict(self.config),
            "steps_done": self.step,
            "hours": round(self.seconds / 3600, 2),
        }
        self.trainee.save(self.average.module, self.out, training)
        self.curve.save(self.out)
        (self.out / "training.json").write_text(json.dumps(training, indent=2) + "\n", encoding="utf-8")
        state = {
            "conditions": json.dumps({**self.conditions, "steps": self.config.steps}),
            "module": self.trainee.module.state_dict(),
            "average": self.average.state_dict(),
            "movers": self.movers.state_dict(),
            "curve": json.dumps(self.curve.to_dict()),
            "step": self.step,
            "seconds": self.seconds,
        }
        torch.save(state, self.out / f"{STATE}.part")
        os.replace(self.out / f"{STATE}.part", self.out / STATE)
        if self.after_save is not None:
            self.after_save(self.out)


def _read_state(path: Path, device: torch.device) -> dict[str, Any]:
    """Return what `save` wrote; raise SpecVizError where it is something else, another version's for example."""
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except (OSError, EOFError, RuntimeError, LookupError, ValueError, pickle.UnpicklingError):
        state = None
    if not isinstance(state, dict) or not state.keys() >= KEPT:
        raise SpecVizError(
            f"{path} is not a checkpoint of this version, or damaged: choose another --out folder, and go on from the "
            "weights in this one with --from."
        )
    return state
