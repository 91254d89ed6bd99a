"""Why the target's token was not in the tree, counted over a run (recorded at level `full`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from specviz.analysis.token_kind import TokenKind, token_kind
from specviz.sentence import say
from specviz.trace import MissReason, MissTrace, RunTrace, StepTrace, TokenTrace

MISS_REASONS: tuple[MissReason, ...] = get_args(MissReason)

MISS_SENTENCES: dict[MissReason, str] = {
    "out_of_draft_vocab": say("The drafter cannot say this token: it is outside of the draft vocabulary."),
    "below_top_k": say("The drafter ranked this token below the children that it took."),
    "pruned": say("Drafted or about to be, but the budget of nodes or the beam went to more probable branches."),
    "depth_limit": say("The path was right to its end: the tree was not deeper."),
}


@dataclass(frozen=True)
class MissCounts:
    """Passes after the prefill that ended with the target's own token, by the reason why no draft had it.

    `n_unrecorded` of these passes hold no reason: they were recorded at level `light`, or the drafter keeps
    no distributions. `ranks` are the draft's ranks (0 is best) of tokens that it could say, in order.
    """

    n_passes: int = 0
    n_unrecorded: int = 0
    by_reason: dict[MissReason, int] = field(default_factory=lambda: dict.fromkeys(MISS_REASONS, 0))
    by_kind: dict[TokenKind, dict[MissReason, int]] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()


def count_misses(run: RunTrace) -> MissCounts:
    """Count the reasons of one run."""
    return pool_misses([run])


def pool_misses(runs: Iterable[RunTrace]) -> MissCounts:
    """Count the reasons of several runs together."""
    ends = [end for run in runs for step in run.steps if (end := _find_end(step))]
    misses = [(token, miss) for token, miss in ends if miss is not None]
    reasons = Counter(miss.reason for _, miss in misses)
    by_kind: dict[TokenKind, dict[MissReason, int]] = {}
    for token, miss in misses:
        by_kind.setdefault(token_kind(token.piece), dict.fromkeys(MISS_REASONS, 0))[miss.reason] += 1
    return MissCounts(
        n_passes=len(ends),
        n_unrecorded=len(ends) - len(misses),
        by_reason={reason: reasons[reason] for reason in MISS_REASONS},
        by_kind=by_kind,
        ranks=tuple(miss.draft_rank for _, miss in misses if miss.draft_rank is not None),
    )


def find_miss(step: StepTrace) -> MissTrace | None:
    """Return why no draft had the target's own token of this step, where it was recorded."""
    last = step.accepted[-1] if step.accepted else 0
    return next((node.miss for node in step.nodes if node.idx == last), None)


def _find_end(step: StepTrace) -> tuple[TokenTrace, MissTrace | None] | None:
    """Return the target's own token of a speculative step with its miss; None where the step has none."""
    own = next((token for token in step.committed if token.source in ("correction", "bonus")), None)
    return None if own is None or step.index == 0 else (own, find_miss(step))
