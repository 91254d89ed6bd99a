"""The dynamic draft tree (EAGLE-2, `topK_genrate`): grown level by level, then ranked as a whole.

Every level runs the best K nodes of the one before and takes K children of each; all of them are
candidates. The tree is made of the candidates with the highest scores, a score being the sum of the
log-probabilities on the path. A child never outscores its parent and stands behind it, so a stable
ranking keeps every chosen node's ancestors.

Letters: K nodes run a level, C candidates, X expanded nodes (the root first), T tree nodes, N draft vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import torch
from torch import Tensor

from specviz.decoding.tree import DraftTree
from specviz.drafters.base import DraftedToken
from specviz.drafters.draft_vocabulary import DraftVocabulary


@dataclass(frozen=True)
class TreeShape:
    """`nodes` to verify, root included; `depth` of the deepest drafted level; `top_k` nodes run a level."""

    nodes: int
    depth: int
    top_k: int


@dataclass(frozen=True)
class Frontier:
    """The nodes (K,) that a level runs: their tokens, and which rows of the level before are their parents.

    At level 1 the parents are all the one row that predicted them.
    """

    level: int
    token_ids: Tensor
    parent_rows: Tensor


Expand = Callable[[Frontier], Tensor]  # runs a frontier and returns log-probabilities (K, N)


@dataclass(frozen=True)
class Candidates:
    """Drafted nodes in the order they were drafted; `parents` are candidates, -1 is the root; (C,) each."""

    token_ids: Tensor
    parents: Tensor
    log_probs: Tensor
    scores: Tensor

    def __len__(self) -> int:
        return self.token_ids.shape[0]


@dataclass(frozen=True)
class DraftedRound:
    """A whole round: candidates, how many each level gave, which were chosen (T - 1,) and expanded (X,).

    `log_probs` (X, N) are the distributions after the expanded nodes; the first is the root's (-1).
    """

    vocabulary: DraftVocabulary
    candidates: Candidates
    level_sizes: tuple[int, ...]
    chosen: Tensor
    expanded: Tensor
    log_probs: Tensor

    @property
    def depth(self) -> int:
        return len(self.level_sizes)

    @cached_property
    def node_of(self) -> Tensor:
        """The tree node of each candidate, -1 where it was not chosen; the last entry stands for the root (C + 1,)."""
        nodes = torch.full((len(self.candidates) + 1,), -1, device=self.chosen.device)
        nodes[self.chosen] = torch.arange(1, len(self.chosen) + 1, device=self.chosen.device)
        nodes[-1] = 0
        return nodes

    def copied(self) -> DraftedRound:
        """Return the same round in memory of its own."""
        drafted = self.candidates
        columns = (drafted.token_ids, drafted.parents, drafted.log_probs, drafted.scores)
        candidates = Candidates(*(column.clone() for column in columns))
        own = {name: getattr(self, name).clone() for name in ("chosen", "expanded", "log_probs")}
        return replace(self, candidates=candidates, **own)

    def tree(self, root_id: int) -> DraftTree:
        """Return the chosen candidates under `root_id`; the one place of a round that waits for the device."""
        drafted, chosen = self.candidates, self.chosen
        columns = (
            drafted.token_ids[chosen],
            self.node_of[drafted.parents[chosen]],
            drafted.log_probs[chosen].exp(),
            drafted.scores[chosen],
        )
        ids, parents, probs, scores = torch.stack([column.double() for column in columns]).tolist()
        return DraftTree(
            (root_id, *map(int, ids)), (-1, *map(int, parents)), (1.0, *map(_as_probability, probs)), (0.0, *scores)
        )


def grow_tree(first: Tensor, expand: Expand, shape: TreeShape, vocabulary: DraftVocabulary) -> DraftedRound:
    """Draft a round from `first` (N,), the log-probabilities after the root."""
    top_k = min(shape.top_k, vocabulary.n_draft)
    root = torch.full((1,), -1, device=first.device)
    level = _children(first[None], root, first.new_zeros(1), top_k, vocabulary)
    levels, expanded, log_probs = [level], [root], [first[None]]
    n_before = 0
    for number in range(1, shape.depth):
        best = rank(level.scores, top_k)  # (K,)
        parent_rows = best // top_k
        log_probs.append(expand(Frontier(number, level.token_ids[best], parent_rows)))
        expanded.append(best + n_before)
        n_before += len(level)
        level = _children(log_probs[-1], expanded[-1], level.scores[best], top_k, vocabulary)
        levels.append(level)
    candidates = Candidates(*(torch.cat(parts) for parts in zip(*map(_fields, levels), strict=True)))
    chosen = rank(candidates.scores, shape.nodes - 1).sort().values
    return DraftedRound(
        vocabulary, candidates, tuple(map(len, levels)), chosen, torch.cat(expanded), torch.cat(log_probs)
    )


def rank(scores: Tensor, n: int) -> Tensor:
    """Return the indices of the `n` highest scores, best first; of equal scores the earlier stands first."""
    return scores.sort(descending=True, stable=True).indices[:n]


def _children(
    log_probs: Tensor, parents: Tensor, scores: Tensor, top_k: int, vocabulary: DraftVocabulary
) -> Candidates:
    """Return the `top_k` children of each parent, (F * K,) from log-probabilities (F, N)."""
    best = log_probs.topk(top_k, dim=-1)
    return Candidates(
        vocabulary.target_ids[best.indices].flatten(),
        parents.repeat_interleave(top_k),
        best.values.flatten(),
        (scores[:, None] + best.values).flatten(),
    )


def _fields(level: Candidates) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return level.token_ids, level.parents, level.log_probs, level.scores


def _as_probability(value: float) -> float:
    return min(1.0, value)  # float32 can round a certain token's probability above one


class NodeLogProbs(Mapping[int, Tensor]):
    """The distributions (V,) after the expanded nodes of a tree, spread over the target's vocabulary when asked."""

    def __init__(self, drafted: DraftedRound) -> None:
        self._drafted = drafted

    @cached_property
    def _row_of(self) -> dict[int, int]:
        nodes = self._drafted.node_of[self._drafted.expanded].tolist()
        return {node: row for row, node in enumerate(nodes) if node >= 0}

    def __getitem__(self, node: int) -> Tensor:
        return self._drafted.vocabulary.spread(self._drafted.log_probs[self._row_of[node]])

    def __iter__(self) -> Iterator[int]:
        return iter(self._row_of)

    def __len__(self) -> int:
        return len(self._row_of)


