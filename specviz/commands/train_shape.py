"""The shape of a drafter in training: what was asked for, or what the weights of --from bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError

SHAPES: dict[str, dict[str, Any]] = {  # what weights bring with them, and what a drafter that starts anew is given
    "lookahead": {"k": 8, "prefix": 0, "slot_attention": "causal"},
    "eagle3": {"draft_vocabulary": 8000},
    "confu": {"soft": 16, "experts": 8, "selected_experts": 2},
}


def asked_shape(parsed: dict[str, Any]) -> dict[str, Any]:
    """Return the shape that was asked for, with the defaults of what was left open."""
    defaults = SHAPES[parsed["method"]]
    return {name: default if parsed[name] is None else parsed[name] for name, default in defaults.items()}


def settle_shape(parsed: dict[str, Any], own: dict[str, Any]) -> None:
    """Put the weights' own shape in the place of what was asked, so that the card tells what was trained.

    Raises SpecVizError where --from brings another shape than was asked for.
    """
    for name, value in own.items():
        if parsed["parent"] and parsed[name] not in (None, value):
            raise SpecVizError(
                f"The drafter {Path(parsed['parent']).name!r} has another {name.replace('_', ' ')} ({value}, not "
                f"{parsed[name]}): leave --{name.replace('_', '-')} out, or start without --from."
            )
        parsed[name] = value


def slot_attention(parent: str) -> str:
    """Return how a table's slots saw each other in training."""
    from specviz.drafters.checkpoint_files import locate_drafter, read_config

    return "causal" if read_config(locate_drafter(parent)).get("causal", True) else "diagonal"
