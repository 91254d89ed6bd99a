"""SpecViz: a visualizer of speculative decoding that runs the real thing.

`RunSettings`, `RunTrace`, `load_trace`, `figures` and `analysis` need neither torch nor a model; `Engine` does, and is
imported when it is first asked for, as `figures` and `analysis` are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from specviz.settings import RunSettings
from specviz.trace import RunTrace, load_trace

if TYPE_CHECKING:
    from specviz import analysis, figures
    from specviz.decoding.engine import Engine

__version__ = "0.1.0"
__all__ = ["Engine", "RunSettings", "RunTrace", "analysis", "figures", "load_trace"]


def __getattr__(name: str) -> Any:
    if name == "Engine":
        from specviz.decoding.engine import Engine

        return Engine
    if name in ("analysis", "figures"):
        return import_module(f"specviz.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
