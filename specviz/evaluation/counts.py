"""What was counted in the passes of an answer: counts add up, so that every ratio is pooled over passes."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict, Field

from specviz.metrics import JUDGED, count_depths, count_drafted, is_chain
from specviz.trace import StepTrace


class PassCounts(BaseModel):
    """Sums over the target passes after the prefill; None where a lane does not tell.

    `n_drafted` are the committed tokens without the correction or bonus. `judged_at` and `accepted_at` count, by
    depth, the passes with a judged and with an accepted node there. `is_chain` is False once any pass was a tree.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_passes: int = 0
    n_committed: int = 0
    n_drafted: int = 0
    n_rows: int = 0
    n_judged: int = 0
    n_accepted: int = 0
    is_chain: bool = True
    judged_at: dict[int, int] = Field(default_factory=dict)
    accepted_at: dict[int, int] = Field(default_factory=dict)
    draft_ms: float | None = 0.0
    verify_ms: float | None = 0.0

    def __add__(self, other: PassCounts) -> PassCounts:
        return PassCounts(
            n_passes=self.n_passes + other.n_passes,
            n_committed=self.n_committed + other.n_committed,
            n_drafted=self.n_drafted + other.n_drafted,
            n_rows=self.n_rows + other.n_rows,
            n_judged=self.n_judged + other.n_judged,
            n_accepted=self.n_accepted + other.n_accepted,
            is_chain=self.is_chain and other.is_chain,
            judged_at=Counter(self.judged_at) + Counter(other.judged_at),
            accepted_at=Counter(self.accepted_at) + Counter(other.accepted_at),
            draft_ms=_add_known(self.draft_ms, other.draft_ms),
            verify_ms=_add_known(self.verify_ms, other.verify_ms),
        )

    def per_pass(self, total: float | None) -> float | None:
        """Return a total over the passes; None where there was no pass or no total."""
        return total / self.n_passes if self.n_passes and total is not None else None

    @property
    def acceptance_by_depth(self) -> dict[int, float]:
        """Passes with an accepted node of a depth over passes with a judged one."""
        return {depth: self.accepted_at.get(depth, 0) / n for depth, n in sorted(self.judged_at.items())}

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over judged nodes, for chains only."""
        return self.n_accepted / self.n_judged if self.is_chain and self.n_judged else None


def count_passes(steps: Sequence[StepTrace]) -> PassCounts:
    """Count the steps after the prefill."""
    passes = [step for step in steps if step.index > 0]
    judged_at, accepted_at = count_depths(passes)
    statuses = Counter[str](node.status for step in passes for node in step.nodes)
    return PassCounts(
        n_passes=len(passes),
        n_committed=sum(len(step.committed) for step in passes),
        n_drafted=sum(count_drafted(step) for step in passes),
        n_rows=sum(step.n_rows for step in passes),
        n_judged=sum(statuses[status] for status in JUDGED),
        n_accepted=statuses["accepted"],
        is_chain=all(is_chain(step) for step in passes),
        judged_at=judged_at,
        accepted_at=accepted_at,
        draft_ms=sum(step.times_ms.draft for step in passes),
        verify_ms=sum(step.times_ms.verify for step in passes),
    )


def pool_counts(counts: Iterable[PassCounts]) -> PassCounts:
    """Add counts up."""
    return functools.reduce(operator.add, counts, PassCounts())


def _add_known(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
