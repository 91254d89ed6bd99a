"""Losslessness by count: each lane's greedy answers against plain decoding's, token for token, in float32.

`python -m specviz.evaluation.lossless --questions FILE` prints the README's counts; `--nodes` asks for trees of EAGLE-3
and ConFu by the shipped drafters, `--untrained` for the same trees by random heads too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from specviz.drafters.checkpoint_confu import random_confu, save_confu
from specviz.drafters.checkpoint_eagle3 import random_eagle3, save_eagle3
from specviz.errors import exit_status
from specviz.evaluation.bench import BenchRequest, run_bench
from specviz.evaluation.lanes import PLAIN
from specviz.evaluation.plan import PlannedLane
from specviz.evaluation.questions import load_questions
from specviz.evaluation.tables import show_exactness
from specviz.settings import Method
from specviz.target.loading import load_target


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
    parser.add_argument("--untrained", action="store_true", help="trees of random heads too")
    parser.add_argument("--batch", type=int, default=8, help="questions decoded together")
    parser.add_argument("--model", default="bundled")
    chosen = parser.parse_args()
    questions = load_questions(chosen.questions)[: chosen.n]
    heads = write_untrained_heads(chosen.model, chosen.out / "untrained") if chosen.untrained else None
    request = BenchRequest(
        questions=questions,
        lanes=plan_sizes(chosen.k, chosen.nodes, heads),
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


def plan_sizes(
    ks: Sequence[int], nodes: Sequence[int], untrained: Mapping[Method, str] | None = None
) -> list[PlannedLane]:
    """Return plain, lookahead by k, and eagle3 and confu trees by node count, of random heads too where there are."""
    trees: tuple[Method, ...] = ("eagle3", "confu")
    return [
        PlannedLane(PLAIN, "plain"),
        *(PlannedLane("lookahead", "lookahead", {"k": k}) for k in ks),
        *(PlannedLane(method, method, {"nodes": n}) for method in trees for n in nodes),
        *(
            PlannedLane(f"{method} untrained", method, {"nodes": n}, folder)
            for method, folder in (untrained or {}).items()
            for n in nodes
        ),
    ]


def write_untrained_heads(model: str, out: Path) -> dict[Method, str]:
    """Write an EAGLE-3 and a ConFu head with random weights for a model under `out`; return their folders by method."""
    target = load_target(model, dtype="float32")
    save_eagle3(out / "eagle3", random_eagle3(target))
    save_confu(out / "confu", *random_confu(target))
    return {"eagle3": str(out / "eagle3"), "confu": str(out / "confu")}


if __name__ == "__main__":
    sys.exit(exit_status(main))
