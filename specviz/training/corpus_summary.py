"""What a corpus holds, as a table: answers and tokens by source and temperature."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from specviz.training.corpus import Answer

HEADER = ("source", "T", "answers", "tokens", "mean length", "ended by themselves")


def summarise_corpus(answers: Sequence[Answer], end_ids: Collection[int]) -> str:
    """Return a table with a row for each source and temperature, and one for all answers."""
    groups: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.source, f"{answer.temperature:g}"].append(answer)
    rows = [(*name, *_figures(group, end_ids)) for name, group in sorted(groups.items())]
    return _table([HEADER, *rows, ("all", "", *_figures(answers, end_ids))])


def summarise_dropped(dropped: Counter[tuple[str, str]]) -> str:
    """Return a sentence with the prompts that were turned away, by source and reason."""
    if not dropped:
        return "No prompt was dropped."
    reasons = (f"{n:,} {reason} ({source})" for (source, reason), n in sorted(dropped.items()))
    return f"Prompts dropped: {', '.join(reasons)}."


def _figures(answers: Sequence[Answer], end_ids: Collection[int]) -> tuple[str, ...]:
    n_answers = max(len(answers), 1)
    n_tokens = sum(len(answer.answer_ids) for answer in answers)
    n_ended = sum(answer.answer_ids[-1] in end_ids for answer in answers if answer.answer_ids)
    return f"{len(answers):,}", f"{n_tokens:,}", f"{n_tokens / n_answers:.1f}", f"{n_ended / n_answers:.1%}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
