"""Reading and writing the learned slots of lookahead, strictly: what does not fit is named in a sentence.

Tensors: `slot_embeddings` (K, H); optionally `prefix_keys` and `prefix_values` (L, Hkv, S, D), which slots alone see.

Letters: K slots, H hidden, L layers, S prefix rows, Hkv key/value heads, D width of a head.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.drafters.checkpoint_files import open_drafter, refuse_left_over, write_drafter
from specviz.drafters.lookahead import SlotTable
from specviz.errors import SpecVizError
from specviz.target.cache import SoftRows
from specviz.target.model import Target
from specviz.trace import DrafterInfo

SLOT_TABLE = "slot_embeddings"
PREFIX = ("prefix_keys", "prefix_values")


def load_slot_table(name: str | Path, target: Target) -> tuple[SlotTable, DrafterInfo]:
    """Read the learned slots of lookahead, and the prefix that goes with them where there is one.

    The folder holds `config.json` with `method: lookahead` and `model.safetensors`.
    Raises SpecVizError where a tensor is missing, left over, or does not fit.
    """
    files = open_drafter(name)
    config, tensors = files.config, files.tensors
    if config.get("method") != "lookahead":
        raise SpecVizError(f"The drafter {files.name!r} is for {config.get('method')!r}, not for lookahead.")
    if SLOT_TABLE not in tensors:
        raise SpecVizError(f"The drafter {files.name!r} lacks the tensor {SLOT_TABLE}.")
    slots = tensors.pop(SLOT_TABLE)
    prefix = _take_prefix(tensors, target, files.name)
    refuse_left_over(tensors, files.name)
    if slots.ndim != 2 or slots.shape[1] != target.hidden_size:
        raise SpecVizError(
            f"{SLOT_TABLE} of the drafter {files.name!r} has shape {tuple(slots.shape)}; "
            f"this target needs (slots, {target.hidden_size})."
        )
    info = DrafterInfo(name=files.name, source=files.source, trained=True, notes=list(config.get("notes", [])))
    return SlotTable(slots.to(target.device, target.dtype), prefix), info


def save_slot_table(folder: Path, table: SlotTable, **config: Any) -> None:
    """Write a table in the format that `load_slot_table` reads."""
    k, hidden_size = table.slots.shape
    fields = {"method": "lookahead", "k": k, "hidden_size": hidden_size, "n_prefix": table.n_prefix, **config}
    parts = [torch.cat([pair[part] for pair in table.prefix]) for part in (0, 1)] if table.prefix else []
    write_drafter(folder, fields, {SLOT_TABLE: table.slots, **dict(zip(PREFIX, parts, strict=False))})


def _take_prefix(tensors: dict[str, Tensor], target: Target, name: str) -> SoftRows | None:
    """Take the prefix's keys and values out of `tensors`, a pair (1, Hkv, S, D) a layer; None where there is none."""
    present = [key for key in PREFIX if key in tensors]
    if not present:
        return None
    if len(present) < len(PREFIX):
        raise SpecVizError(f"The drafter {name!r} has {present[0]} alone; a prefix needs {' and '.join(PREFIX)}.")
    keys, values = (tensors.pop(key).to(target.device, target.dtype) for key in PREFIX)
    if keys.shape != values.shape or keys.ndim != 4 or keys.shape[0] != target.n_layers:
        raise SpecVizError(
            f"The prefix of the drafter {name!r} has shapes {tuple(keys.shape)} and {tuple(values.shape)}; "
            f"this target needs ({target.n_layers}, heads, rows, width) twice."
        )
    return [(k[None], v[None]) for k, v in zip(keys, values, strict=True)]
