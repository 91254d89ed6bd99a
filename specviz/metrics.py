"""RunTrace -> numbers, each with its definition and its origin."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from specviz.sentence import say
from specviz.trace import DivergenceTrace, FinishReason, RunTrace, StepTrace

JUDGED = ("accepted", "rejected")


class MetricDefinition(NamedTuple):
    """How a metric is named on the page, what it counts, and where the number comes from."""

    label: str
    definition: str
    origin: str


METRIC_DEFINITIONS: dict[str, MetricDefinition] = {
    "tau": MetricDefinition(
        say("tokens per target pass"),
        say(
            "tokens committed in steps 1 and later, correction or bonus included, over target passes after the "
            "prefill; plain decoding is 1.00"
        ),
        "computed",
    ),
    "tau_draft": MetricDefinition(
        say("drafted tokens per target pass"),
        say("the same without the correction or bonus token of each step"),
        "computed",
    ),
    "acceptance_by_depth": MetricDefinition(
        say("accepted by depth"),
        say("at depth d: steps in which a node of that depth was accepted, over steps that had a judged node there"),
        "computed",
    ),
    "acceptance_rate": MetricDefinition(
        say("acceptance rate"),
        say("accepted nodes over judged nodes, for chains only; nodes that were never judged do not count"),
        "computed",
    ),
    "n_tokens": MetricDefinition(
        say("tokens"),
        say("committed tokens, the prefill's first token and EOS included"),
        "computed",
    ),
    "n_passes": MetricDefinition(
        say("target passes"),
        say("target passes after the prefill"),
        "computed",
    ),
    "rows_per_pass": MetricDefinition(
        say("rows per pass"),
        say("rows that the target ran in a pass, mean over passes after the prefill"),
        "computed",
    ),
    "draft_ms": MetricDefinition(
        say("draft"),
        say("milliseconds of drafting per step, mean after the prefill"),
        "measured",
    ),
    "verify_ms": MetricDefinition(
        say("verify"),
        say("milliseconds of the target's pass per step, mean after the prefill"),
        "measured",
    ),
    "commit_ms": MetricDefinition(
        say("commit"),
        say("milliseconds of cutting, cache upkeep and telling the drafter per step, mean"),
        "measured",
    ),
    "record_ms": MetricDefinition(
        say("record"),
        say("milliseconds of recording the trace per step, mean; not part of the speed"),
        "measured",
    ),
    "seconds": MetricDefinition(
        say("seconds"),
        say("draft, verify and commit of all steps, prefill included"),
        "measured",
    ),
    "tokens_per_second": MetricDefinition(
        say("tokens per second"),
        say("committed tokens over seconds, prefill included"),
        "measured",
    ),
    "speedup": MetricDefinition(
        say("speed-up over plain"),
        say(
            "tokens per second over the plain lane's on the same prompt, in the same process; "
            "absent where it was not measured"
        ),
        "measured",
    ),
    "slot_kv_percent": MetricDefinition(
        say("slot cache"),
        say(
            "key/value rows of added rows, dropped after each pass, in percent of the kept rows, mean after the prefill"
        ),
        "computed",
    ),
}


def compute_metrics(run: RunTrace) -> dict[str, Any]:
    """Compute every metric of a run; a number that cannot be known is None."""
    return pool_metrics([run])


def pool_metrics(runs: Sequence[RunTrace]) -> dict[str, Any]:
    """Compute the metrics of several runs, pooled over all their steps (Spec-Bench's way)."""
    passes = [step for run in runs for step in run.steps if step.index > 0]
    every = [step for run in runs for step in run.steps]
    n_tokens = sum(len(step.committed) for step in every)
    seconds = sum(step_ms(step) for step in every) / 1000
    return {
        "tau": _mean(len(step.committed) for step in passes),
        "tau_draft": _mean(count_drafted(step) for step in passes),
        "acceptance_by_depth": acceptance_by_depth(passes),
        "acceptance_rate": acceptance_rate(passes),
        "n_tokens": n_tokens,
        "n_passes": len(passes),
        "rows_per_pass": _mean(step.n_rows for step in passes),
        "draft_ms": _mean(step.times_ms.draft for step in passes),
        "verify_ms": _mean(step.times_ms.verify for step in passes),
        "commit_ms": _mean(step.times_ms.commit for step in passes),
        "record_ms": _mean(step.times_ms.record for step in passes),
        "seconds": seconds,
        "tokens_per_second": n_tokens / seconds if seconds > 0 else None,
        "speedup": speedup(runs),
        "slot_kv_percent": _mean(_slot_kv_percent(step) for step in passes),
    }


def complete_run(
    run: RunTrace, steps: Sequence[StepTrace], finish_reason: FinishReason, text_cut: int = 0, **fields: Any
) -> RunTrace:
    """Return `run` with its steps, the text that they decode to, and its metrics."""
    joined = "".join(token.piece for step in steps for token in step.committed)
    text = joined[: len(joined) - text_cut]
    update = {"steps": list(steps), "text": text, "text_cut": text_cut, "finish_reason": finish_reason} | fields
    done = run.model_copy(update=update)
    return done.model_copy(update={"metrics": compute_metrics(done)})


def first_departure(steps: Sequence[StepTrace]) -> DivergenceTrace | None:
    """Return the first unverified token that greedy decoding would not have taken, as the late verdicts tell."""
    index = 0
    for step, following in itertools.pairwise(steps):
        verdicts = {late.node: late for late in following.late}
        for place, token in enumerate(step.committed):
            late = verdicts.get(token.node or 0) if token.source == "unverified" else None
            if late is not None and late.target_rank > 0:
                return DivergenceTrace(
                    index=index + place,
                    step=step.index,
                    token_id=token.token_id,
                    piece=token.piece,
                    expected_id=late.target_argmax,
                    expected_piece=late.argmax_piece,
                    gap=late.gap,
                    prob=late.target_prob,
                )
        index += len(step.committed)
    return None


def step_ms(step: StepTrace) -> float:
    """Return the decoding time of a step in milliseconds, recording left out."""
    return step.times_ms.draft + step.times_ms.verify + step.times_ms.commit


def acceptance_by_depth(steps: Iterable[StepTrace]) -> dict[str, float]:
    """Return, for each depth as text, steps with an accepted node over steps with a judged one."""
    judged, accepted = count_depths(steps)
    return {str(depth): accepted[depth] / judged[depth] for depth in sorted(judged)}


def count_depths(steps: Iterable[StepTrace]) -> tuple[Counter[int], Counter[int]]:
    """Return, by depth, in how many steps a node there was judged, and in how many one was accepted."""
    judged: Counter[int] = Counter()
    accepted: Counter[int] = Counter()
    for step in steps:
        judged.update({node.depth for node in step.nodes if node.status in JUDGED})
        accepted.update({node.depth for node in step.nodes if node.status == "accepted"})
    return judged, accepted


def acceptance_rate(steps: Iterable[StepTrace]) -> float | None:
    """Return accepted over judged nodes, or None where any step is a tree and the rate says nothing."""
    statuses: Counter[str] = Counter()
    for step in steps:
        if not is_chain(step):
            return None
        statuses.update(node.status for node in step.nodes)
    n_judged = sum(statuses[status] for status in JUDGED)
    return statuses["accepted"] / n_judged if n_judged else None


def is_chain(step: StepTrace) -> bool:
    """Return whether no two nodes of a step are siblings."""
    return len({node.parent for node in step.nodes}) == len(step.nodes)


def count_drafted(step: StepTrace) -> int:
    """Return how many committed tokens came from the drafter: all but the correction or bonus."""
    return sum(token.source in ("draft", "unverified") for token in step.committed)


def speedup(runs: Sequence[RunTrace]) -> float | None:
    """Return the ratio of mean tokens per second to the plain lane's, or None where it was not measured."""
    own, plain = [], []
    for run in runs:
        seconds = sum(step_ms(step) for step in run.steps) / 1000
        if run.baseline is None or not seconds or not run.baseline.seconds:
            return None
        own.append(len(run.answer) / seconds)
        plain.append(len(run.baseline.token_ids) / run.baseline.seconds)
    return sum(own) / sum(plain) if plain else None


def _slot_kv_percent(step: StepTrace) -> float:
    kept = step.kv.prefix + step.kv.kept
    return 100 * step.kv.added / kept if kept else 0.0


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None
