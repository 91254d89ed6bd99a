"""What a verification costs against a bare forward of the target over as many rows behind the same prefix.

Every verification is of a tree of another shape, as a drafter's trees are, and does what a turn of the loop does:
rows, mask, pass, logits, the target's choices, the walk along the tree, and the cache cut back.

Letters: T tree nodes, R rows, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from specviz.decoding.largest import argmaxes
from specviz.decoding.limits import Ending
from specviz.decoding.masks import MaskBuilder
from specviz.decoding.record import StepRecorder
from specviz.decoding.rows import build_rows
from specviz.decoding.sampling import Sampler
from specviz.decoding.sequence import Sequence
from specviz.decoding.tree import DraftTree
from specviz.decoding.verification import verify
from specviz.drafters.base import AddedRows, Drafter, Proposal
from specviz.drafters.plain import PlainDrafter
from specviz.evaluation.timing import median_times
from specviz.target.model import Target

PREFIX = 256
ROW_COUNTS = (1, 8, 16, 30, 60, 120)
NODE_COUNTS = (8, 16, 30, 60, 120)


def verification_cost(target: Target) -> str:
    """Return, by rows, a verification of a tree of so many nodes against the bare forward of as many rows."""
    plain = PlainDrafter()
    return "\n".join(
        _compare(target, plain, n_rows, False, f"verification of {n_rows:3} rows") for n_rows in ROW_COUNTS
    )


def contemplate_cost(target: Target, drafter: Drafter) -> str:
    """Return the same for ConFu: T nodes with a contemplate row behind each and the soft prompt in the cache."""
    return "\n".join(
        _compare(target, drafter, n_nodes, True, f"verification of {n_nodes:3} nodes and as many contemplate rows")
        for n_nodes in NODE_COUNTS
    )


def _compare(target: Target, drafter: Drafter, n_nodes: int, contemplates: bool, label: str) -> str:
    n_rows = 2 * n_nodes if contemplates else n_nodes
    ours, bare = median_times((verification_pass(target, drafter, n_nodes, contemplates), _bare_pass(target, n_rows)))
    return f"{label} {ours:6.1f} ms, bare forward of {n_rows:3} rows {bare:6.1f} ms: {ours / bare:.2f}"


def verification_pass(
    target: Target, drafter: Drafter, n_nodes: int, contemplates: bool, seed: int = 0
) -> Callable[[], Any]:
    """Return a function that verifies a new random tree of T nodes behind the prefix at every call, and keeps none.

    With `contemplates` a contemplate row rides behind every node.
    """
    generator = torch.Generator().manual_seed(seed)
    masks = MaskBuilder()
    cache = target.new_cache(1, PREFIX + 2 * n_nodes, drafter.soft_rows)
    sequence = _made_up_sequence(target)
    added = AddedRows("contemplate", target.embed([[100]])) if contemplates else None  # (1, 1, H)

    def run_rows(tree: DraftTree, added: AddedRows | None) -> Any:
        rows = build_rows(target, masks, cache, [sequence], [Proposal(tree, added)])
        hidden = target.forward(rows.embeds, rows.positions, rows.mask, cache, drafter.feature_layers)
        return argmaxes(target.logits(hidden.last[0, rows.layouts[0].node_rows()]))

    def verify_new_tree() -> None:
        tree = random_tree(n_nodes, generator)
        verify(tree, run_rows(tree, added).__getitem__)
        cache.keep([[]])

    run_rows(DraftTree((100,)), None)
    cache.keep([range(PREFIX)])
    sequence.n_pending = 1
    sequence.token_ids.append(100)
    return verify_new_tree


def made_up_ids(n: int, device: torch.device | None = None) -> Tensor:
    """Return `n` token ids (n,) that any vocabulary has."""
    return 100 + torch.arange(n, device=device) % 128


def random_tree(n_nodes: int, generator: torch.Generator) -> DraftTree:
    """Return a tree of T nodes, each behind any earlier one; its tokens are made up."""
    above = (torch.rand(n_nodes, generator=generator) * torch.arange(n_nodes)).long().tolist()
    blank = (0.0,) * n_nodes
    return DraftTree(tuple(made_up_ids(n_nodes).tolist()), (-1, *above[1:]), blank, blank)


def _made_up_sequence(target: Target) -> Sequence:
    """Return a sequence of PREFIX made-up tokens, none of them in a cache."""
    greedy = Sampler()
    return Sequence(
        row=0,
        token_ids=made_up_ids(PREFIX).tolist(),
        session=PlainDrafter(),
        sampler=greedy,
        ending=Ending(target.tokenizer, frozenset(), (), PREFIX, target.n_positions),
        recorder=StepRecorder(target, greedy, full=False, plain=True),
    )


def _bare_pass(target: Target, n_rows: int) -> Callable[[], Any]:
    """The model's own forward over a prefix of its own cache, which is cropped back after each pass."""
    row = made_up_ids(PREFIX + n_rows, target.device)[None]
    with torch.inference_mode():
        output = target.model(input_ids=row[:, :PREFIX], use_cache=True)
    cache = getattr(output, target.cache_argument)

    def run() -> None:
        with torch.inference_mode():
            logits = target.model(input_ids=row[:, PREFIX:], use_cache=True, **{target.cache_argument: cache}).logits
        logits.argmax(dim=-1).tolist()
        cache.crop(-n_rows)

    return run
