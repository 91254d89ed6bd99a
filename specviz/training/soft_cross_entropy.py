"""The loss of a drafter against the target's distribution, without ever holding all logits in float32.

Cross entropy with soft labels, restricted to and renormalised over the draft vocabulary: the gradient is that of
forward KL (EAGLE-3, `traineagle3/cnets.py`). Rows go through in chunks that stay in the processor's cache; gradients
are made at once, so the backward pass only scales them.

Letters: R rows, N draft vocabulary, H hidden.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 128


class _SoftCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, wanted: Tensor, row_weights: Tensor) -> tuple[Tensor, Tensor]:
        errors, losses = torch.empty_like(wanted), row_weights.new_empty(len(states))
        for start in range(0, len(states), CHUNK):
            rows = slice(start, start + CHUNK)
            log_probs = (states[rows] @ weight.T).float().log_softmax(dim=-1)  # (R, N)
            losses[rows] = -torch.linalg.vecdot(log_probs, wanted[rows].float())
            torch.sub(log_probs.exp_(), wanted[rows], out=errors[rows])
        scale = row_weights[:, None].to(states.dtype)
        grad_states = (errors @ weight) * scale
        grad_weight = errors.T @ (states * scale) if ctx.needs_input_grad[1] else None
        ctx.save_for_backward(grad_states, grad_weight)
        ctx.mark_non_differentiable(losses)
        return (losses * row_weights).sum(), losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_unused: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight = ctx.saved_tensors
        moved = None if grad_weight is None else (grad * grad_weight).to(grad_weight.dtype)
        return (grad * grad_states).to(grad_states.dtype), moved, None, None


def soft_cross_entropy(states: Tensor, weight: Tensor, wanted: Tensor, row_weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return (weighted sum of the losses (), loss of each row (R,)).

    The draft's logits are `states` (R, H) times `weight` (N, H), `wanted` (R, N) are the target's probabilities, all in
    one dtype; sums run in float32. Gradients reach `states` and `weight` through the sum alone.
    """
    return _SoftCrossEntropy.apply(states, weight, wanted, row_weights)
