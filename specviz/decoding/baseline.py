"""The plain lane beside a run: same prompt, same process, one after the other, warmed up."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import torch
from torch import Tensor

from specviz.decoding.events import Passing
from specviz.decoding.layout import RowLayout
from specviz.decoding.limits import Ending
from specviz.decoding.loop import run_turns
from specviz.decoding.masks import MaskBuilder
from specviz.decoding.record import StepRecorder
from specviz.decoding.sampling import Sampler
from specviz.decoding.sequence import Sequence
from specviz.drafters.base import Drafter
from specviz.drafters.plain import PlainDrafter
from specviz.metrics import complete_run, step_ms
from specviz.target.model import Target
from specviz.text import piece_of
from specviz.trace import BaselineTrace, DivergenceTrace, RunTrace

WARM_UP_STEPS = 3


def warm_up(target: Target, drafter: Drafter, prompt_ids: list[int]) -> Iterator[Passing]:
    """Run a few steps of the drafter and of plain decoding, whose time nobody counts; tell each pass before it."""
    for lane in (PlainDrafter(), drafter):
        sequence = Sequence(
            row=0,
            token_ids=list(prompt_ids),
            session=lane.begin(prompt_ids),
            sampler=Sampler(),
            ending=Ending(target.tokenizer, frozenset(), (), WARM_UP_STEPS * 64, target.n_positions - len(prompt_ids)),
            recorder=StepRecorder(target, Sampler(), full=False, plain=True),
        )
        n_steps = 0
        with closing(run_turns(target, lane, [sequence])) as turns:
            for told in turns:
                if isinstance(told, Passing):
                    yield told
                elif (n_steps := n_steps + 1) == WARM_UP_STEPS:
                    break


def attach_baseline(target: Target, sequence: Sequence, run: RunTrace) -> Generator[Passing, None, RunTrace]:
    """Decode `sequence` plainly and return `run` with the comparison and its measured speed-up.

    Each pass is told before it begins.
    """
    steps = []
    for told in run_turns(target, PlainDrafter(), [sequence]):
        if isinstance(told, Passing):
            yield told
        else:
            steps.append(told[1])
    tokens = [token for step in steps for token in step.committed]
    plain_ids = [token.token_id for token in tokens]
    own_ids = [token.token_id for token in run.answer]
    n_equal = count_equal(own_ids, plain_ids)
    equal = own_ids == plain_ids
    joined = "".join(token.piece for token in tokens)
    baseline = BaselineTrace(
        token_ids=plain_ids,
        pieces=[token.piece for token in tokens],
        text=joined[: len(joined) - sequence.text_cut],
        seconds=sum(step_ms(step) for step in steps) / 1000,
        times_ms=[step_ms(step) for step in steps],
        equal=equal,
        n_equal=n_equal,
        divergence=None if equal else _divergence(target, run, plain_ids, n_equal),
    )
    return complete_run(run, run.steps, run.finish_reason, run.text_cut, baseline=baseline)


def count_equal(own: list[int], other: list[int]) -> int:
    """Return how many leading tokens two answers share."""
    for place, (left, right) in enumerate(zip(own, other, strict=False)):
        if left != right:
            return place
    return min(len(own), len(other))


def next_logits(target: Target, token_ids: list[int]) -> Tensor:
    """Return the logits (V,) after `token_ids`, teacher-forced in one pass."""
    layout = RowLayout((-1,), n_pending=len(token_ids))
    cache = target.new_cache(1, len(token_ids))
    mask = MaskBuilder().build([layout], cache, target.device)
    positions = torch.tensor([layout.positions(0)], device=target.device)
    return target.logits(target.forward(target.embed([token_ids]), positions, mask, cache).last[0, -1])


def _divergence(target: Target, run: RunTrace, plain_ids: list[int], place: int) -> DivergenceTrace:
    """Describe the first place where a run left the plain lane, with the gap of the two best logits there."""
    answer = run.answer
    prompt_ids = [token.token_id for token in run.prompt]
    logits = next_logits(target, prompt_ids + plain_ids[:place])
    best = logits.topk(2).values
    own = answer[place] if place < len(answer) else None
    expected = plain_ids[place] if place < len(plain_ids) else None
    return DivergenceTrace(
        index=place,
        step=None if own is None else own.step,
        token_id=None if own is None else own.token_id,
        piece="" if own is None else own.piece,
        expected_id=expected,
        expected_piece="" if expected is None else piece_of(target.tokenizer, expected),
        gap=float(best[0] - best[1]),
        prob=None if own is None else float(logits.softmax(dim=-1)[own.token_id]),
    )
