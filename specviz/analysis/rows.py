"""The rows of a batch: which of them answer one prompt, and what tells their prompts apart."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.analysis.compare import Comparison, compare_runs
from specviz.trace import BatchTrace, RunTrace, TokenTrace

Trace = RunTrace | BatchTrace

MOST_CHARACTERS = 40


def list_rows(trace: Trace) -> list[RunTrace]:
    """Return the runs of a trace, one a row."""
    return list(trace.batch) if isinstance(trace, BatchTrace) else [trace]


def compare_rows(left: Trace, right: Trace, left_row: int = 0, right_row: int | None = None) -> Comparison:
    """Compare a row of one trace with a row of another, by default the one that answers the same prompt.

    Raises IndexError where a trace has no such row.
    """
    run, others = list_rows(left)[left_row], list_rows(right)
    return compare_runs(run, others[find_row(run, others) if right_row is None else right_row])


def find_row(run: RunTrace, others: Sequence[RunTrace]) -> int:
    """Return the row that answers the prompt of a run and is another run than it, else the first other one, else 0."""
    rows = [row for row, other in enumerate(others) if other is not run]
    same = [row for row in rows if _ids(others[row].prompt) == _ids(run.prompt)]
    return next(iter([*same, *rows]), 0)


def name_prompts(runs: Sequence[RunTrace]) -> list[str]:
    """Return the part of each prompt that the others do not share: the chat template around them is the same."""
    prompts = [run.prompt for run in runs]
    shortest = min(len(prompt) for prompt in prompts)
    start = _count_shared(prompts, shortest - 1)
    end = _count_shared([prompt[::-1] for prompt in prompts], shortest - start - 1)
    texts = ["".join(token.piece for token in prompt[start : len(prompt) - end]).strip() for prompt in prompts]
    return [text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…" for text in texts]


def _count_shared(prompts: Sequence[Sequence[TokenTrace]], most: int) -> int:
    """Return how many tokens all prompts begin with, at most `most`."""
    columns = list(zip(*(_ids(prompt) for prompt in prompts), strict=False))[: max(0, most)]
    return next((place for place, column in enumerate(columns) if len(set(column)) > 1), len(columns))


def _ids(tokens: Sequence[TokenTrace]) -> list[int]:
    return [token.token_id for token in tokens]
