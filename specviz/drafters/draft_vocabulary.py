"""The draft's reduced vocabulary: which target ids a draft can say (EAGLE-3, `d2t` and `t2d`).

Letters: N draft tokens, V target vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.errors import SpecVizError


@dataclass(frozen=True)
class DraftVocabulary:
    """`target_ids` (N,) holds the target id of each draft id; `n_target` is V."""

    target_ids: Tensor
    n_target: int

    @classmethod
    def first(cls, n_draft: int, n_target: int) -> DraftVocabulary:
        """Return the vocabulary whose draft ids are the target's first ids."""
        return cls(torch.arange(n_draft), n_target)

    @classmethod
    def from_maps(cls, d2t: Tensor, t2d: Tensor | None, n_known: int) -> DraftVocabulary:
        """Read the maps of a checkpoint whose own vocabulary has `n_known` ids.

        Target id = draft id + `d2t` (N,); `t2d` marks the target ids that can be said.
        Raises SpecVizError where an id is out of range or named twice, or where the two disagree.
        """
        target_ids = torch.arange(len(d2t)) + d2t.cpu().long()
        if bool(((target_ids < 0) | (target_ids >= n_known)).any()):
            raise SpecVizError(
                f"d2t leads to target ids from {int(target_ids.min())} to {int(target_ids.max())}, outside the "
                f"vocabulary of {n_known}; it must hold offsets (target id minus draft id)."
            )
        if len(target_ids.unique()) < len(target_ids):
            raise SpecVizError("d2t gives two draft tokens the same target id.")
        if t2d is not None:
            said = torch.zeros(n_known, dtype=torch.bool)
            said[target_ids] = True
            if not torch.equal(said, t2d.cpu().bool()):
                raise SpecVizError("d2t and t2d disagree about which target ids the draft can say.")
        return cls(target_ids, n_known)

    @property
    def n_draft(self) -> int:
        return len(self.target_ids)

    @property
    def offsets(self) -> Tensor:
        """The map as checkpoints store it, `d2t` (N,)."""
        return self.target_ids - torch.arange(self.n_draft, device=self.target_ids.device)

    @property
    def mask(self) -> Tensor:
        """The other map of checkpoints, `t2d` (V,)."""
        said = torch.zeros(self.n_target, dtype=torch.bool, device=self.target_ids.device)
        said[self.target_ids] = True
        return said

    def known_to(self, n_target: int) -> Tensor:
        """Return which draft ids (N,) a target of `n_target` ids knows."""
        return self.target_ids < n_target

    def cut(self, n_target: int) -> DraftVocabulary:
        """Return the vocabulary of the draft ids that a target of `n_target` ids knows."""
        return DraftVocabulary(self.target_ids[self.known_to(n_target)], n_target)

    def to(self, device: torch.device) -> DraftVocabulary:
        return DraftVocabulary(self.target_ids.to(device), self.n_target)

    def spread(self, log_probs: Tensor) -> Tensor:
        """Return log-probabilities (..., N) over the target's vocabulary (..., V), -inf where nothing can be said."""
        full = log_probs.new_full((*log_probs.shape[:-1], self.n_target), float("-inf"))
        full[..., self.target_ids] = log_probs
        return full
