"""Which answers a step learns from: a pure function of the seed and the step, so that a run can be resumed anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import torch

from specviz.training.corpus import Answer

HELD_OUT_SHARE = 32  # one prompt of so many is never trained on
SHORTEST = 4  # tokens of an answer; the last of a shorter one has no row to be predicted from


def is_held_out(prompt: str) -> bool:
    """Say whether a prompt is kept for measuring: by its text alone, so that a growing corpus moves none."""
    return int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big") % HELD_OUT_SHARE == 0


def split_corpus(answers: Sequence[Answer], n_held_out: int) -> tuple[list[Answer], list[Answer]]:
    """Return (answers to train on, greedy answers to measure on, at most `n_held_out`)."""
    usable = [answer for answer in answers if len(answer.answer_ids) >= SHORTEST]
    trained = [answer for answer in usable if not is_held_out(answer.prompt)]
    measured = {a.prompt: a for a in usable if is_held_out(a.prompt) and a.temperature == 0}
    return trained, list(measured.values())[:n_held_out]


def plan_batches(lengths: Sequence[int], batch_tokens: int, seed: int, skip: int = 0) -> Iterator[list[int]]:
    """Yield without end the indices of each step's answers, epoch after epoch, from batch `skip` on.

    A batch is filled in the shuffled order until it holds `batch_tokens` answer tokens; the last of an
    epoch may hold fewer.
    """
    epoch = 0
    while True:
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        for batch in _cut(torch.randperm(len(lengths), generator=generator).tolist(), lengths, batch_tokens):
            if skip:
                skip -= 1
            else:
                yield batch
        epoch += 1


def _cut(order: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    batch: list[int] = []
    n_tokens = 0
    for index in order:
        batch.append(index)
        n_tokens += lengths[index]
        if n_tokens >= batch_tokens:
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch
