"""What a router of ConFu learns on: its input at one size in every dimension, without the direction all contexts share.

A router reads hidden states, and most of a hidden state is the same in every context. Along that common part a
router's weight is a bias that the loss can move at once, so the first expert that helps gains everywhere and takes
every context: the mixture collapses, and nothing in ConFu's loss (KL alone, arXiv 2603.08899) brings the others back.
Without the common direction only what differs between contexts can choose an expert; that takes the bias away, though
experts may still come to be used unevenly (the README says how unevenly). Both steps are linear, so they are folded
into the weight that is saved, and the router that loads reads plain hidden states.

Letters: D width of the input, E experts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RouterInput:
    """The root mean square of each dimension (D,), and the unit direction (D,) of the mean once divided by it."""

    scale: Tensor
    common: Tensor

    def __call__(self, states: Tensor) -> Tensor:
        """Return what the router learns on (..., D), float32, of hidden states (..., D)."""
        scaled = states.float() / self.scale
        return scaled - (scaled @ self.common)[..., None] * self.common

    def unfold(self, weight: Tensor) -> Tensor:
        """Return the weight (E, D) that starts from `weight`, made for plain states; its common part no longer acts."""
        return weight * self.scale

    def fold(self, weight: Tensor) -> Tensor:
        """Return the weight (E, D) that on plain states gives what `weight` gives on this input."""
        return (weight - torch.outer(weight @ self.common, self.common)) / self.scale


def measure_input(states: Tensor, scale: Tensor | None = None) -> RouterInput:
    """Return the input that states (N, D) of many contexts call for, by their own scale unless one (D,) is given."""
    states = states.float()
    scale = states.square().mean(dim=0).sqrt().clamp(min=1e-6) if scale is None else scale
    mean = (states / scale).mean(dim=0)
    return RouterInput(scale, mean / mean.norm().clamp(min=1e-12))
