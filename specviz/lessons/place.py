"""Places of a run by a rule, so that a lesson survives a new recording of its run.

The rules: `prefill`, `last`, `most tokens`, `most nodes`, `step 3`, `step 3 node 2`, and `first` followed by a
status of a node (`first rejected`), by a source of a token (`first bonus`), by `departure`, `routing`, `contemplate`
or `miss`, each with `at depth 2` behind it where the node must lie at least so deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, get_args

from specviz.errors import SpecVizError
from specviz.trace import NodeTrace, RunTrace, Source, Status, StepTrace

EXTRA_NODE = -1  # stands for the token that the target itself added, as in `specviz.figures`

_STEP = re.compile(r"step (\d+)(?: node (\d+))?")
_FIRST = re.compile(r"first ([a-z]+)(?: at depth (\d+))?")
_ADDED = ("correction", "bonus", "target")


class Place(NamedTuple):
    """A step of a run by its place in `steps`, and a node of it; `node` None means the whole step."""

    step: int
    node: int | None = None


def find_place(run: RunTrace, rule: str) -> Place | None:
    """Return where a rule leads in a run, None where the run has no such place; raise SpecVizError for other words."""
    whole = _WHOLE_STEPS.get(rule)
    if whole is not None:
        return whole(run)
    if match := _STEP.fullmatch(rule):
        return _find_numbered(run, int(match[1]), match[2])
    if match := _FIRST.fullmatch(rule):
        return _find_first(run, match[1], int(match[2] or 0), rule)
    raise _unknown(rule)


def _find_numbered(run: RunTrace, step: int, node: str | None) -> Place | None:
    if step >= len(run.steps) or (node is not None and int(node) >= len(run.steps[step].nodes)):
        return None
    return Place(step, None if node is None else int(node))


def _find_first(run: RunTrace, what: str, depth: int, rule: str) -> Place | None:
    if what in _ADDED:
        places = [i for i, step in enumerate(run.steps) if any(token.source == what for token in step.committed)]
        return Place(places[0], EXTRA_NODE) if places else None
    if what == "departure":
        return _find_departure(run)
    matches = _MATCHERS.get(what) or (_has_status(what) if what in get_args(Status) else None)
    if matches is None:
        raise _unknown(rule)
    for i, step in enumerate(run.steps):
        node = next((node for node in step.nodes if node.depth >= depth and matches(step, node)), None)
        if node is not None:
            return Place(i, node.idx)
    return None


def _find_departure(run: RunTrace) -> Place | None:
    """Return the first unverified token that the target would not have chosen."""
    late = next((late for step in run.steps for late in step.late if late.target_rank > 0), None)
    if late is None:
        return None
    place = next((i for i, step in enumerate(run.steps) if step.index == late.step), None)
    return None if place is None else Place(place, late.node)


def _has_status(status: str) -> Callable[[StepTrace, NodeTrace], bool]:
    return lambda step, node: node.status == status


def _at_most(run: RunTrace, size: Callable[[StepTrace], int]) -> Place | None:
    later = range(1, len(run.steps))
    return Place(max(later, key=lambda i: size(run.steps[i]))) if later else None


def _unknown(rule: str) -> SpecVizError:
    sources = ", ".join(source for source in get_args(Source) if source in _ADDED)
    return SpecVizError(
        f"A lesson cannot go to “{rule}”: write prefill, last, most tokens, most nodes, step N, step N node M, or "
        f"first and one of {', '.join([*get_args(Status)[1:], sources, *_MATCHERS, 'departure'])}."
    )


_MATCHERS: dict[str, Callable[[StepTrace, NodeTrace], bool]] = {
    "routing": lambda step, node: any(node.idx == (each.node or 0) for each in step.routing),
    "contemplate": lambda step, node: bool(node.contemplate_top5),
    "miss": lambda step, node: node.miss is not None,
}
_WHOLE_STEPS: dict[str, Callable[[RunTrace], Place | None]] = {
    "prefill": lambda run: Place(0) if run.steps else None,
    "last": lambda run: Place(len(run.steps) - 1) if run.steps else None,
    "most tokens": lambda run: _at_most(run, lambda step: len(step.committed)),
    "most nodes": lambda run: _at_most(run, lambda step: len(step.nodes)),
}
