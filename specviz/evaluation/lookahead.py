"""Lookahead Attention without training: tau and measured speed-up over plain, chain and tree, by k.

`python -m specviz.evaluation.lookahead --questions FILE --out FOLDER` prints the README's table.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from specviz.decoding.engine import Engine
from specviz.evaluation.lanes import pooled, run_lanes, speedup
from specviz.evaluation.questions import load_questions, spread_over_categories
from specviz.settings import RunSettings, make_settings

TREES = ["2x16", "1x60", "2x60", "4x60", "8x60", "16x60"]


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
    engine = Engine([chosen.model], dtype=chosen.dtype)
    questions = spread_over_categories(load_questions(chosen.questions), chosen.n)
    lanes = build_lanes(engine.model_names[0], chosen.tokens, chosen.chains, chosen.trees)
    records = run_lanes(engine, questions, lanes, chosen.out / "lookahead.jsonl")
    info = engine.info(engine.model_names[0])
    print(f"{info.name}, {info.dtype} on {info.device}, {len(questions)} questions, {chosen.tokens} tokens, greedy\n")
    print(table(records, lanes))


def build_lanes(model: str, n_tokens: int, chains: list[int], trees: list[str]) -> dict[str, RunSettings]:
    """Return plain, the seed's chain for each k, and a tree for each `KxROWS`."""
    common: dict[str, Any] = {"model": model, "max_new_tokens": n_tokens, "record": "light"}
    lanes = {"plain": make_settings(method="plain", **common)}
    for k in chains:
        lanes[f"chain k={k}"] = make_settings(method="lookahead", k=k, candidates=1, **common)
    for shape in trees:
        k, n_rows = (int(number) for number in shape.split("x"))
        lanes[f"tree k={k} rows={n_rows}"] = make_settings(method="lookahead", k=k, rows=n_rows, **common)
    return lanes


def table(records: list[dict[str, Any]], lanes: dict[str, RunSettings]) -> str:
    """Return the lanes as a Markdown table."""
    lines = [
        "| lane | tau | without bonus | accepted | rows a pass | draft ms | verify ms | tokens/s | speed-up |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for lane in lanes:
        m = pooled(r for r in records if r["lane"] == lane)
        rate = f"{100 * m['acceptance_rate']:.1f} %" if lane.startswith("chain") else ""
        lines.append(
            f"| {lane} | {m['tau']:.2f} | {m['tau_draft']:.2f} | {rate} | {m['rows']:.1f} | {m['draft_ms']:.1f} "
            f"| {m['verify_ms']:.1f} | {m['tokens_per_second']:.1f} | {speedup(records, lane):.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
