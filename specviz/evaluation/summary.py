"""From records to the numbers of a table: pooled over passes, by category and overall."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from specviz.evaluation.counts import pool_counts
from specviz.evaluation.lanes import PLAIN
from specviz.evaluation.records import LaneRecord, Verdict


class Summary(BaseModel):
    """One lane over some questions; the names are those of `metrics.py`, None stands for what is not known.

    `tokens_per_second` is the mean over questions, and `speedup` the ratio of that mean to the plain lane's over the
    same questions (Spec-Bench, `speed.py`). The counts of `exactness` are answers.
    """

    model_config = ConfigDict(frozen=True)

    n_questions: int
    n_passes: int
    tau: float | None
    tau_draft: float | None
    acceptance_by_depth: dict[int, float]
    acceptance_rate: float | None
    rows_per_pass: float | None
    draft_ms: float | None
    verify_ms: float | None
    tokens_per_second: float
    speedup: float | None
    exactness: dict[Verdict, int]


def summarise(records: Sequence[LaneRecord], plain: Sequence[LaneRecord]) -> Summary:
    """Summarise a lane's records beside the plain lane's records of the same questions (empty: not measured)."""
    counts = pool_counts(record.counts for record in records)
    rate = mean_rate(records)
    return Summary(
        n_questions=len(records),
        n_passes=counts.n_passes,
        tau=counts.per_pass(counts.n_committed),
        tau_draft=counts.per_pass(counts.n_drafted),
        acceptance_by_depth=counts.acceptance_by_depth,
        acceptance_rate=counts.acceptance_rate,
        rows_per_pass=counts.per_pass(counts.n_rows),
        draft_ms=counts.per_pass(counts.draft_ms),
        verify_ms=counts.per_pass(counts.verify_ms),
        tokens_per_second=rate,
        speedup=rate / mean_rate(plain) if plain else None,
        exactness=dict(Counter(record.exactness.verdict for record in records if record.exactness is not None)),
    )


def mean_rate(records: Iterable[LaneRecord]) -> float:
    """Return the mean of tokens per second over answers."""
    return statistics.mean(len(record.token_ids) / record.seconds for record in records)


def summarise_lanes(records: Sequence[LaneRecord], lanes: Iterable[str]) -> dict[str, Summary]:
    """Summarise each lane over all records given."""
    by_lane = {lane: [record for record in records if record.lane == lane] for lane in lanes}
    return {lane: summarise(own, by_lane.get(PLAIN, [])) for lane, own in by_lane.items()}


def list_categories(records: Iterable[LaneRecord]) -> list[str]:
    """Return the categories in the order in which they come."""
    return list(dict.fromkeys(record.category for record in records))
