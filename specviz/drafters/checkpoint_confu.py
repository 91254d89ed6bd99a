"""ConFu drafters from files. Our format is EAGLE-3's (`checkpoint_eagle3.py`) with these tensors more:

- `soft_prompt` (S, H): the soft prompt's input embeddings, run once through the target;
- `con_experts.router.weight` (E, F) and `con_experts.experts` (E, H): the contemplate token's mixture, routed by the
  target's concatenated features;
- `f_experts.router.weight` (E, D) and `f_experts.experts` (E, D): the future token's mixture, routed by its state;
- `f_gate` (): how much of the future token the head's attention takes;

and these fields in config.json: `method: confu`, `n_soft`, `n_experts`, `n_selected_experts`, `renormalise_experts`.
An EAGLE-3 checkpoint of any layout loads as a start: what it lacks is initialised so that it drafts as its parent does.

Letters: S soft-prompt rows, E experts, H hidden of the target, F width of its features, D hidden of the draft.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.drafters.checkpoint_eagle3 import config_fields, head_tensors, random_eagle3, take_head
from specviz.drafters.checkpoint_files import (
    fill_module,
    open_drafter,
    refuse_left_over,
    write_drafter,
)
from specviz.drafters.confu import ConfuConfig, ConfuParts
from specviz.drafters.eagle3 import LoadedHead
from specviz.drafters.expert_embedding import ExpertConfig
from specviz.errors import SpecVizError
from specviz.target.model import Target

SAMPLED_ROWS = 8192  # of an embedding table, to know its mean and spread
EXPERT_NOISE = 0.1  # of the embeddings' standard deviation; enough to tell experts apart when training starts
START_NOTE = "ConFu was started from an EAGLE-3 head: its own parameters are untrained (gate 0), so f changes nothing."


def load_confu(name: str | Path, target: Target, start: ConfuConfig | None = None) -> tuple[LoadedHead, ConfuParts]:
    """Load a ConFu drafter, or start one from an EAGLE-3 head; raise SpecVizError where it does not fit.

    `start` is the size of what is added to an EAGLE-3 head; a ConFu drafter brings its own.
    """
    files = open_drafter(name)
    method = files.config.get("method", "eagle3")
    if method not in ("eagle3", "confu"):
        raise SpecVizError(f"The drafter {files.name!r} is for {method}, not for confu.")
    loaded = take_head(files, target)
    if method == "eagle3":
        refuse_left_over(files.tensors, files.name)
        loaded.info.notes.append(START_NOTE)
        return loaded, start_parts(loaded, target, start)
    with torch.device("meta"):
        parts = ConfuParts(_read_confu_config(files.config, files.name), loaded.head.config)
    fill_module(parts, files.tensors, files.name)
    refuse_left_over(files.tensors, files.name)
    return loaded, _place(parts, target)


def save_confu(folder: Path, loaded: LoadedHead, parts: ConfuParts, **extra: Any) -> None:
    """Write a ConFu drafter."""
    config = parts.config
    fields = {
        **config_fields(loaded, "confu"),
        "n_soft": config.n_soft,
        "n_experts": config.experts.n_experts,
        "n_selected_experts": config.experts.n_selected,
        "renormalise_experts": config.experts.renormalise,
    }
    write_drafter(folder, {**fields, **extra}, {**head_tensors(loaded), **parts.state_dict()})


def random_confu(target: Target) -> tuple[LoadedHead, ConfuParts]:
    """Return a drafter that was never trained; its gate is open, so that its future tokens take part."""
    loaded = random_eagle3(target)
    loaded.info.name = "untrained ConFu head"
    parts = start_parts(loaded, target)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for experts in (parts.con_experts, parts.f_experts):
            experts.router.reset_parameters()
    parts.f_gate.fill_(1.0)
    return loaded, _place(parts, target)


@torch.no_grad()
def start_parts(loaded: LoadedHead, target: Target, config: ConfuConfig | None = None) -> ConfuParts:
    """Return the parameters that training starts from: experts near the mean embedding, routers zero, gate zero."""
    parts = ConfuParts(config or ConfuConfig(), loaded.head.config)
    generator = torch.Generator().manual_seed(0)
    head = loaded.head
    target_table = target.embed(torch.linspace(0, target.vocab_size - 1, SAMPLED_ROWS).long())
    draft_table = head.embed_tokens.weight if head.config.own_embedding else target_table
    parts.soft_prompt.copy_(_near_mean(target_table, len(parts.soft_prompt), 1.0, generator))
    for experts, table in ((parts.con_experts, target_table), (parts.f_experts, draft_table)):
        experts.experts.copy_(_near_mean(table, len(experts.experts), EXPERT_NOISE, generator))
        experts.router.weight.zero_()
    parts.f_gate.zero_()
    return _place(parts, target)


def _near_mean(table: Tensor, n: int, noise: float, generator: torch.Generator) -> Tensor:
    """Return `n` vectors around the mean of embeddings (V, H)."""
    rows = table.detach().float()
    shape = (n, rows.shape[1])
    return rows.mean(dim=0).cpu() + noise * rows.std().cpu() * torch.randn(shape, generator=generator)


def _read_confu_config(config: dict[str, Any], name: str) -> ConfuConfig:
    sizes = {key: config.get(key) for key in ("n_soft", "n_experts", "n_selected_experts")}
    for key, value in sizes.items():
        if not isinstance(value, int) or value < (0 if key == "n_soft" else 1):
            raise SpecVizError(f"The config of the drafter {name!r} has no usable {key}: {value!r}.")
    n_soft, n_experts, n_selected = (int(value or 0) for value in sizes.values())
    if n_selected > n_experts:
        raise SpecVizError(f"The drafter {name!r} selects {n_selected} of {n_experts} experts, which is too many.")
    return ConfuConfig(n_soft, ExpertConfig(n_experts, n_selected, bool(config.get("renormalise_experts", True))))


def _place(parts: ConfuParts, target: Target) -> ConfuParts:
    parts.eval().requires_grad_(False)
    return parts.to(target.device, target.dtype)
