"""Where the time of a step went, and what the visualizer itself added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from specviz.trace import StepTrace

Phase = Literal["draft", "verify", "commit"]
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass(frozen=True)
class Span:
    """One phase of a step: when it began after the step's start, and how long it took, in milliseconds. Measured."""

    phase: Phase
    start: float
    ms: float


@dataclass(frozen=True)
class Waterfall:
    """The phases of a step one behind the other; `record_ms` is the visualizer's own cost, behind them and apart."""

    spans: tuple[Span, ...]
    record_ms: float

    @property
    def ms(self) -> float:
        """Time of the step without recording."""
        return self.spans[-1].start + self.spans[-1].ms


@dataclass(frozen=True)
class TimeShares:
    """Milliseconds of all steps by phase, and the visualizer's own cost beside them."""

    by_phase: dict[Phase, float]
    record_ms: float

    @property
    def ms(self) -> float:
        """Time without recording."""
        return sum(self.by_phase.values())


def make_waterfall(step: StepTrace) -> Waterfall:
    """Lay the phases of a step out in time."""
    spans, start = [], 0.0
    for phase in PHASES:
        ms = getattr(step.times_ms, phase)
        spans.append(Span(phase, start, ms))
        start += ms
    return Waterfall(tuple(spans), step.times_ms.record)


def share_times(steps: Sequence[StepTrace]) -> TimeShares:
    """Sum the phases of steps."""
    by_phase: dict[Phase, float] = {phase: sum(getattr(step.times_ms, phase) for step in steps) for phase in PHASES}
    return TimeShares(by_phase, sum(step.times_ms.record for step in steps))
