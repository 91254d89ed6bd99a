"""Nodes that never paid, and the tree that would have been best, now that the answer is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from specviz.analysis.drafted import Drafted, child_ranks, list_drafted
from specviz.trace import RunTrace, StepTrace, TokenTrace

Place = tuple[int, ...]  # a place in a tree: the rank among its siblings on each level, 0 being the draft's favourite


@dataclass(frozen=True)
class PlaceCount:
    """How often a place of the tree was sent to verification, and how often its token was accepted there."""

    place: Place
    n_sent: int
    n_accepted: int


@dataclass(frozen=True)
class Hindsight:
    """What a run's trees sent and what of it paid. COMPUTED.

    `best` is the fixed tree of as many nodes as the run's largest that holds the most accepted tokens;
    `best_tokens_per_pass` is what it would have given in these passes (the target's own token included), at least:
    drafts that the record does not list count as misses.
    """

    n_passes: int
    n_sent: int
    n_accepted: int
    counts: tuple[PlaceCount, ...]
    best: tuple[Place, ...]
    best_tokens_per_pass: float
    tokens_per_pass: float

    @property
    def never_paid(self) -> tuple[PlaceCount, ...]:
        """The places that were sent and never accepted, the most often sent first."""
        unpaid = [count for count in self.counts if not count.n_accepted]
        return tuple(sorted(unpaid, key=lambda count: -count.n_sent))


def look_back(run: RunTrace) -> Hindsight | None:
    """Judge a run's trees in hindsight; None where nothing was drafted, or a token was taken without the target."""
    steps = [step for step in run.steps if step.index > 0]
    if not run.exact or not any(len(step.nodes) > 1 for step in steps):
        return None
    sent: Counter[Place] = Counter()
    accepted: Counter[Place] = Counter()
    reachable: Counter[Place] = Counter()
    for step, following in zip(steps, _list_following(steps), strict=True):
        drafted = list_drafted(step)
        places = place_drafted(drafted)
        sent.update(places[token.place] for token in drafted[1:] if token.node is not None and token.place in places)
        accepted.update(places[node] for node in step.accepted)
        reachable.update(_follow(drafted, places, following))
    n_nodes = max(len(step.nodes) for step in steps)
    best = sorted(reachable, key=lambda place: (-reachable[place], len(place), place))[: n_nodes - 1]
    n_committed = sum(len(step.committed) for step in steps)
    return Hindsight(
        n_passes=len(steps),
        n_sent=sent.total(),
        n_accepted=accepted.total(),
        counts=tuple(PlaceCount(place, sent[place], accepted[place]) for place in sorted(sent)),
        best=tuple(sorted(best)),
        best_tokens_per_pass=1 + sum(reachable[place] for place in best) / len(steps),
        tokens_per_pass=n_committed / len(steps),
    )


def place_drafted(drafted: list[Drafted]) -> dict[int, Place]:
    """Return the place in the tree of each draft whose ancestors are all known, by its index in the list."""
    ranks = child_ranks(drafted)
    places: dict[int, Place] = {0: ()}
    for token in sorted(drafted[1:], key=lambda token: token.depth):
        if token.parent in places:
            places[token.place] = (*places[token.parent], ranks[token.place])
    return places


def _follow(drafted: list[Drafted], places: dict[int, Place], following: Iterable[TokenTrace]) -> list[Place]:
    """Return the places on the target's path, as far as drafts have its tokens."""
    by_parent = {(token.parent, token.token_id): token for token in drafted[1:]}
    path, here = [], 0
    for token in following:
        child = by_parent.get((here, token.token_id))
        if child is None or child.place not in places:
            break
        path.append(places[child.place])
        here = child.place
    return path


def _list_following(steps: list[StepTrace]) -> list[list[TokenTrace]]:
    """Return, for each step, the answer's tokens from its first committed one on, as far as a draft may reach."""
    answer = [token for step in steps for token in step.committed]
    starts, n_before = [], 0
    for step in steps:
        deepest = max(node.depth for node in step.nodes)
        starts.append(answer[n_before : n_before + deepest + 1])
        n_before += len(step.committed)
    return starts
