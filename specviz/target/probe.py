"""The load-time check that a model can be decoded by rows: node logits equal path logits.

It catches attention code that ignores the mask or the positions, caches that cannot be rolled
back, and heads that compute more than this package knows of.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.errors import SpecVizError
from specviz.target.model import Target

PREFIX = 5
PARENTS = (-1, 0, 0, 1, 1, 2, 3)
TOLERANCE_FP32 = 1e-3
TOLERANCE_16_BIT = 0.1  # of the logits' standard deviation, on average over the vocabulary
SUPPORTED_LAYERS = {"full_attention", "sliding_attention"}


def check_layer_kinds(config: Any) -> None:
    """Refuse models with layers that cannot be rolled back; raise SpecVizError naming them."""
    kinds = set(getattr(config, "layer_types", None) or ())
    foreign = sorted(kinds - SUPPORTED_LAYERS)
    if foreign:
        raise SpecVizError(
            f"This model has layers of the kind {', '.join(foreign)}, whose cache cannot be rolled back "
            "after a rejected draft; SpecViz decodes models with full or sliding-window attention."
        )


def probe_target(target: Target) -> None:
    """Compare a small tree with its paths; raise SpecVizError where they differ."""
    ids = _probe_ids(target)
    try:
        tree = _tree_logits(target, ids)
        paths = torch.stack([_path_logits(target, ids, node) for node in range(len(PARENTS))])
    except SpecVizError:
        raise
    except Exception as error:
        raise SpecVizError(
            f"This model cannot be run by rows ({type(error).__name__}: {error}); it needs a custom mask, "
            "positions and a cache that keeps chosen rows."
        ) from error
    _compare(tree, paths, target.dtype)


def _probe_ids(target: Target) -> list[int]:
    generator = torch.Generator().manual_seed(0)
    n_ids = min(target.vocab_size, target.model.get_input_embeddings().weight.shape[0])
    return torch.randint(0, n_ids, (PREFIX + len(PARENTS),), generator=generator).tolist()


def _tree_logits(target: Target, ids: list[int]) -> Tensor:
    """Return (T, V): the prefix is cached, a first tree is run and dropped, the tree is run again."""
    cache = target.new_cache(1, capacity=PREFIX)
    masks = MaskBuilder()
    prefill = RowLayout(parents=(-1,), n_pending=PREFIX)
    tree = RowLayout(parents=PARENTS)

    def run(layout: RowLayout, row_ids: list[int]) -> Tensor:
        positions = torch.tensor([layout.positions(cache.lengths[0])], device=target.device)
        mask = masks.build([layout], cache, target.device)
        return target.forward(target.embed([row_ids]), positions, mask, cache).last

    run(prefill, ids[:PREFIX])
    cache.keep([list(range(PREFIX))])
    run(tree, [ids[0]] * len(PARENTS))
    cache.keep([[]])
    return target.logits(run(tree, ids[PREFIX:])[0])


@torch.inference_mode()
def _path_logits(target: Target, ids: list[int], node: int) -> Tensor:
    """Return the (V,) logits after the path to a node, by the model's own untouched forward."""
    path: list[int] = []
    while node >= 0:
        path.insert(0, ids[PREFIX + node])
        node = PARENTS[node]
    row = torch.tensor([ids[:PREFIX] + path], device=target.device)
    return target.model(input_ids=row, use_cache=False).logits[0, -1].float()


def _compare(tree: Tensor, paths: Tensor, dtype: torch.dtype) -> None:
    difference = (tree.to(paths.device) - paths).abs()
    if dtype == torch.float32:
        fits = difference.max() <= TOLERANCE_FP32 * max(1.0, paths.abs().max().item())
    else:
        fits = difference.mean() <= TOLERANCE_16_BIT * paths.std()
    if not fits:
        raise SpecVizError(
            "This model gives other logits for a token in a tree than for the same token on its own path "
            f"(by up to {difference.max().item():.3g}): its attention ignores the mask or the positions, "
            "so speculative decoding would change its text."
        )
