"""Arguments that commands share; their names are those of `RunSettings`."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from specviz.settings import Placeholder

SETTINGS_OF_METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "lookahead": {
        "--k": {"type": int, "metavar": "K", "help": "slots behind a node"},
        "--selection": {"choices": ("verified", "self-consistent")},
        "--threshold": {"type": float, "metavar": "X"},
        "--placeholder": {"choices": get_args(Placeholder)},
        "--slot-attention": {"choices": ("diagonal", "causal")},
        "--candidates": {"type": int, "metavar": "N", "help": "candidates for a slot: more than 1 is a tree"},
        "--rows": {"type": int, "metavar": "N", "help": "most rows in a pass"},
        "--groups": {"type": int, "metavar": "N", "help": "nodes that carry slots"},
    },
    "eagle3 and confu": {
        "--nodes": {"type": int, "metavar": "T", "help": "verified nodes, root included"},
        "--depth": {"type": int, "metavar": "D", "help": "deepest drafted level"},
        "--tree-top-k": {"type": int, "metavar": "K"},
    },
    "confu": {
        "--confu-f": {"choices": ("on", "off")},
        "--experts": {"choices": ("routed", "fixed")},
        "--contemplate": {"choices": ("all", "root")},
    },
}


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the target, and where and in which numbers it runs."""
    parser.add_argument("--model", default="bundled", help="bundled, a hub id, a folder or a .gguf file")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"))


def add_cuda_graphs(parser: argparse.ArgumentParser) -> None:
    """Add whether passes over few rows are held in CUDA graphs."""
    parser.add_argument("--cuda-graphs", action="store_true", help="launch each small pass as one graph (CUDA only)")


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add how answers are chosen and how long they may be."""
    parser.add_argument("--max-new-tokens", type=int, default=128, metavar="N")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 is greedy")
    parser.add_argument("--top-p", type=float, default=1.0, metavar="P")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--raw", action="store_true", help="no chat template")


def add_method_settings(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Add the methods' own settings; with `several`, each takes a list of values to try."""
    for title, settings in SETTINGS_OF_METHODS.items():
        group = parser.add_argument_group(title, "several values are tried in turn" if several else None)
        for flag, options in settings.items():
            group.add_argument(flag, **(options | {"nargs": "+"} if several else options))
