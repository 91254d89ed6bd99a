"""How far 16-bit rounding moves the gap of the target's two best logits, by how many rows a pass has.

`python -m specviz.evaluation.rounding --questions FILE` decodes plainly, reads the answers again in passes of several
sizes, and compares each with the same weights in float32. Where answers of two methods part, a gap up to what rounding
moves is no evidence of a fault: this prints how much that is.

Letters: P prompt tokens, N answer tokens, V vocabulary.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from tqdm import tqdm

from specviz.analysis.losslessness import NEAR_TIE
from specviz.decoding.engine import Engine
from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.errors import exit_status
from specviz.evaluation.questions import load_questions, spread_over_categories
from specviz.settings import RunSettings, make_settings
from specviz.target.model import Target
from specviz.trace import RunTrace

ROW_COUNTS = (1, 8, 16, 30, 60)


@dataclass(frozen=True)
class Answer:
    """A plain greedy answer: ids of its prompt (P,) and of itself (N,)."""

    prompt_ids: list[int]
    answer_ids: list[int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--n", type=int, default=26)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--dtype", default="bfloat16")
    chosen = parser.parse_args()
    questions = spread_over_categories(load_questions(chosen.questions), chosen.n)
    engine = Engine([chosen.model], dtype=chosen.dtype)
    (name,) = engine.model_names
    settings = make_settings(method="plain", model=name, max_new_tokens=chosen.tokens, record="light")
    answers = [
        decode_plainly(engine, question.prompt, settings)
        for question in tqdm(questions, desc="decoding", unit="answer")
    ]
    print(measure(engine.target(name), engine.target(name, dtype="float32"), answers))


def decode_plainly(engine: Engine, prompt: str, settings: RunSettings) -> Answer:
    """Return the plain answer to a prompt."""
    run = engine.run(prompt, settings)
    assert isinstance(run, RunTrace), "one prompt gives one run"
    return Answer([token.token_id for token in run.prompt], [token.token_id for token in run.answer])


def measure(rounded: Target, exact: Target, answers: Sequence[Answer], row_counts: Sequence[int] = ROW_COUNTS) -> str:
    """Return a line for each number of rows a pass: how `rounded` differs from the same model in float32."""
    truth = torch.cat([teacher_forced(exact, answer, len(answer.answer_ids)) for answer in answers])
    lines = [f"{rounded.info.name}, {rounded.info.dtype} against float32 on {rounded.info.device}"]
    for n_rows in tqdm(row_counts, desc="reading again", unit="size"):
        read = torch.cat([teacher_forced(rounded, answer, n_rows) for answer in answers])
        lines.append(f"{n_rows:3} rows a pass: {_describe(read, truth)}")
    return "\n".join(lines)


def _describe(read: Tensor, truth: Tensor) -> str:
    """Say how logits (N, V) differ from the true ones (N, V)."""
    moved = (gaps(read, truth) - gaps(truth, truth)).abs()
    turned = gaps(read, read)[read.argmax(-1) != truth.argmax(-1)]
    return (
        f"the gap moves by {moved.mean():.3f} on average and {moved.max():.3f} at most; another token is best at "
        f"{len(turned)} of {len(read)} places, the widest gap there {max(turned.tolist(), default=0.0):.3f}, "
        f"more than {NEAR_TIE} at {int((turned > NEAR_TIE).sum())}"
    )


def gaps(logits: Tensor, truth: Tensor) -> Tensor:
    """Return by how much `logits` (N, V) favour the best over the second best token of `truth` (N, V), (N,)."""
    best = logits.gather(-1, truth.topk(2, dim=-1).indices)  # (N, 2)
    return best[:, 0] - best[:, 1]


def teacher_forced(target: Target, answer: Answer, n_rows: int) -> Tensor:
    """Return the logits (N, V) that choose an answer's tokens, reading it `n_rows` at a time behind its prompt."""
    ids = [*answer.prompt_ids, *answer.answer_ids[:-1]]
    n_prompt = len(answer.prompt_ids)
    cache, masks = target.new_cache(1, len(ids)), MaskBuilder()
    sizes = [n_prompt, *(min(n_rows, len(ids) - start) for start in range(n_prompt, len(ids), n_rows))]
    logits = []
    for size in sizes:
        start, layout = cache.lengths[0], RowLayout((-1,), n_pending=size)
        positions = torch.tensor([layout.positions(start)], device=target.device)
        mask = masks.build([layout], cache, target.device)
        hidden = target.forward(target.embed([ids[start : start + size]]), positions, mask, cache)
        logits.append(target.logits(hidden.last[0] if start else hidden.last[0, -1:]).cpu())
        cache.keep([range(size)])
    return torch.cat(logits)


if __name__ == "__main__":
    sys.exit(exit_status(main))
