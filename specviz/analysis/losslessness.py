"""Whether a run says what plain decoding says, and if not, where and how closely it missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specviz.trace import DivergenceTrace, RunTrace

NEAR_TIE = 0.25  # gap of the two best logits up to which another kernel's rounding may choose the other token

Verdict = Literal["equal", "near tie", "different", "left the target", "kept to the target", "not measured"]


@dataclass(frozen=True)
class Departure:
    """One token that was taken unseen where the target would have chosen another, as the next pass told."""

    step: int
    node: int
    piece: str
    expected_piece: str
    prob: float
    gap: float


@dataclass(frozen=True)
class Losslessness:
    """The verdict with its evidence.

    `n_equal` of `n_tokens` answer tokens equal plain decoding's, where that was decoded too. `departures` are those
    of the self-consistent selection, of `n_unverified` tokens taken unseen and judged one pass later.
    """

    verdict: Verdict
    exact: bool
    n_tokens: int
    n_equal: int | None
    divergence: DivergenceTrace | None
    departures: tuple[Departure, ...]
    n_unverified: int


def judge_losslessness(run: RunTrace) -> Losslessness:
    """Judge a run by its plain lane, or by the target's late word on tokens that were taken unseen."""
    baseline, n_tokens = run.baseline, len(run.answer)
    judged = list_verdicts(run)
    departures = tuple(departure for departure, left in judged if left)
    return Losslessness(
        verdict=_name_verdict(run, departures, bool(judged)),
        exact=run.exact,
        n_tokens=n_tokens,
        n_equal=None if baseline is None else baseline.n_equal,
        divergence=(baseline.divergence if baseline is not None else None) or run.divergence,
        departures=departures,
        n_unverified=len(judged),
    )


def list_verdicts(run: RunTrace) -> list[tuple[Departure, bool]]:
    """Return every token that was taken unseen and judged later, with whether the target would have left it."""
    steps = {step.index: step for step in run.steps}
    verdicts = []
    for late in (late for step in run.steps for late in step.late):
        step = steps.get(late.step)
        node = next((node for node in step.nodes if node.idx == late.node), None) if step else None
        if node is not None and node.status == "unverified":
            departure = Departure(late.step, late.node, node.piece, late.argmax_piece, late.target_prob, late.gap)
            verdicts.append((departure, late.target_rank > 0))
    return verdicts


def _name_verdict(run: RunTrace, departures: tuple[Departure, ...], is_judged: bool) -> Verdict:
    if run.baseline is not None and run.baseline.equal:
        return "equal"
    if not run.exact:
        return (
            "left the target" if departures or run.baseline else "kept to the target" if is_judged else "not measured"
        )
    if run.baseline is None:
        return "not measured"
    gap = run.baseline.divergence.gap if run.baseline.divergence else None
    is_rounded = run.model.dtype != "float32"
    return "near tie" if is_rounded and gap is not None and gap <= NEAR_TIE else "different"
