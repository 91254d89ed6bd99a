"""Does lookahead move the perplexity? Not as it runs; as the seed prints its mask, rows as queries, it would.

`python -m specviz.evaluation.perplexity --questions FILE` prints, for each mask, the perplexity of the prompts' own
text under it and the largest change of a logit, in float32, and the cache rows of the slots in percent.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.decoding.engine import Engine
from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import pass_block
from specviz.errors import exit_status
from specviz.evaluation.questions import load_questions, spread_over_categories
from specviz.target.model import Target

MAX_TOKENS = 192
BuildMask = Callable[[int, int], Tensor]


def as_it_runs(n: int, k: int) -> Tensor:
    """Return [[causal, 0], [1, diag]] (N + K, N + K): what this product runs."""
    return pass_block(RowLayout((-1,), n_pending=n, k=k, causal_slots=False))


def as_drawn(n: int, k: int) -> Tensor:
    """Return the seed's drawing (section 2.1) read with rows as queries: [[identity, 1], [0, identity]]."""
    mask = torch.eye(n + k, dtype=torch.bool)
    mask[:n, n:] = True
    return mask


def as_in_the_formula(n: int, k: int) -> Tensor:
    """Return the seed's formula (section 3.1) read with rows as queries: [[causal, 1], [0, diag]]."""
    mask = as_drawn(n, k)
    mask[:n, :n] = torch.ones(n, n, dtype=torch.bool).tril()
    return mask


@dataclass
class Score:
    """Summed negative log-likelihood, tokens, and the largest change of a logit against plain."""

    nll: float = 0.0
    n_tokens: int = 0
    change: float = 0.0

    @property
    def perplexity(self) -> float:
        return math.exp(self.nll / self.n_tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--n", type=int, default=26)
    parser.add_argument("--k", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--model", default="bundled")
    chosen = parser.parse_args()
    questions = spread_over_categories(load_questions(chosen.questions), chosen.n)
    engine = Engine([chosen.model], dtype="float32")
    target = engine.target(engine.model_names[0])
    texts = [target.tokenizer.encode_chat(question.prompt)[:MAX_TOKENS] for question in questions]
    plain = measure(target, texts, 0, as_it_runs)
    print(f"{len(texts)} prompts, {plain.n_tokens} predicted tokens, {target.info.dtype}")
    print(f"plain causal mask:                        perplexity {plain.perplexity:10.4f}")
    for k in chosen.k:
        for name, build in (("as it runs", as_it_runs), ("the formula", as_in_the_formula), ("the drawing", as_drawn)):
            score = measure(target, texts, k, build)
            print(
                f"k = {k}, {name:12} rows as queries:    perplexity {score.perplexity:10.4f}, "
                f"largest change of a logit {score.change:.2g}"
            )
        share = 100 * k * len(texts) / sum(map(len, texts))
        print(f"k = {k}: slots hold {share:.1f} % of the prefix's cache rows in a pass, none after it")


def measure(target: Target, texts: list[list[int]], k: int, build: BuildMask) -> Score:
    """Score the texts (token ids) with k slots behind each text's end, under a mask."""
    score = Score()
    for token_ids in texts:
        logits = real_logits(target, token_ids, k, build)
        log_probs = logits[:-1].log_softmax(dim=-1)
        following = torch.tensor(token_ids[1:], device=logits.device)
        score.nll -= float(log_probs.gather(1, following[:, None]).sum())
        score.n_tokens += len(following)
        score.change = max(score.change, float((logits - real_logits(target, token_ids, 0, as_it_runs)).abs().max()))
    return score


def real_logits(target: Target, token_ids: list[int], k: int, build: BuildMask) -> Tensor:
    """Return the logits (N, V) of the original rows."""
    n = len(token_ids)
    embeds = target.embed(token_ids)
    slots = embeds.mean(dim=0).expand(k, -1)
    positions = torch.arange(n + k, device=target.device)[None]
    mask = build(n, k).to(target.device)[None, None]
    hidden = target.forward(torch.cat([embeds, slots])[None], positions, mask, target.new_cache(1, n + k))
    return target.logits(hidden.last[0, :n])


if __name__ == "__main__":
    sys.exit(exit_status(main))
