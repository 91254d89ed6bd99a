"""Losslessness by count: each lane's greedy answers against plain decoding's, token for token, in float32.

`python -m specviz.evaluation.lossless --questions FILE` prints the README's counts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specviz.errors import exit_status
from specviz.evaluation.bench import BenchRequest, run_bench
from specviz.evaluation.lanes import PLAIN
from specviz.evaluation.plan import PlannedLane
from specviz.evaluation.questions import load_questions
from specviz.evaluation.tables import show_exactness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--out", type=Path, default=Path("out/lossless"))
    parser.add_argument("--n", type=int, default=40, help="the first questions of the file")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument(
        "--k",
        type=int,
        nargs="*",
        default=[1, 2, 4, 8],
        help="slots of lookahead, its other settings at their defaults",
    )
    parser.add_argument("--nodes", type=int, nargs="*", default=[], help="trees of eagle3 and confu")
    parser.add_argument("--batch", type=int, default=8, help="questions decoded together")
    parser.add_argument("--model", default="bundled")
    chosen = parser.parse_args()
    request = BenchRequest(
        questions=load_questions(chosen.questions)[: chosen.n],
        lanes=plan_sizes(chosen.k, chosen.nodes),
        out=chosen.out,
        model=chosen.model,
        dtype="float32",
        common={"max_new_tokens": chosen.tokens, "record": "light"},
        peers=False,
        batch=chosen.batch,
    )
    report, _ = run_bench(request)
    drafting = {name: lane.overall for name, lane in report.lanes.items() if name != PLAIN}
    for name, summary in drafting.items():
        print(f"{name:20} {show_exactness(summary)} equal to plain")
    n_equal = sum(summary.exactness.get("equal", 0) for summary in drafting.values())
    print(f"{n_equal} of {sum(summary.n_questions for summary in drafting.values())}")


def plan_sizes(ks: list[int], nodes: list[int]) -> list[PlannedLane]:
    """Return plain, lookahead by k, and eagle3 and confu trees by node count."""
    return [
        PlannedLane(PLAIN, "plain"),
        *(PlannedLane("lookahead", "lookahead", {"k": k}) for k in ks),
        *(PlannedLane("eagle3", "eagle3", {"nodes": n}) for n in nodes),
        *(PlannedLane("confu", "confu", {"nodes": n}) for n in nodes),
    ]


if __name__ == "__main__":
    sys.exit(exit_status(main))
