"""Losslessness by count: each lane's greedy answers against plain decoding's, token for token, in float32.

`python -m specviz.evaluation.lossless --questions FILE` prints the README's counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from specviz.decoding.engine import Engine
from specviz.evaluation.lanes import run_lanes
from specviz.evaluation.questions import load_questions
from specviz.settings import RunSettings, make_settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--out", type=Path, default=Path("out"))
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
    engine = Engine([chosen.model], dtype="float32")
    lanes = build_lanes(engine.model_names[0], chosen.tokens, chosen.k, chosen.nodes)
    questions = load_questions(chosen.questions)[: chosen.n]
    records = run_lanes(engine, questions, lanes, chosen.out / "lossless.jsonl", chosen.batch)
    answers = {(r["lane"], r["question_id"]): r["token_ids"] for r in records}
    total = 0
    for lane in list(lanes)[1:]:
        ids = [question.question_id for question in questions]
        n_equal = sum(answers[lane, i] == answers["plain", i] for i in ids)
        total += n_equal
        print(f"{lane:20} {n_equal} of {len(ids)} equal to plain")
    print(f"{total} of {(len(lanes) - 1) * len(questions)}")


def build_lanes(model: str, n_tokens: int, ks: list[int], nodes: list[int]) -> dict[str, RunSettings]:
    """Return plain, lookahead chains by k, and eagle3 and confu trees by node count."""
    common = {"model": model, "max_new_tokens": n_tokens, "record": "light", "dtype": "float32"}
    lanes = {"plain": make_settings(method="plain", **common)}
    lanes |= {f"lookahead k={k}": make_settings(method="lookahead", k=k, **common) for k in ks}
    for method in ("eagle3", "confu"):
        lanes |= {f"{method} nodes={t}": make_settings(method=method, nodes=t, **common) for t in nodes}
    return lanes


if __name__ == "__main__":
    main()
