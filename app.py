"""Start the SpecViz page: `python app.py [--model NAME] [--drafter PATH] [--device D] [--dtype T] [--port N] ...`."""

from __future__ import annotations

try:  # Hugging Face's ZeroGPU: must come before torch
    import spaces
except ImportError:
    spaces = None

import argparse
import importlib.util
import sys
import threading
from collections.abc import Iterator

from specviz import terminal
from specviz.decoding.engine import Engine
from specviz.decoding.events import Event
from specviz.errors import SpecVizError
from specviz.settings import RunSettings
from specviz.ui import build_page, make_i18n

SECONDS_PER_TOKEN = 0.25  # an upper bound for ZeroGPU, where a visitor pays for the time that is reserved
MAX_GPU_SECONDS = 60


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="SpecViz: watch speculative decoding, step by step.")
    parser.add_argument("--model", action="append", metavar="ID|FOLDER|FILE.gguf", help="a target; may repeat")
    parser.add_argument("--drafter", action="append", metavar="PATH|HUB_ID", help="a drafter; may repeat")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16", "float16"], default="auto")
    parser.add_argument("--cuda-graphs", action="store_true", help="launch each small pass as one graph (CUDA only)")
    parser.add_argument("--port", type=int, default=None, help="the first free one from 7860 on by default")
    return parser.parse_args(arguments)


def gpu_seconds(prompts: list[str], settings: RunSettings) -> int:
    """Return how long a run may hold ZeroGPU's device."""
    return min(MAX_GPU_SECONDS, 15 + int(SECONDS_PER_TOKEN * settings.max_new_tokens * len(prompts)))


def decode(prompts: list[str], settings: RunSettings) -> Iterator[Event]:
    """Decode with the engine of this process: a plain generator of plain data, as ZeroGPU wants it."""
    yield from engine.stream(prompts, settings)


def load_models(options: argparse.Namespace) -> None:
    """Load what the operator named before the page starts; the default model while it is up already."""
    if options.model:
        for name in engine.model_names:
            engine.info(name)
    else:
        threading.Thread(target=load_default_model, daemon=True).start()


def load_default_model() -> None:
    """Load the default model; a run that needs it says why where it cannot be loaded."""
    try:
        engine.info(engine.model_names[0])
    except SpecVizError as error:
        print(error, file=sys.stderr)


options = read_arguments(sys.argv[1:] if __name__ == "__main__" else [])
engine = Engine(
    models=options.model or ["bundled"],
    drafters=options.drafter or [],
    device=options.device,
    dtype=options.dtype,
    progress=terminal.tell,  # the operator hears what takes long, and what cannot be had
    cuda_graphs=options.cuda_graphs,
)
demo = build_page(engine, spaces.GPU(duration=gpu_seconds)(decode) if spaces else decode)

if __name__ == "__main__":
    try:
        load_models(options)
    except SpecVizError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    demo.launch(
        server_port=options.port,
        run_history=False,
        i18n=make_i18n(),
        mcp_server=importlib.util.find_spec("mcp") is not None,
    )
