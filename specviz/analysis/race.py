"""Plain decoding and a method on one clock, both measured in the same process, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from specviz.metrics import speedup, step_ms
from specviz.trace import RunTrace


@dataclass(frozen=True)
class Arrival:
    """Tokens that stand on the page `ms` after the start: `n_tokens` in all, `text` is what came last."""

    ms: float
    n_tokens: int
    token_id: int
    text: str
    source: str


@dataclass(frozen=True)
class Lane:
    """One lane of a race; its clock holds drafting, verifying and committing, the prefill included, no recording."""

    name: str
    arrivals: tuple[Arrival, ...]

    @property
    def seconds(self) -> float:
        """When the last token stood."""
        return self.arrivals[-1].ms / 1000 if self.arrivals else 0.0


@dataclass(frozen=True)
class Race:
    """Two lanes from one start; `speedup` is the metric of that name."""

    plain: Lane
    own: Lane
    speedup: float | None


def make_race(run: RunTrace) -> Race | None:
    """Return the race of a run against its plain lane; None where no plain lane was measured."""
    baseline = run.baseline
    if baseline is None or not baseline.times_ms or not run.steps:
        return None
    said = zip(baseline.token_ids, baseline.pieces, strict=True)
    plain = _arrive(
        (ms, [(token_id, piece, "target")]) for ms, (token_id, piece) in zip(baseline.times_ms, said, strict=True)
    )
    own = _arrive(
        (step_ms(step), [(token.token_id, token.piece, token.source) for token in step.committed]) for step in run.steps
    )
    return Race(Lane("plain", plain), Lane(run.method, own), speedup([run]))


def _arrive(passes: Iterable[tuple[float, list[tuple[int, str, str]]]]) -> tuple[Arrival, ...]:
    """Return each token with the moment at which its pass was done."""
    counter = itertools.count(1)
    arrivals, clock = [], 0.0
    for ms, tokens in passes:
        clock += ms
        arrivals += [Arrival(clock, next(counter), *token) for token in tokens]
    return tuple(arrivals)
