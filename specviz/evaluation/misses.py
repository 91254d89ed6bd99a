"""Misses of lanes side by side: the target's tokens that no draft had, by reason, depth, kind of token and category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from specviz.analysis.misses import MISS_REASONS
from specviz.analysis.token_kind import TOKEN_KINDS
from specviz.evaluation.markdown import NOTHING, make_table, show_code, show_number
from specviz.evaluation.records import LaneRecord, MissRecord
from specviz.evaluation.summary import list_categories
from specviz.figures.drafting import REASON_LABELS

Dimension = Callable[[LaneRecord, MissRecord], str]

DIMENSIONS: dict[str, Dimension] = {
    "reason": lambda record, miss: miss.reason,
    "depth": lambda record, miss: str(miss.depth),
    "kind": lambda record, miss: miss.kind,
    "category": lambda record, miss: record.category,
}
SHOWN: dict[str, str] = {reason: REASON_LABELS[reason] for reason in MISS_REASONS}
HEADER = ("lane", "category", "question", "step", "depth", "reason", "kind", "token", "rank", "probability", "trace")


class MissCount(BaseModel):
    """Misses, and the passes in which they could have been: those of the category, else all of the lane."""

    model_config = ConfigDict(frozen=True)

    n_misses: int
    n_passes: int


class LaneMisses(BaseModel):
    """All misses of a lane, and by each dimension those of each value."""

    model_config = ConfigDict(frozen=True)

    total: MissCount
    by: dict[str, dict[str, MissCount]]


def count_lane_misses(records: Iterable[LaneRecord], lanes: Iterable[str]) -> dict[str, LaneMisses]:
    """Count the misses of each lane that recorded them; records without are left out."""
    recorded = [record for record in records if record.misses is not None]
    by_lane = {lane: [record for record in recorded if record.lane == lane] for lane in lanes}
    values = {name: _list_values(name, recorded) for name in DIMENSIONS}
    return {lane: _count(own, values) for lane, own in by_lane.items() if own}


def show_misses(misses: Mapping[str, LaneMisses]) -> str:
    """Return one table for each dimension: lanes as columns, misses and their share of the passes as cells."""
    return "\n\n".join(_dimension_table(name, misses) for name in DIMENSIONS)


def list_all_misses(records: Iterable[LaneRecord]) -> str:
    """Return every miss as a row of a table, linked to the trace that holds it."""
    return make_table(HEADER, (_row(record, miss) for record, miss in _pairs(records)))


def _count(records: Sequence[LaneRecord], values: Mapping[str, Sequence[str]]) -> LaneMisses:
    pairs = list(_pairs(records))
    passes_of = Counter[str]()
    for record in records:
        passes_of[record.category] += record.counts.n_passes
    n_passes = passes_of.total()
    by = {}
    for name, dimension in DIMENSIONS.items():
        counts = Counter(dimension(record, miss) for record, miss in pairs)
        by[name] = {
            value: MissCount(n_misses=counts[value], n_passes=passes_of[value] if name == "category" else n_passes)
            for value in values[name]
        }
    return LaneMisses(total=MissCount(n_misses=len(pairs), n_passes=n_passes), by=by)


def _pairs(records: Iterable[LaneRecord]) -> Iterator[tuple[LaneRecord, MissRecord]]:
    return ((record, miss) for record in records for miss in record.misses or ())


def _list_values(dimension: str, records: Sequence[LaneRecord]) -> Sequence[str]:
    """Return the values of a dimension in the order in which a table shows them."""
    if dimension == "depth":
        return [str(depth) for depth in sorted({miss.depth for _, miss in _pairs(records)})]
    return {"reason": MISS_REASONS, "kind": TOKEN_KINDS, "category": list_categories(records)}[dimension]


def _dimension_table(dimension: str, misses: Mapping[str, LaneMisses]) -> str:
    values = next(iter(misses.values())).by[dimension]
    rows = [
        [SHOWN.get(value, value), *(_cell(lane.by[dimension][value]) for lane in misses.values())] for value in values
    ]
    total = ["all", *(_cell(lane.total) for lane in misses.values())]
    return make_table([f"misses by {dimension}", *misses], [*rows, total])


def _cell(count: MissCount) -> str:
    return f"{count.n_misses} ({100 * count.n_misses / count.n_passes:.1f} %)" if count.n_passes else "0"


def _row(record: LaneRecord, miss: MissRecord) -> list[str]:
    return [
        record.lane,
        record.category,
        str(record.question_id),
        str(miss.step),
        str(miss.depth),
        SHOWN[miss.reason],
        miss.kind,
        show_code(miss.piece),
        NOTHING if miss.draft_rank is None else str(miss.draft_rank),
        show_number(miss.draft_prob, 4),
        f"[trace]({record.trace})" if record.trace else NOTHING,
    ]
