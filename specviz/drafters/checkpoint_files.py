"""A drafter's files: finding the folder, reading and writing its config and tensors, and comparing names and shapes."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from specviz.errors import SpecVizError

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
WANTED_FILES = ["*.json", "*.safetensors", "*.bin"]


@dataclass(frozen=True)
class DrafterFiles:
    """A drafter as it was read: what people call it (a folder's name, a hub id), where it came from, and its contents.

    Whoever takes a tensor out of `tensors` has read it; what is left over is refused.
    """

    name: str
    source: str
    config: dict[str, Any]
    tensors: dict[str, Tensor]


def open_drafter(name: str | Path) -> DrafterFiles:
    """Read a drafter by folder or hub id."""
    folder, is_local = locate_drafter(name), Path(name).expanduser().is_dir()
    shown = folder.name if is_local else str(name)
    config, tensors = read_config(folder, shown), read_tensors(folder, shown)
    return DrafterFiles(shown, str(config.get("source", "folder" if is_local else "hub")), config, tensors)


def locate_drafter(name: str | Path) -> Path:
    """Return the folder of a drafter: a folder as it is, a hub id from the hub's cache or the hub itself."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    text = str(name)
    if path.is_absolute() or text.startswith((".", "~")) or text.count("/") != 1:
        raise SpecVizError(f"There is no drafter folder {path.name!r}.")
    return _fetch(text)


def _fetch(hub_id: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, allow_patterns=WANTED_FILES))
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise SpecVizError(f"The drafter {hub_id!r} could not be fetched from the hub: {reason.rstrip('.')}.") from None


def digest_drafter(folder: Path) -> str:
    """Return the digest of a drafter's config and weights, so that other weights under the same name are noticed."""
    digest = hashlib.sha256()
    for path in [folder / CONFIG, *sorted(folder.glob("*.safetensors")), *sorted(folder.glob("*.bin"))]:
        if path.is_file():
            digest.update(path.name.encode("utf-8"))
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def read_config(folder: Path, name: str | None = None) -> dict[str, Any]:
    """Return the config.json of a drafter's folder; `name` is what an error calls it, if not by its folder."""
    name = name or folder.name
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except OSError:
        raise SpecVizError(f"The drafter {name!r} has no {CONFIG}.") from None
    except ValueError:
        raise SpecVizError(f"The {CONFIG} of the drafter {name!r} is not JSON.") from None
    if not isinstance(config, dict):
        raise SpecVizError(f"The {CONFIG} of the drafter {name!r} is not an object.")
    return config


def read_tensors(folder: Path, name: str | None = None) -> dict[str, Tensor]:
    """Return the tensors of a drafter's folder, on the CPU: its .safetensors files, else its pytorch_model*.bin."""
    name = name or folder.name
    tensors: dict[str, Tensor] = {}
    for path, part in _read_parts(folder, name):
        if twice := sorted(set(tensors) & set(part)):
            raise SpecVizError(f"The drafter {name!r} has {twice[0]} in two files, {path.name} among them.")
        tensors |= part
    if not tensors:
        raise SpecVizError(f"The drafter {name!r} has no weights: {WEIGHTS} or pytorch_model.bin is missing.")
    return tensors


def _read_parts(folder: Path, name: str) -> Iterator[tuple[Path, dict[str, Tensor]]]:
    safe = sorted(folder.glob("*.safetensors"))
    for path in safe or sorted(folder.glob("pytorch_model*.bin")):
        try:
            part = load_file(path) if safe else torch.load(path, map_location="cpu", weights_only=True)
        except (OSError, SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise SpecVizError(
                f"The weights {path.name} of the drafter {name!r} could not be read: {reason.rstrip('.')}."
            ) from None
        if not isinstance(part, dict) or not all(isinstance(value, Tensor) for value in part.values()):
            raise SpecVizError(f"The file {path.name} of the drafter {name!r} holds more than named tensors.")
        yield path, part


def write_drafter(
    folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], beside: Mapping[str, str] | None = None
) -> None:
    """Write config.json and model.safetensors, and texts `beside` them by name; raise SpecVizError where it fails.

    Every file is tried before the first one is written, so that a folder with a drafter never holds half of another.
    """
    texts = {**(beside or {}), CONFIG: json.dumps(dict(config), indent=2) + "\n"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (WEIGHTS, *texts):
            _try_to_write(folder / name)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecVizError(f"The drafter could not be written to {folder}: {reason.rstrip('.')}.") from None


def _try_to_write(path: Path) -> None:
    """Raise OSError where a file could not be written; what it holds stays, and one that is not there is not made."""
    existed = path.exists()
    path.open("ab").close()
    if not existed:
        path.unlink()


def fill_module(module: nn.Module, tensors: dict[str, Tensor], name: str, prefix: str = "") -> None:
    """Give a module its parameters out of `tensors`, taking them away; strict about names and shapes.

    Parameters that were made on the meta device come to life here. Raises SpecVizError naming the
    tensor that is missing or misshapen; what is left in `tensors` is the caller's to refuse.
    """
    state: dict[str, Tensor] = {}
    for own_name, parameter in module.state_dict().items():
        full_name = prefix + own_name
        if full_name not in tensors:
            raise SpecVizError(f"The drafter {name!r} lacks the tensor {full_name}.")
        tensor = tensors.pop(full_name)
        if tensor.shape != parameter.shape:
            raise SpecVizError(
                f"{full_name} of the drafter {name!r} has shape {tuple(tensor.shape)}; "
                f"its config and this target need {tuple(parameter.shape)}."
            )
        state[own_name] = tensor
    module.load_state_dict(state, assign=True)


def refuse_left_over(tensors: Mapping[str, Tensor], name: str) -> None:
    """Raise SpecVizError where tensors remain that nobody read."""
    if tensors:
        raise SpecVizError(f"The drafter {name!r} has tensors nobody reads: {', '.join(sorted(tensors))}.")
