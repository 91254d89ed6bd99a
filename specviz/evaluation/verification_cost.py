"""What a verification costs against a bare forward of the target over as many rows behind the same prefix.

Letters: T tree nodes, R rows, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.drafters.base import Drafter
from specviz.drafters.plain import PlainDrafter
from specviz.evaluation.timing import median_times
from specviz.target.cache import RowCache
from specviz.target.model import Target

PREFIX = 256
ROW_COUNTS = (1, 8, 16, 30, 60, 120)
NODE_COUNTS = (8, 16, 30, 60)


def verification_cost(target: Target) -> str:
    """Return, by rows, a pass over a chain (rows, mask, cache, logits, keep) against the bare forward."""
    plain = PlainDrafter()
    return "\n".join(
        _compare(target, plain, RowLayout(chain(n_rows)), f"verification of {n_rows:3} rows") for n_rows in ROW_COUNTS
    )


def contemplate_cost(target: Target, drafter: Drafter) -> str:
    """Return the same for ConFu: T nodes with a contemplate row behind each and the soft prompt in the cache."""
    return "\n".join(
        _compare(
            target,
            drafter,
            RowLayout(chain(n_nodes), k=1, kind="contemplate"),
            f"verification of {n_nodes:3} nodes and as many contemplate rows",
        )
        for n_nodes in NODE_COUNTS
    )


def chain(n_nodes: int) -> tuple[int, ...]:
    """Return the parents of a chain, the root first."""
    return tuple(range(-1, n_nodes - 1))


def _compare(target: Target, drafter: Drafter, layout: RowLayout, label: str) -> str:
    ours, bare = median_times((verification_pass(target, drafter, layout), _bare_pass(target, layout.n_rows)))
    return f"{label} {ours:6.1f} ms, bare forward of {layout.n_rows:3} rows {bare:6.1f} ms: {ours / bare:.2f}"


def verification_pass(target: Target, drafter: Drafter, layout: RowLayout) -> Callable[[], Any]:
    """Return a function that verifies the rows of `layout` behind the prefix, as the loop does, and keeps none."""
    masks = MaskBuilder()
    cache = target.new_cache(1, PREFIX + layout.n_rows, drafter.soft_rows)
    _run_rows(target, masks, cache, RowLayout((-1,), n_pending=PREFIX), None)
    cache.keep([range(PREFIX)])

    def run() -> None:
        last = _run_rows(target, masks, cache, layout, drafter.feature_layers)
        target.logits(last[0, : layout.n_real]).argmax(dim=-1).tolist()
        cache.keep([[]])

    return run


def _run_rows(
    target: Target, masks: MaskBuilder, cache: RowCache, layout: RowLayout, feature_layers: tuple[int, ...] | None
) -> Tensor:
    """Return the final states (1, R, H) of a pass over made-up tokens."""
    embeds = target.embed([[100 + i for i in range(layout.n_rows)]])
    positions = torch.tensor([layout.positions(cache.lengths[0])], device=target.device)
    mask = masks.build([layout], cache, target.device)
    return target.forward(embeds, positions, mask, cache, feature_layers).last


def _bare_pass(target: Target, n_rows: int) -> Callable[[], Any]:
    """The model's own forward over a prefix of its own cache, which is cropped back after each pass."""
    row = torch.arange(100, 100 + PREFIX + n_rows, device=target.device)[None]
    with torch.inference_mode():
        output = target.model(input_ids=row[:, :PREFIX], use_cache=True)
    cache = getattr(output, target.cache_argument)

    def run() -> None:
        with torch.inference_mode():
            logits = target.model(input_ids=row[:, PREFIX:], use_cache=True, **{target.cache_argument: cache}).logits
        logits.argmax(dim=-1).tolist()
        cache.crop(-n_rows)

    return run
