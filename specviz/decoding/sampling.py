"""From logits to a token: one function for the distribution, one random number for each position.

The random number is a pure function of (seed, position), so a speculative run and a plain run with
one seed draw the same number for the same place, and drafters never touch it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

NUCLEUS_GUESS = 1024  # most nuclei are small: look among this many tokens before sorting a vocabulary


@dataclass(frozen=True)
class Sampler:
    """Chooses tokens under temperature, top-p and seed; temperature 0 is greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the target's distribution (..., V) that tokens are drawn from.

        Greedy decoding draws from none: for it this is the softmax at temperature 1, which is what
        a reader wants to see beside the argmax.
        """
        if self.greedy:
            return torch.softmax(logits, dim=-1)
        return nucleus(torch.softmax(logits / self.temperature, dim=-1), self.top_p)

    def choose(self, logits: Tensor, position: int) -> int:
        """Return the token for `position` from logits (V,); equal logits go to the lowest id."""
        if self.greedy:
            return int(logits.argmax())
        return draw(self.probabilities(logits), uniform(self.seed, position))


def nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of most probable tokens whose mass reaches `top_p`, renormalised; (..., V)."""
    if top_p >= 1:
        return probabilities
    n_vocab = probabilities.shape[-1]
    values, indices = probabilities.topk(min(NUCLEUS_GUESS, n_vocab), dim=-1)
    if bool((values.sum(dim=-1) < top_p).any()):
        values, indices = probabilities.sort(dim=-1, descending=True, stable=True)
    mass_before = values.cumsum(dim=-1) - values
    kept = torch.where(mass_before < top_p, values, torch.zeros_like(values))
    nucleus_only = torch.zeros_like(probabilities).scatter(-1, indices, kept)
    return nucleus_only / nucleus_only.sum(dim=-1, keepdim=True)


def draw(probabilities: Tensor, number: float) -> int:
    """Return the token (V,) at which the cumulative probability passes `number` in [0, 1)."""
    cumulative = probabilities.double().cumsum(dim=-1)
    place = torch.searchsorted(cumulative, number * cumulative[-1:], right=True)
    last_possible = int(probabilities.nonzero()[-1])
    return min(int(place), last_possible)


def uniform(seed: int, position: int) -> float:
    """Return a number in [0, 1) that depends on seed and position alone."""
    digest = hashlib.blake2b(f"{seed}:{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53