class UnsentDrafts(Sequence[DraftedToken]):
    """The candidates that were not sent to verification, listed when somebody looks."""

    def __init__(self, drafted: DraftedRound) -> None:
        self._drafted = drafted

    @cached_property
    def _tokens(self) -> list[DraftedToken]:
        drafted, candidates = self._drafted, self._drafted.candidates
        depths = [depth for depth, size in enumerate(drafted.level_sizes, start=1) for _ in range(size)]
        nodes = drafted.node_of[:-1]
        places = (nodes < 0).cumsum(dim=0) - 1  # of a candidate among the unsent
        rows = zip(
            nodes.tolist(),
            drafted.node_of[candidates.parents].tolist(),
            places[candidates.parents].tolist(),
            depths,
            candidates.token_ids.tolist(),
            candidates.log_probs.exp().tolist(),
            candidates.scores.tolist(),
            strict=True,
        )
        return [
            DraftedToken(parent, depth, token_id, _as_probability(prob), score, behind if parent < 0 else None)
            for node, parent, behind, depth, token_id, prob, score in rows
            if node < 0
        ]

    @overload
    def __getitem__(self, index: int) -> DraftedToken: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[DraftedToken]: ...
    def __getitem__(self, index: int | slice) -> DraftedToken | Sequence[DraftedToken]:
        return self._tokens[index]

    def __len__(self) -> int:
        return len(self._tokens)
