"""The same step with and without ConFu's future token f: the recorded tree beside its shadow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specviz.trace import NodeTrace, StepTrace


@dataclass(frozen=True)
class ShadowStep:
    """Accepted drafts of one step with f (as run) and without it (drafted, but only judged by the step's own words).

    The shadow can match no further than the step's tokens go: where it matches all of them, it may have gone
    on, and `is_open` says so.
    """

    with_f: int
    without_f: int
    is_open: bool
    n_shared: int
    n_nodes: int


@dataclass(frozen=True)
class ShadowTotals:
    """Accepted drafts over all steps that have a shadow."""

    n_steps: int
    with_f: int
    without_f: int
    n_better: int
    n_worse: int
    n_open: int


def compare_shadow(step: StepTrace) -> ShadowStep | None:
    """Compare a step's tree with its shadow; None where no shadow was recorded."""
    if step.shadow is None:
        return None
    with_f, without_f = _count_matched(step.nodes), _count_matched(step.shadow)
    own, shadow = _paths(step.nodes), _paths(step.shadow)
    return ShadowStep(
        with_f=with_f,
        without_f=without_f,
        is_open=without_f >= len(step.committed),
        n_shared=len(own & shadow) - 1,
        n_nodes=len(own) - 1,
    )


def total_shadow(steps: Iterable[StepTrace]) -> ShadowTotals | None:
    """Sum the steps that have a shadow; None where none has."""
    pairs = [pair for step in steps if (pair := compare_shadow(step)) is not None]
    if not pairs:
        return None
    return ShadowTotals(
        n_steps=len(pairs),
        with_f=sum(pair.with_f for pair in pairs),
        without_f=sum(pair.without_f for pair in pairs),
        n_better=sum(pair.with_f > pair.without_f for pair in pairs),
        n_worse=sum(pair.with_f < pair.without_f for pair in pairs),
        n_open=sum(pair.is_open for pair in pairs),
    )


def _count_matched(nodes: Iterable[NodeTrace]) -> int:
    return sum(node.status in ("accepted", "cut") for node in nodes)


def _paths(nodes: Iterable[NodeTrace]) -> set[tuple[int, ...]]:
    paths: dict[int, tuple[int, ...]] = {-1: ()}
    for node in nodes:
        paths[node.idx] = (*paths[node.parent], node.token_id) if node.parent >= 0 else ()
    return set(paths.values())
