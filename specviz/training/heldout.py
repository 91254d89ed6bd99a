"""How far a chain of drafts would have got on held-out greedy answers, from the head's guesses at every row.

While a chain is right it has drafted the answer's own tokens, so guesses made with the true tokens before them
are the chain's guesses up to its first mistake.

Letters: I steps, R rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from specviz.training.unroll import Span


@dataclass
class ChainScore:
    """Counts over answers; `hits[i]` of `judged[i]` guesses at step i were right."""

    hits: list[float] = field(default_factory=list)
    judged: list[float] = field(default_factory=list)
    n_tokens: int = 0
    n_passes: int = 0

    def add(self, right: Tensor, valid: Tensor, spans: list[Span]) -> None:
        """Count guesses that were right and those that had a token to guess, (I, R) each."""
        depth = len(right)
        self.hits = _added(self.hits or [0.0] * depth, (right & valid).sum(dim=1))
        self.judged = _added(self.judged or [0.0] * depth, valid.sum(dim=1))
        lengths = (right & valid).long().cumprod(dim=0).sum(dim=0).tolist()  # accepted at each row, (R,)
        for span in spans:
            self._walk(lengths[span.rows])

    def _walk(self, accepted: list[int]) -> None:
        """Decode one answer: a pass commits what was accepted and one token more, then starts behind it."""
        row = 0
        while row < len(accepted):
            row += accepted[row] + 1
            self.n_passes += 1
        self.n_tokens += len(accepted)

    @property
    def tau(self) -> float:
        """Tokens per pass of a greedy chain, the correction or bonus included."""
        return self.n_tokens / max(self.n_passes, 1)

    @property
    def accuracy(self) -> list[float]:
        """Share of right guesses at each step, all before them being right or not."""
        return [hits / max(judged, 1) for hits, judged in zip(self.hits, self.judged, strict=True)]


def _added(counts: list[float], more: Tensor) -> list[float]:
    return torch.add(torch.tensor(counts, dtype=torch.float64), more.cpu()).tolist()
