"""What the work in a folder (a bench, a training) was begun under: who goes on there may not contradict it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError

CONDITIONS = "conditions.json"


def hold_conditions(folder: Path, conditions: Mapping[str, Any]) -> None:
    """Write down the conditions of a run by name; raise SpecVizError where the folder holds another value of one."""
    path = folder / CONDITIONS
    before = _read(path)
    refuse_contradiction(folder, before, conditions)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(before | dict(conditions), indent=1, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise SpecVizError(f"The folder {folder} cannot be written to: {error.strerror}.") from None


def refuse_contradiction(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise SpecVizError where conditions that both know have other values now, and name them all."""
    others = [
        f"another {name} ({_difference(before[name], value)})"
        for name, value in now.items()
        if name in before and before[name] != value
    ]
    if others:
        raise SpecVizError(
            f"{folder} was begun with {' and '.join(others)}: ask for the same, or choose another --out folder."
        )


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
