"""Loading a target by name: `bundled`, a hub id, a folder, or a .gguf file. No remote code is ever run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from specviz.errors import SpecVizError
from specviz.target import bundled
from specviz.target.attention import register_attention
from specviz.target.model import Target
from specviz.target.probe import check_layer_kinds, probe_target
from specviz.target.tokenizer import Tokenizer
from specviz.trace import ModelInfo

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
Progress = Callable[[str], None]
logger = logging.getLogger(__name__)


def load_target(
    name: str = "bundled", device: str = "auto", dtype: str = "auto", progress: Progress = logger.info
) -> Target:
    """Load, place and probe a target.

    `device` is auto, cpu or cuda; `dtype` is auto, float32, bfloat16 or float16. `progress` is
    called with a sentence before each long step. Raises SpecVizError with a sentence where the
    model cannot be found, read, or decoded by rows.
    """
    place = choose_device(device)
    number = choose_dtype(dtype, place)
    source, folder, gguf = _locate(name, progress)
    progress(f"Loading {name}")
    model = _read(name, lambda: _load_model(folder, gguf, number, place))
    tokenizer = _read(name, lambda: _load_tokenizer(folder, gguf))
    check_layer_kinds(model.config.get_text_config())
    revision = getattr(model.config, "_commit_hash", None) or (bundled.WHEEL if source == "bundled" else None)
    shown = bundled.NAME if source == "bundled" else name
    info = ModelInfo(
        name=shown,
        source=source,
        revision=revision,
        dtype=str(number).removeprefix("torch."),
        device=device_name(place),
    )
    return wrap_model(model, Tokenizer(tokenizer), info)


def wrap_model(model: Any, tokenizer: Tokenizer, info: ModelInfo) -> Target:
    """Make a target of a loaded model: our attention, evaluation mode, probed."""
    model.eval().requires_grad_(False)
    model.set_attn_implementation(register_attention())
    target = Target(model, tokenizer, info)
    probe_target(target)
    return target


def choose_device(device: str) -> torch.device:
    """Return the device for `auto`, `cpu`, `cuda` or one such as `cuda:1`; raise SpecVizError where there is none."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SpecVizError("No CUDA device was found on this machine: set device cpu or auto.")
    return torch.device(device)


def choose_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Return the dtype for a name; `auto` is bfloat16 where the hardware multiplies it, else float32."""
    if dtype != "auto":
        return DTYPES[dtype]
    fast = device.type == "cuda" or has_native_bf16()
    return torch.bfloat16 if fast else torch.float32


def has_native_bf16() -> bool:
    """Return whether this CPU multiplies bfloat16 matrices itself (AMX or AVX-512 BF16)."""
    checks = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return any(check() for check in checks if check is not None)


def device_name(device: torch.device) -> str:
    """Return a short name of the device for traces and the page."""
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return "cpu (AMX)" if getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)() else "cpu"


def _locate(name: str, progress: Progress) -> tuple[str, str, str | None]:
    """Return (source, folder or hub id, gguf file or None)."""
    if name == "bundled":
        return "bundled", str(bundled.bundled_folder(convert_gguf, progress)), None
    if not name.strip():
        raise SpecVizError("The model has no name: give bundled, a hub id, a folder or a .gguf file.")
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise SpecVizError(f"There is no file {name}.")
        return "gguf", str(path.parent), path.name
    if path.is_dir():
        return "folder", str(path), None
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise SpecVizError(f"There is no model folder {name!r}.")
    return "hub", name, None


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Read a .gguf file and write it as a model folder with bfloat16 weights."""
    model = _load_model(str(gguf.parent), gguf.name, torch.bfloat16, torch.device("cpu"))
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config  # saving a model that claims to be quantized is refused
    model.save_pretrained(folder)
    _load_tokenizer(str(gguf.parent), gguf.name).save_pretrained(folder)


def _load_model(folder: str, gguf: str | None, dtype: torch.dtype, device: torch.device) -> Any:
    arguments: dict[str, Any] = {"dtype": dtype, "trust_remote_code": False}
    if gguf is not None:
        arguments |= {"gguf_file": gguf} | _dense_gguf()
    if device.type == "cuda":
        # Accelerate spreads a model that one device cannot hold, unless one device was named.
        arguments["device_map"] = "auto" if device.index is None else {"": device}
    return AutoModelForCausalLM.from_pretrained(folder, **arguments)


def _dense_gguf() -> dict[str, Any]:
    """Newer transformers keep GGUF weights packed unless told to unpack them."""
    import transformers

    config = getattr(transformers, "GgufConfig", None)
    return {} if config is None else {"quantization_config": config(dequantize=True)}


def _load_tokenizer(folder: str, gguf: str | None) -> Any:
    extra = {} if gguf is None else {"gguf_file": gguf}
    return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **extra)


def _read(name: str, load: Callable[[], Any]) -> Any:
    """Run a loader of transformers and turn whatever it raises into one sentence."""
    try:
        return load()
    except SpecVizError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise SpecVizError(f"The model {name!r} could not be loaded: {lines[0].rstrip('.')}.") from error
