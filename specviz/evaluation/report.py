"""The report of a bench as a value: what each lane was and its numbers, by category and overall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from specviz.evaluation.experts import LaneExperts, count_lane_experts
from specviz.evaluation.lanes import PLAIN
from specviz.evaluation.misses import LaneMisses, count_lane_misses
from specviz.evaluation.records import LaneRecord
from specviz.evaluation.summary import Summary, list_categories, summarise_lanes
from specviz.settings import RunSettings
from specviz.trace import ModelInfo


class LaneHead(BaseModel):
    """What a lane was: its method (`peer` for transformers' own), its settings, and the digest of its weights.

    `asked` are the method's settings that were named on the command line; lanes of one `stem` differ in these alone.
    """

    model_config = ConfigDict(frozen=True)

    stem: str
    method: str
    settings: dict[str, Any]
    asked: dict[str, Any] = Field(default_factory=dict)
    weights: str | None = None


class LaneReport(BaseModel):
    """A lane and its numbers."""

    model_config = ConfigDict(frozen=True)

    head: LaneHead
    overall: Summary
    by_category: dict[str, Summary]


class Report(BaseModel):
    """A whole bench; `settings` are those of the plain lane, which all lanes share. `misses` and `experts` by lane."""

    model_config = ConfigDict(frozen=True)

    model: ModelInfo
    settings: dict[str, Any]
    n_questions: int
    categories: list[str]
    notices: list[str]
    lanes: dict[str, LaneReport]
    misses: dict[str, LaneMisses]
    experts: dict[str, LaneExperts] = {}


def build_report(
    model: ModelInfo,
    settings: RunSettings,
    heads: Mapping[str, LaneHead],
    records: Sequence[LaneRecord],
    notices: Sequence[str] = (),
) -> Report:
    """Build the report of finished records; every lane has answered every question."""
    categories = list_categories(records)
    overall = summarise_lanes(records, heads)
    by_category = {
        category: summarise_lanes([record for record in records if record.category == category], heads)
        for category in categories
    }
    return Report(
        model=model,
        settings=settings.model_dump(mode="json", exclude_none=True),
        n_questions=overall[PLAIN].n_questions,
        categories=categories,
        notices=list(notices),
        lanes={
            name: LaneReport(
                head=head,
                overall=overall[name],
                by_category={category: by_category[category][name] for category in categories},
            )
            for name, head in heads.items()
        },
        misses=count_lane_misses(records, heads),
        experts=count_lane_experts(records, heads),
    )
