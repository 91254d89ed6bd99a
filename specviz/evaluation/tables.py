"""A report in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from specviz.evaluation.experts import show_experts
from specviz.evaluation.markdown import NOTHING, make_table, show_number
from specviz.evaluation.misses import show_misses
from specviz.evaluation.records import Verdict
from specviz.evaluation.report import Report
from specviz.evaluation.summary import Summary
from specviz.metrics import METRIC_DEFINITIONS

COLUMNS: dict[str, Callable[[Summary], str]] = {
    "tau": lambda s: show_number(s.tau),
    "without bonus": lambda s: show_number(s.tau_draft),
    "accepted": lambda s: NOTHING if s.acceptance_rate is None else f"{100 * s.acceptance_rate:.1f} %",
    "rows a pass": lambda s: show_number(s.rows_per_pass, 1),
    "draft ms": lambda s: show_number(s.draft_ms, 1),
    "verify ms": lambda s: show_number(s.verify_ms, 1),
    "tokens/s": lambda s: show_number(s.tokens_per_second, 1),
    "speed-up": lambda s: show_number(s.speedup),
    "equal to plain": lambda s: show_exactness(s),
}

DIFFERENCES: dict[Verdict, str] = {"near_tie": "near-tie", "departed": "departed"}

DEFINITIONS = f"""\
- **tau**: {METRIC_DEFINITIONS["tau"].definition}; pooled over all passes. **Without bonus**: the same without the
  correction or bonus token. **Accepted**: {METRIC_DEFINITIONS["acceptance_rate"].definition}.
- **Draft, verify**: milliseconds a pass. **Tokens/s**: mean over questions, prefill included. **Speed-up**: that mean
  over the plain lane's, same questions, process, dtype and attention code; lanes take turns at each question, warmed
  up. Seconds are the passes' own: recording is left out; of a peer they are the whole call's.
- **Equal to plain**: answers with the plain lane's very tokens; *near-tie*: the first difference stands where, in 16
  bits, the target's two best logits are at most 0.25 apart; any other difference is counted as *departed*.
- Peers are transformers' `generate` on the same target: their first pass counts as the prefill."""


def show_report(report: Report) -> str:
    """Return the whole report."""
    parts = [
        "# Bench",
        _headline(report),
        "\n".join(f"- Note: {notice}" for notice in report.notices),
        show_lanes({name: lane.overall for name, lane in report.lanes.items()}),
        DEFINITIONS,
        "## By category",
        _by_category(report, "tau", lambda s: show_number(s.tau)),
        _by_category(report, "speed-up", lambda s: show_number(s.speedup)),
        "## Acceptance by depth",
        METRIC_DEFINITIONS["acceptance_by_depth"].definition.capitalize() + ".",
        _by_depth({name: lane.overall for name, lane in report.lanes.items()}),
        *(["## Misses", MISSES, show_misses(report.misses)] if report.misses else []),
        *(["## Experts by category", EXPERTS, show_experts(report.experts)] if report.experts else []),
        "## Every number by category",
        *(_category_section(report, category) for category in report.categories),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


MISSES = (
    "The target's tokens that no draft had, and in brackets the share of passes that ended so (of a category's own "
    "passes, where it is by category). [Each of them](misses.md) is linked to its trace."
)


EXPERTS = (
    "How many experts do the work of a site: exp of the entropy of their shares, so 1.00 is one expert alone. "
    "**Context**: the mutual information of category and expert in nat; 0 where every category uses them alike."
)


def show_lanes(summaries: Mapping[str, Summary]) -> str:
    """Return lanes as rows of one table."""
    rows = ([name, *(show(summary) for show in COLUMNS.values())] for name, summary in summaries.items())
    return make_table(["lane", *COLUMNS], rows)


def show_exactness(summary: Summary) -> str:
    """Return how many answers are plain decoding's, and what the others are."""
    counts = summary.exactness
    if not counts:
        return NOTHING
    shown = f"{counts.get('equal', 0)} of {sum(counts.values())}"
    others = [f"{counts[verdict]} {label}" for verdict, label in DIFFERENCES.items() if counts.get(verdict)]
    return f"{shown} ({', '.join(others)})" if others else shown


def _headline(report: Report) -> str:
    settings = report.settings
    sampling = "greedy" if settings["temperature"] == 0 else f"temperature {settings['temperature']}"
    return (
        f"{report.model.name}, {report.model.dtype} on {report.model.device}, {report.n_questions} questions in "
        f"{len(report.categories)} categories, at most {settings['max_new_tokens']} tokens, {sampling}, "
        f"seed {settings['seed']}."
    )


def _by_category(report: Report, title: str, show: Callable[[Summary], str]) -> str:
    rows = [
        [category, *(show(lane.by_category[category]) for lane in report.lanes.values())]
        for category in report.categories
    ]
    return make_table(
        [title, *report.lanes], [*rows, ["overall", *(show(lane.overall) for lane in report.lanes.values())]]
    )


def _by_depth(summaries: Mapping[str, Summary]) -> str:
    """Return acceptance by depth, a column a lane that drafts; nothing where none does."""
    rates = {name: summary.acceptance_by_depth for name, summary in summaries.items()}
    drafting = {name: own for name, own in rates.items() if own}
    return make_table(["depth", *drafting], _depth_rows(drafting)) if drafting else ""


def _depth_rows(rates: Mapping[str, Mapping[int, float]]) -> Iterable[list[str]]:
    depths = sorted({depth for own in rates.values() for depth in own})
    return ([str(depth), *(show_number(own.get(depth)) for own in rates.values())] for depth in depths)


def _category_section(report: Report, category: str) -> str:
    summaries = {name: lane.by_category[category] for name, lane in report.lanes.items()}
    parts = [f"### {category}", show_lanes(summaries), _by_depth(summaries)]
    return "\n\n".join(part for part in parts if part)
