"""Lookahead Attention without training: tau and measured speed-up over plain, chain and tree, by k.

`python -m specviz.evaluation.lookahead --questions FILE --out FOLDER` prints the README's table; it is a bench whose
lanes are no grid.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError, exit_status
from specviz.evaluation.bench import BenchRequest, run_bench
from specviz.evaluation.lanes import PLAIN
from specviz.evaluation.plan import PlannedLane
from specviz.evaluation.questions import load_questions, spread_over_categories
from specviz.evaluation.tables import show_lanes

TREES = ["2x16", "1x60", "2x60", "4x60", "8x60", "16x60"]
TRAINING_FREE = {"placeholder": "vocab-mean", "slot_attention": "diagonal"}  # whatever drafter ships
SHAPE = re.compile(r"(\d+)x(\d+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--n", type=int, default=60, help="questions, categories taking turns")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--chains", type=int, nargs="*", default=[1, 2, 4, 8, 16], metavar="K")
    parser.add_argument("--trees", nargs="*", default=TREES, metavar="KxROWS", help="slots and row budget")
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--dtype", default="auto")
    chosen = parser.parse_args()
    request = BenchRequest(
        questions=spread_over_categories(load_questions(chosen.questions), chosen.n),
        lanes=plan_shapes(chosen.chains, chosen.trees),
        out=chosen.out,
        model=chosen.model,
        dtype=chosen.dtype,
        common={"max_new_tokens": chosen.tokens, "record": "light"},
        peers=False,
    )
    report, _ = run_bench(request)
    print(show_lanes({name: lane.overall for name, lane in report.lanes.items()}))


def plan_shapes(chains: list[int], trees: list[str]) -> list[PlannedLane]:
    """Return plain, the seed's chain for each k, and a tree for each `KxROWS`."""
    return [
        PlannedLane(PLAIN, "plain"),
        *(PlannedLane("chain", "lookahead", {"k": k, "candidates": 1} | TRAINING_FREE) for k in chains),
        *(PlannedLane("tree", "lookahead", _read_shape(shape) | TRAINING_FREE) for shape in trees),
    ]


def _read_shape(shape: str) -> dict[str, Any]:
    numbers = SHAPE.fullmatch(shape)
    if numbers is None:
        raise SpecVizError(f"--trees needs KxROWS, such as 2x16, not {shape!r}.")
    return {"k": int(numbers[1]), "rows": int(numbers[2])}


if __name__ == "__main__":
    sys.exit(exit_status(main))
