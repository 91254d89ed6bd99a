"""The experts of lanes by category: whether routing changes with the context, and whether it collapsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specviz.analysis.expert_usage import ExpertUsage, context_information, pool_usage
from specviz.evaluation.markdown import NOTHING, make_table, show_number
from specviz.evaluation.records import LaneRecord
from specviz.evaluation.summary import list_categories
from specviz.figures.experts import TARGET_PREFIX

LaneExperts = dict[str, dict[str, ExpertUsage]]  # by routing site, then by category


def count_lane_experts(records: Iterable[LaneRecord], lanes: Iterable[str]) -> dict[str, LaneExperts]:
    """Pool the experts of each lane whose drafter routes, by site and category.

    The layers of a target that is itself a mixture are left out: they are dozens, and the same in every lane.
    """
    routed = [record for record in records if record.experts]
    by_lane = {lane: [record for record in routed if record.lane == lane] for lane in lanes}
    by_site = {lane: _by_site(own) for lane, own in by_lane.items()}
    return {lane: sites for lane, sites in by_site.items() if sites}


def show_experts(experts: Mapping[str, LaneExperts]) -> str:
    """Return one table: a row a category, a column a lane and site."""
    columns = {f"{lane}, {site}": usages for lane, sites in experts.items() for site, usages in sites.items()}
    categories = dict.fromkeys(category for usages in columns.values() for category in usages)
    rows = [[category, *(_cell(usages.get(category)) for usages in columns.values())] for category in categories]
    whole = ["overall", *(_cell(pool_usage(usages.values())) for usages in columns.values())]
    context = ["context", *(show_number(context_information(usages.values()), 3) for usages in columns.values())]
    return make_table(["experts at work", *columns], [*rows, whole, context])


def _by_site(records: list[LaneRecord]) -> LaneExperts:
    sites = dict.fromkeys(site for record in records for site in record.experts if not site.startswith(TARGET_PREFIX))
    return {site: _by_category(site, records) for site in sites}


def _by_category(site: str, records: list[LaneRecord]) -> dict[str, ExpertUsage]:
    own = [record for record in records if site in record.experts]
    return {
        category: pool_usage(record.experts[site] for record in own if record.category == category)
        for category in list_categories(own)
    }


def _cell(usage: ExpertUsage | None) -> str:
    return NOTHING if usage is None else f"{usage.n_effective:.2f} of {len(usage.weights)}"
