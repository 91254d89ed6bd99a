"""From a run's settings to the drafter that does it, and the defaults of each method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from specviz.drafters.base import Drafter
from specviz.drafters.checkpoint import load_slot_table
from specviz.drafters.checkpoint_confu import load_confu, random_confu
from specviz.drafters.checkpoint_eagle3 import load_eagle3, random_eagle3
from specviz.drafters.checkpoint_files import locate_drafter, read_config
from specviz.drafters.confu import ConfuDrafter, ConfuParts, ConfuSwitches
from specviz.drafters.draft_tree import TreeShape
from specviz.drafters.eagle3 import Eagle3Drafter, LoadedHead
from specviz.drafters.lookahead import LookaheadConfig, LookaheadDrafter, default_lookahead
from specviz.drafters.plain import PlainDrafter
from specviz.errors import SpecVizError
from specviz.settings import RunSettings
from specviz.target.model import Target

TREE_DEFAULTS: dict[str, Any] = {"nodes": 30, "depth": 6, "tree_top_k": 10}
CONFU_DEFAULTS: dict[str, Any] = {"confu_f": "on", "experts": "routed", "contemplate": "all"}
DEFAULTS_OF_METHOD = {"plain": {}, "eagle3": TREE_DEFAULTS, "confu": TREE_DEFAULTS | CONFU_DEFAULTS}


def default_settings(settings: RunSettings, checkpoint: Path | None) -> dict[str, Any]:
    """Return the value of each of the method's settings that was left open, for the drafter in `checkpoint`."""
    if settings.method != "lookahead":
        return DEFAULTS_OF_METHOD[settings.method]
    return default_lookahead(settings, checkpoint is not None and _table_serves(settings, checkpoint))


def _table_serves(settings: RunSettings, checkpoint: Path) -> bool:
    """Say whether learned slots are the default: always those that were asked for, shipped ones where they suffice."""
    n_slots = read_config(locate_drafter(checkpoint)).get("k")
    return settings.drafter is not None or settings.k is None or not isinstance(n_slots, int) or settings.k <= n_slots


class WeightShelf:
    """Heads that were loaded already, so that a second run does not read them again."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[str, Path | None, int], Any] = {}

    def take(self, method: str, checkpoint: Path | None, target: Target, load: Callable[[], Any]) -> Any:
        """Return what `load` gives, from an earlier call where there was one."""
        key = (method, checkpoint, id(target))
        if key not in self._loaded:
            self._loaded[key] = (target, load())  # the target is kept, so that its id stays its own
        return self._loaded[key][1]


def build_drafter(
    target: Target, settings: RunSettings, checkpoint: Path | None, shelf: WeightShelf | None = None
) -> Drafter:
    """Return the drafter for resolved settings; raise SpecVizError where weights are missing or do not fit."""
    shelf = shelf or WeightShelf()
    if settings.method == "plain":
        return PlainDrafter()
    if settings.method == "lookahead":
        return _build_lookahead(target, settings, checkpoint, shelf)
    if settings.method == "eagle3":
        head = shelf.take("eagle3", checkpoint, target, lambda: _eagle3_weights(checkpoint, target))
        return Eagle3Drafter(target, head, _tree_shape(settings))
    head, parts = shelf.take("confu", checkpoint, target, lambda: _confu_weights(checkpoint, target))
    return ConfuDrafter(target, head, parts, _tree_shape(settings), _switches(settings))


def _eagle3_weights(checkpoint: Path | None, target: Target) -> LoadedHead:
    return random_eagle3(target) if checkpoint is None else load_eagle3(checkpoint, target)


def _confu_weights(checkpoint: Path | None, target: Target) -> tuple[LoadedHead, ConfuParts]:
    return random_confu(target) if checkpoint is None else load_confu(checkpoint, target)


def _tree_shape(settings: RunSettings) -> TreeShape:
    assert settings.nodes and settings.depth and settings.tree_top_k, "the engine resolves every setting before a run"
    return TreeShape(settings.nodes, settings.depth, settings.tree_top_k)


def _switches(settings: RunSettings) -> ConfuSwitches:
    return ConfuSwitches(
        future=settings.confu_f == "on", routed=settings.experts == "routed", all_nodes=settings.contemplate == "all"
    )


def _build_lookahead(
    target: Target, settings: RunSettings, checkpoint: Path | None, shelf: WeightShelf
) -> LookaheadDrafter:
    config = LookaheadConfig.from_settings(settings)
    if config.placeholder != "learned":
        return LookaheadDrafter(target, config)
    if checkpoint is None:
        raise SpecVizError("The learned placeholder needs a drafter with a slot table: give one with --drafter.")
    table, info = shelf.take("lookahead", checkpoint, target, lambda: load_slot_table(checkpoint, target))
    if config.k > len(table.slots):
        raise SpecVizError(f"The drafter {info.name!r} has {len(table.slots)} slots: k {config.k} is too many.")
    return LookaheadDrafter(target, config, table, info)
