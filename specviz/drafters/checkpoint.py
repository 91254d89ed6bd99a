"""Reading and writing the learned slots of lookahead, strictly: what does not fit is named in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from specviz.drafters.checkpoint_files import read_config, read_tensors, refuse_left_over, write_drafter
from specviz.errors import SpecVizError
from specviz.target.model import Target
from specviz.trace import DrafterInfo

SLOT_TABLE = "slot_embeddings"


def load_slot_table(folder: Path, target: Target) -> tuple[Tensor, DrafterInfo]:
    """Read a learned table of slot embeddings (K_max, H) for lookahead.

    The folder holds `config.json` with `method: lookahead` and `model.safetensors` with the one
    tensor `slot_embeddings`. Raises SpecVizError where a tensor is missing, left over, or does not fit.
    """
    config, tensors = read_config(folder), read_tensors(folder)
    if config.get("method") != "lookahead":
        raise SpecVizError(f"The drafter {folder.name!r} is for {config.get('method')!r}, not for lookahead.")
    if SLOT_TABLE not in tensors:
        raise SpecVizError(f"The drafter {folder.name!r} lacks the tensor {SLOT_TABLE}.")
    table = tensors.pop(SLOT_TABLE)
    refuse_left_over(tensors, folder.name)
    if table.ndim != 2 or table.shape[1] != target.hidden_size:
        raise SpecVizError(
            f"{SLOT_TABLE} of the drafter {folder.name!r} has shape {tuple(table.shape)}; "
            f"this target needs (slots, {target.hidden_size})."
        )
    info = DrafterInfo(
        name=folder.name, source=str(config.get("source", "folder")), trained=True, notes=list(config.get("notes", []))
    )
    return table.to(target.device, target.dtype), info


def save_slot_table(folder: Path, table: Tensor, **config: Any) -> None:
    """Write a table (K_max, H) of slot embeddings in the format that `load_slot_table` reads."""
    fields = {"method": "lookahead", "k": table.shape[0], "hidden_size": table.shape[1], **config}
    write_drafter(folder, fields, {SLOT_TABLE: table})
