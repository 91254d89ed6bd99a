"""How weights move: Muon for the matrices inside, AdamW for everything else, warm-up, a plateau and a cool-down.

Muon (Jordan et al. 2024, as in `torch.optim.Muon`) orthogonalises the update of a matrix; an EAGLE-3 head learns with
it in less than half of the tokens that AdamW needs.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from specviz.errors import SpecVizError

ADDED = ("soft_prompt", "experts", "f_gate", "slots", "prefix")  # what a frozen target or a finished head is given anew
ROUTERS = ("router",)  # hundreds of inputs move a logit together
ROUTER_RATE = 0.1
ADDED_RATE = 5.0  # these have few rows a step to learn from, and far to go


class Movers:
    """The optimizers of a run with their shared schedule; one state to save and to load."""

    def __init__(self, module: nn.Module, learning_rate: float, betas: tuple[float, float] = (0.9, 0.95)) -> None:
        matrices, others, routers, added = split_parameters(module.named_parameters())
        self.optimizers: list[Optimizer] = []
        if matrices:
            self.optimizers.append(_muon(matrices, learning_rate))
        groups = [(others, 1.0), (routers, ROUTER_RATE), (added, ADDED_RATE)]
        named = [{"params": parameters, "lr": rate * learning_rate} for parameters, rate in groups if parameters]
        if named:
            self.optimizers.append(torch.optim.AdamW(named, betas=betas, weight_decay=0.0))
        self.parameters = [*matrices, *others, *routers, *added]

    def set_rate(self, share: float) -> None:
        """Set every learning rate to this share of its own full rate."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group.setdefault("full_lr", group["lr"])
                group["lr"] = share * group["full_lr"]

    def step(self, clip: float) -> float:
        """Clip the gradients' common norm, move the weights, clear the gradients; return the norm."""
        norm = float(nn.utils.clip_grad_norm_(self.parameters, clip))
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return norm

    def state_dict(self) -> list[dict[str, object]]:
        return [optimizer.state_dict() for optimizer in self.optimizers]

    def load_state_dict(self, states: list[dict[str, object]]) -> None:
        for optimizer, state in zip(self.optimizers, states, strict=True):
            optimizer.load_state_dict(state)


def split_parameters(named: Iterable[tuple[str, nn.Parameter]]) -> tuple[list[Tensor], ...]:
    """Return what is trained in four lists: inner matrices, output embedding and norms, routers, and what was added."""
    matrices: list[Tensor] = []
    others: list[Tensor] = []
    routers: list[Tensor] = []
    added: list[Tensor] = []
    for name, parameter in named:
        if not parameter.requires_grad:
            continue
        if any(part in name for part in ROUTERS):
            routers.append(parameter)
        elif any(part in name for part in ADDED):
            added.append(parameter)
        elif parameter.ndim == 2 and "lm_head" not in name:
            matrices.append(parameter)
        else:
            others.append(parameter)
    return matrices, others, routers, added


def rate_share(step: int, n_steps: int, warm_up: int, cool_down: float) -> float:
    """Return the learning rate's share at a step: linear up, flat, linear down over the last `cool_down` of the run."""
    rising = (step + 1) / max(warm_up, 1)
    falling = (n_steps - step) / max(cool_down * n_steps, 1)
    return max(0.0, min(1.0, rising, falling))


def _muon(matrices: list[Tensor], learning_rate: float) -> Optimizer:
    if not hasattr(torch.optim, "Muon"):
        raise SpecVizError(f"Training needs torch 2.9 or newer, for its Muon optimizer; this is {torch.__version__}.")
    return torch.optim.Muon(matrices, lr=learning_rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
