"""Lanes side by side: every question is decoded by each lane in turn, in one process, and the result resumes.

A result is one JSON line a question and lane; questions that a file already holds are not run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from specviz.decoding.engine import Engine
from specviz.evaluation.questions import Question
from specviz.metrics import JUDGED, step_ms
from specviz.settings import RunSettings
from specviz.trace import BatchTrace, RunTrace

WARM_UP_TOKENS = 16
Lanes = Mapping[str, RunSettings]


def run_lanes(
    engine: Engine, questions: Sequence[Question], lanes: Lanes, out: Path, batch: int = 1
) -> list[dict[str, Any]]:
    """Decode every question by every lane and return one record each, old ones of `out` included.

    With `batch` above 1 so many questions are decoded together; a record's times are then the batch's.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    records = read_records(out)
    done = {(record["question_id"], record["lane"]) for record in records}
    missing = [q for q in questions if any((q.question_id, lane) not in done for lane in lanes)]
    if missing:
        _warm_up(engine, missing[0], lanes)
    with out.open("a", encoding="utf-8") as file:
        for start in tqdm(range(0, len(missing), batch), desc=out.stem, unit="batch"):
            for name, settings in lanes.items():
                group = [q for q in missing[start : start + batch] if (q.question_id, name) not in done]
                for question, run in zip(group, _run(engine, group, settings), strict=True):
                    record = lane_record(question, name, run)
                    file.write(json.dumps(record) + "\n")
                    records.append(record)
                file.flush()
    wanted = {question.question_id for question in questions}
    return [r for r in records if r["lane"] in lanes and r["question_id"] in wanted]


def read_records(out: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a result file; a line that an interruption left half is dropped."""
    if not out.is_file():
        return []
    text = out.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        out.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def lane_record(question: Question, lane: str, run: RunTrace) -> dict[str, Any]:
    """Return what the tables need of a run."""
    passes = run.steps[1:]
    return {
        "question_id": question.question_id,
        "category": question.category,
        "lane": lane,
        "token_ids": [token.token_id for token in run.answer],
        "seconds": sum(step_ms(step) for step in run.steps) / 1000,
        "n_passes": len(passes),
        "n_drafted": sum(token.source == "draft" for step in passes for token in step.committed),
        "n_rows": sum(step.n_rows for step in passes),
        "draft_ms": sum(step.times_ms.draft for step in passes),
        "verify_ms": sum(step.times_ms.verify for step in passes),
        "n_judged": sum(node.status in JUDGED for step in passes for node in step.nodes),
    }


def pooled(records: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return tau, tau without bonus, rows per pass and milliseconds, pooled over all passes."""
    rows = list(records)
    n_passes = max(1, sum(r["n_passes"] for r in rows))
    n_tokens = sum(len(r["token_ids"]) - 1 for r in rows)
    return {
        "tau": n_tokens / n_passes,
        "tau_draft": sum(r["n_drafted"] for r in rows) / n_passes,
        "rows": sum(r["n_rows"] for r in rows) / n_passes,
        "draft_ms": sum(r["draft_ms"] for r in rows) / n_passes,
        "verify_ms": sum(r["verify_ms"] for r in rows) / n_passes,
        "tokens_per_second": sum(len(r["token_ids"]) / r["seconds"] for r in rows) / max(1, len(rows)),
        "acceptance_rate": sum(r["n_drafted"] for r in rows) / max(1, sum(r["n_judged"] for r in rows)),
    }


def speedup(records: Sequence[dict[str, Any]], lane: str, plain: str = "plain") -> float:
    """Return the ratio of mean tokens per second over the same questions (Spec-Bench's `speed.py`)."""

    def rate(name: str) -> float:
        return pooled(r for r in records if r["lane"] == name)["tokens_per_second"]

    return rate(lane) / rate(plain)


def _run(engine: Engine, questions: Sequence[Question], settings: RunSettings) -> list[RunTrace]:
    if not questions:
        return []
    trace = engine.run([question.prompt for question in questions], settings)
    return trace.batch if isinstance(trace, BatchTrace) else [trace]


def _warm_up(engine: Engine, question: Question, lanes: Lanes) -> None:
    for settings in lanes.values():
        _run(engine, [question], settings.model_copy(update={"max_new_tokens": WARM_UP_TOKENS}))
