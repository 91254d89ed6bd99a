"""From a run's settings to the drafter that does it, and the defaults of each method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specviz.drafters.base import Drafter
from specviz.drafters.checkpoint import load_slot_table
from specviz.drafters.lookahead import LookaheadConfig, LookaheadDrafter
from specviz.drafters.plain import PlainDrafter
from specviz.errors import SpecVizError
from specviz.settings import RunSettings
from specviz.target.model import Target

ROWS_OF_A_TREE = 32


def default_settings(settings: RunSettings, has_table: bool) -> dict[str, Any]:
    """Return the value of each of the method's settings that was left open."""
    if settings.method != "lookahead":
        return {}
    selection = settings.selection or "verified"
    literal = selection == "self-consistent"
    k = settings.k or (4 if literal else 2)
    candidates = settings.candidates or 1
    return {
        "k": k,
        "selection": selection,
        "threshold": 0.5 if literal else 0.0,
        "placeholder": "learned" if has_table else "prompt-mean",
        "slot_attention": "causal" if has_table else "diagonal",
        "candidates": candidates,
        "rows": (k + 1) ** 2 if candidates == 1 else max(ROWS_OF_A_TREE, 2 * (k + 1)),
    }


def build_drafter(target: Target, settings: RunSettings, checkpoint: Path | None) -> Drafter:
    """Return the drafter for resolved settings; raise SpecVizError where weights are missing or do not fit."""
    if settings.method == "plain":
        return PlainDrafter()
    if settings.method == "lookahead":
        return _build_lookahead(target, settings, checkpoint)
    raise SpecVizError(f"The method {settings.method} is not available yet.")


def _build_lookahead(target: Target, settings: RunSettings, checkpoint: Path | None) -> LookaheadDrafter:
    config = LookaheadConfig.from_settings(settings)
    if config.placeholder != "learned":
        return LookaheadDrafter(target, config)
    if checkpoint is None:
        raise SpecVizError("The learned placeholder needs a drafter with a slot table: give one with --drafter.")
    table, info = load_slot_table(checkpoint, target)
    if config.k > table.shape[0]:
        raise SpecVizError(f"The drafter {info.name!r} has {table.shape[0]} slots: k {config.k} is too many.")
    return LookaheadDrafter(target, config, table, info)
