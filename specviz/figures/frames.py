"""The frames of all figures, and everything else of the figures that the page needs only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specviz.figures.drafting import divergence_frame, hindsight_frame, kinds_frame, misses_frame
from specviz.figures.experts import routing_frame, routing_history_frame
from specviz.figures.frame import PlotlyDict
from specviz.figures.mask import mask_frame
from specviz.figures.mask_proof import mask_proof_frame
from specviz.figures.palette import THEMES, ThemeName, palette
from specviz.figures.race import race_frame
from specviz.figures.reasons import mask_reasons
from specviz.figures.runs import acceptance_frame, times_frame, tokens_per_pass_frame
from specviz.figures.seed import seed_frame
from specviz.figures.tree import tree_frame
from specviz.figures.waterfall import waterfall_frame

_FRAMES: dict[str, Callable[[ThemeName], PlotlyDict]] = {
    "mask": mask_frame,
    "tree": tree_frame,
    "routing": routing_frame,
    "routing_history": routing_history_frame,
    "seed": seed_frame,
    "acceptance": acceptance_frame,
    "tokens_per_pass": tokens_per_pass_frame,
    "times": times_frame,
    "race": race_frame,
    "waterfall": waterfall_frame,
    "mask_proof": mask_proof_frame,
    "kinds": kinds_frame,
    "misses": misses_frame,
    "divergence": divergence_frame,
    "hindsight": hindsight_frame,
}


def figure_frames() -> dict[str, dict[str, PlotlyDict]]:
    """Return every frame as plain values, by theme and kind of figure; `join_frame` says how the page uses them."""
    return {theme: {kind: make(theme) for kind, make in _FRAMES.items()} for theme in THEMES}


def figure_constants() -> dict[str, Any]:
    """Return what the page gets once: `{"palette", "mask_reasons", "frames"}`."""
    return {"palette": palette(), "mask_reasons": mask_reasons(), "frames": figure_frames()}
