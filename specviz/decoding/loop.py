"""The decoding loop. One turn: propose, build rows, run the target, verify, cut, keep, tell, record, yield.

Cut before commit: the end of an answer acts on the accepted path before the cache, the drafter or
the trace see it. Letters: B sequences, R rows, T nodes, V vocabulary, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import count
from time import perf_counter

import torch
from torch import Tensor

from specviz.decoding.events import Passing
from specviz.decoding.largest import argmaxes
from specviz.decoding.masks import MaskBuilder
from specviz.decoding.rows import Rows, build_rows
from specviz.decoding.sequence import Sequence
from specviz.decoding.turn import PassPart, Turn
from specviz.decoding.verification import verify
from specviz.drafters.base import Drafter, Proposal
from specviz.target.hidden import Hidden
from specviz.target.model import Target
from specviz.trace import StepTimes, StepTrace

HEADROOM = 64  # columns for the rows of the first passes; the cache grows where this is too little


def decode(target: Target, drafter: Drafter, sequences: list[Sequence]) -> Iterator[tuple[Sequence, StepTrace]]:
    """Decode all sequences to their ends, yielding each step of each sequence as it is done."""
    return (told for told in run_turns(target, drafter, sequences) if not isinstance(told, Passing))


def run_turns(
    target: Target, drafter: Drafter, sequences: list[Sequence]
) -> Generator[Passing | tuple[Sequence, StepTrace], None, None]:
    """Decode as `decode` does, and say before each pass of the target that it is about to begin."""
    longest = max(len(sequence.token_ids) for sequence in sequences)
    cache = target.new_cache(len(sequences), longest + HEADROOM, drafter.soft_rows)
    masks = MaskBuilder()
    active = sequences
    for index in count():
        clock = _Stopwatch(target.device)
        proposals = [sequence.session.propose(sequence.token_ids[-1], sequence.max_depth) for sequence in active]
        rows = build_rows(target, masks, cache, active, proposals)
        draft_ms = clock.lap()

        yield Passing()
        clock.lap()  # what the reader did meanwhile is no part of the step
        attention_row = active[0].recorder.choose_attention_row(index, rows.n_rows)
        hidden = target.forward(rows.embeds, rows.positions, rows.mask, cache, drafter.feature_layers, attention_row)
        turns = [
            _judge(target, sequence, _part(index, i, sequence, proposals[i], rows, hidden, cache.n_soft))
            for i, sequence in enumerate(active)
        ]
        verify_ms = clock.lap()

        cache.keep([turn.layout.kept_rows(turn.accepted) for turn in turns])
        for sequence, turn in zip(active, turns, strict=True):
            _commit(sequence, turn)
        times = StepTimes(draft=draft_ms, verify=verify_ms, commit=clock.lap(), record=0.0)

        for sequence, turn in zip(active, turns, strict=True):
            yield sequence, sequence.recorder.record(turn, times)

        going = [i for i, sequence in enumerate(active) if sequence.finish_reason is None]
        if not going:
            return
        if len(going) < len(active):
            cache.select(going)
            active = [active[i] for i in going]


def _part(
    index: int, batch_row: int, sequence: Sequence, proposal: Proposal, rows: Rows, hidden: Hidden, n_soft: int
) -> PassPart:
    """Take one sequence's part out of a pass."""
    layout = rows.layouts[batch_row]
    return PassPart(
        index=index,
        prefix_ids=tuple(sequence.token_ids),
        proposal=proposal,
        layout=layout,
        last=hidden.last[batch_row],
        features=None if hidden.features is None else hidden.features[batch_row],
        mask=hidden.mask[batch_row, 0],
        n_soft=n_soft,
        n_padding=rows.n_rows - layout.n_rows,
        routing=tuple(routing.batch_row(batch_row) for routing in hidden.routing),
        attention=hidden.attention,
        batch_row=batch_row,
    )


def _judge(target: Target, sequence: Sequence, part: PassPart) -> Turn:
    """Let the target choose along the tree, and cut what it chose where the answer ends."""
    logits = target.logits(part.last[part.first_judged : part.layout.n_real])  # (J, V)
    verdict = verify(part.proposal.tree, _chooser(sequence, part, part.of_nodes(logits)))
    unverified = tuple(sequence.session.take_unverified(part.result(verdict.accepted, ())))
    cut = sequence.ending.cut(part.path_ids(verdict, unverified))
    return Turn(**vars(part), logits=logits, verdict=verdict, unverified=unverified, cut=cut)


def _chooser(sequence: Sequence, part: PassPart, node_logits: Tensor) -> Callable[[int], int]:
    """Return the target's choice after each node; greedy choices are made for all nodes at once."""
    sampler, depths, next_position = sequence.sampler, part.proposal.tree.depths, len(part.prefix_ids)
    if sampler.greedy:
        return argmaxes(node_logits).__getitem__
    return lambda node: sampler.choose(node_logits[node], next_position + depths[node])


def _commit(sequence: Sequence, turn: Turn) -> None:
    """Make the turn's tokens the sequence's own, and tell the drafter unless the answer has ended."""
    committed = turn.committed_ids
    sequence.token_ids.extend(committed)
    sequence.n_pending = len(committed) - len(turn.accepted)
    sequence.padding += turn.n_padding
    sequence.finish_reason = turn.cut.finish_reason
    sequence.text_cut = turn.cut.text_cut
    if sequence.finish_reason is None:
        sequence.session.observe(turn.result(turn.accepted, committed))


class _Stopwatch:
    """Laps in milliseconds; waits for the device before it reads the clock."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last = self._now()

    def lap(self) -> float:
        last, self._last = self._last, self._now()
        return 1000 * (self._last - last)

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return perf_counter()
