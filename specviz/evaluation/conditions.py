"""What an evaluation's folder was measured under. A later run in the same folder may add to it, never contradict it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError
from specviz.evaluation.questions import Question

CONDITIONS = "conditions.json"


def hold_conditions(folder: Path, conditions: Mapping[str, Any]) -> None:
    """Write down the conditions of a run by name; raise SpecVizError where the folder holds another value of one."""
    path = folder / CONDITIONS
    before = _read(path)
    for name, value in conditions.items():
        if name in before and before[name] != value:
            raise SpecVizError(
                f"{folder} was measured with another {name} ({_difference(before[name], value)}): "
                "choose another --out folder."
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(before | dict(conditions), indent=1, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise SpecVizError(f"The folder {folder} cannot be written to: {error.strerror}.") from None


def digest_questions(questions: Iterable[Question]) -> dict[str, str]:
    """Return a condition for each question: its prompt's digest."""
    return {f"question {q.question_id}": hashlib.sha256(q.prompt.encode("utf-8")).hexdigest()[:16] for q in questions}


def digest_folder(folder: Path) -> str:
    """Return the digest of a drafter's files, so that other weights under the same name are noticed."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(path.name.encode("utf-8"))
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        values = None
    if not isinstance(values, dict):
        raise SpecVizError(f"{path} is damaged: choose another --out folder.")
    return values


def _difference(before: Any, now: Any) -> str:
    """Name the first entry that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        name = next(name for name in {**before, **now} if before.get(name) != now.get(name))
        return f"{name} {before.get(name)!r}, not {now.get(name)!r}"
    return f"{before!r}, not {now!r}"
