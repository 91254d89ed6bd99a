"""Reading drafters from files, strictly: what is missing, left over or misshapen is named in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from specviz.errors import SpecVizError
from specviz.target.model import Target
from specviz.trace import DrafterInfo

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
SLOT_TABLE = "slot_embeddings"


def read_config(folder: Path) -> dict[str, Any]:
    """Return the config.json of a drafter's folder."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except OSError:
        raise SpecVizError(f"The drafter {folder.name!r} has no {CONFIG}.") from None
    except ValueError:
        raise SpecVizError(f"The {CONFIG} of the drafter {folder.name!r} is not JSON.") from None
    if not isinstance(config, dict):
        raise SpecVizError(f"The {CONFIG} of the drafter {folder.name!r} is not an object.")
    return config


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of a drafter's folder, on the CPU."""
    try:
        return load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise SpecVizError(f"The weights of the drafter {folder.name!r} could not be read: {error}.") from None


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
    if left_over := sorted(set(tensors) - {SLOT_TABLE}):
        raise SpecVizError(f"The drafter {folder.name!r} has tensors nobody reads: {', '.join(left_over)}.")
    table = tensors[SLOT_TABLE]
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
    folder.mkdir(parents=True, exist_ok=True)
    save_file({SLOT_TABLE: table.detach().contiguous().cpu()}, folder / WEIGHTS)
    fields = {"method": "lookahead", "k": table.shape[0], "hidden_size": table.shape[1], **config}
    (folder / CONFIG).write_text(json.dumps(fields, indent=2), encoding="utf-8")
