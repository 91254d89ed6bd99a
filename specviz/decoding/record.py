"""What a pass was, as a StepTrace. Nothing here decides anything; it only writes down.

Letters: T nodes, V vocabulary.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from specviz.decoding.largest import argmaxes
from specviz.decoding.record_full import fill_full_record, target_routing
from specviz.decoding.record_mask import record_mask
from specviz.decoding.sampling import Sampler
from specviz.decoding.statuses import node_statuses
from specviz.decoding.tree import DraftTree
from specviz.decoding.turn import Turn
from specviz.target.model import Target
from specviz.text import TextCodec, partial_bytes, piece_of
from specviz.trace import KvTrace, LateVerdict, NodeTrace, Source, StepTimes, StepTrace, TokenTrace


class StepRecorder:
    """Writes the steps of one sequence.

    `plain` names the target itself as the source of every token; `attention_row` is a row of each pass whose
    attention weights a full record holds; `routing` adds to a light record what the target's own experts decided.
    """

    def __init__(
        self,
        target: Target,
        sampler: Sampler,
        full: bool,
        plain: bool,
        attention_row: int | None = None,
        routing: bool = False,
    ) -> None:
        self._target = target
        self._codec: TextCodec = target.tokenizer
        self._sampler = sampler
        self._full = full
        self._plain = plain
        self._routing = routing
        self._attention_row = attention_row

    def choose_attention_row(self, index: int, n_rows: int) -> int | None:
        """Return the row of a pass whose attention is to be recorded: the wanted one, or the last; None for none."""
        if self._attention_row is None or not self._full or index == 0:
            return None
        return min(self._attention_row, n_rows - 1)

    def record(self, turn: Turn, times: StepTimes) -> StepTrace:
        """Return the step of a pass; the milliseconds of recording are added to `times`."""
        started = perf_counter()
        step = self._light_record(turn, times)
        if self._full and turn.index > 0:
            fill_full_record(step, turn, self._target, self._sampler)
        elif self._routing and turn.index > 0:
            step.routing.extend(target_routing(turn, [0, *turn.accepted]))
        step.times_ms = times.model_copy(update={"record": 1000 * (perf_counter() - started)})
        return step

    def _light_record(self, turn: Turn, times: StepTimes) -> StepTrace:
        nodes = self._slot_nodes(turn) if turn.unverified else self._tree_nodes(turn)
        return StepTrace(
            index=turn.index,
            prefix_len=len(turn.prefix_ids),
            nodes=nodes,
            accepted=list(turn.accepted),
            committed=self._tokens(turn),
            mask=record_mask(turn, self._target, self._full),
            routing=list(turn.proposal.evidence.routing),
            n_rows=turn.layout.n_rows,
            kv=KvTrace(
                prefix=turn.n_cached,
                speculative=turn.layout.n_rows,
                kept=len(turn.layout.kept_rows(turn.accepted)),
                added=turn.layout.n_added,
            ),
            times_ms=times,
            late=late_verdicts(turn, self._sampler, self._codec),
        )

    def _tree_nodes(self, turn: Turn) -> list[NodeTrace]:
        tree = turn.proposal.tree
        statuses = node_statuses(tree, turn.verdict, turn.cut.n_tokens)
        judged = target_view(tree, turn.node_logits, self._sampler)
        nodes = [self._root(turn)]
        for node in range(1, len(tree)):
            prob, rank, argmax = judged[node - 1]
            nodes.append(
                NodeTrace(
                    idx=node,
                    parent=tree.parents[node],
                    depth=tree.depths[node],
                    token_id=tree.token_ids[node],
                    piece=piece_of(self._codec, tree.token_ids[node]),
                    bytes=partial_bytes(self._codec, tree.token_ids[node]),
                    draft_prob=tree.draft_probs[node],
                    target_prob=prob,
                    target_rank=rank,
                    target_argmax=argmax,
                    score=tree.scores[node],
                    status=statuses[node],
                )
            )
        return nodes

    def _slot_nodes(self, turn: Turn) -> list[NodeTrace]:
        """Return a chain of what the slots gave: their tokens follow the target's own, so depth i is slot i."""
        nodes = [self._root(turn)]
        for slot, token in enumerate(turn.unverified, start=1):
            nodes.append(
                NodeTrace(
                    idx=slot,
                    parent=slot - 1,
                    depth=slot,
                    token_id=token.token_id,
                    piece=piece_of(self._codec, token.token_id),
                    bytes=partial_bytes(self._codec, token.token_id),
                    draft_prob=token.prob,
                    status="unverified" if slot < turn.cut.n_tokens else "cut",
                )
            )
        return nodes

    def _root(self, turn: Turn) -> NodeTrace:
        token_id = turn.prefix_ids[-1]
        return NodeTrace(
            idx=0,
            parent=-1,
            depth=0,
            token_id=token_id,
            piece=piece_of(self._codec, token_id),
            bytes=partial_bytes(self._codec, token_id),
            score=0.0,
            status="root",
        )

    def _tokens(self, turn: Turn) -> list[TokenTrace]:
        tokens = []
        for place, (token_id, piece) in enumerate(zip(turn.committed_ids, turn.cut.pieces, strict=True)):
            source, node = self._origin(turn, place)
            tokens.append(
                TokenTrace(
                    token_id=token_id,
                    piece=piece,
                    bytes=partial_bytes(self._codec, token_id),
                    source=source,
                    step=turn.index,
                    node=node,
                )
            )
        return tokens

    def _origin(self, turn: Turn, place: int) -> tuple[Source, int | None]:
        """Return source and node of the step's token at `place`."""
        n_accepted = len(turn.verdict.accepted)
        if place < n_accepted:
            return "draft", turn.verdict.accepted[place]
        if place == n_accepted:
            return self._extra_source(turn), None
        return "unverified", place - n_accepted

    def _extra_source(self, turn: Turn) -> Source:
        if self._plain or turn.index == 0:
            return "target"
        return "correction" if turn.verdict.is_correction else "bonus"


def target_view(tree: DraftTree, logits: Tensor, sampler: Sampler) -> list[tuple[float, int, int]]:
    """Return (probability, rank, argmax) of every node but the root, by the target at its parent.

    `logits` is (T, V). Only nodes with children are turned into distributions.
    """
    if len(tree) == 1:
        return []
    inner = torch.tensor(tree.inner_nodes, device=logits.device)
    place = {node: i for i, node in enumerate(tree.inner_nodes)}
    rows = logits[inner]  # (I, V)
    parents = torch.tensor([place[parent] for parent in tree.parents[1:]], device=logits.device)
    token_ids = torch.tensor(tree.token_ids[1:], device=logits.device)
    probs = sampler.probabilities(rows)[parents, token_ids]
    ranks = ranks_of(rows, parents, token_ids)
    best = argmaxes(rows)
    return [
        (prob, rank, best[parent]) for prob, rank, parent in zip(probs.tolist(), ranks, parents.tolist(), strict=True)
    ]


def ranks_of(rows: Tensor, row_of: Tensor, token_ids: Tensor) -> list[int]:
    """Return how many tokens stand before each of `token_ids` (N,) in `rows[row_of]` (N, V).

    Of equal logits the lower id stands first, as in the argmax.
    """
    if rows.device.type == "cpu":
        return _count_before_one_by_one(rows.numpy(), row_of.tolist(), token_ids.tolist())
    return _count_before_at_once(rows, row_of, token_ids).tolist()


def _count_before_one_by_one(rows: np.ndarray, row_of: list[int], token_ids: list[int]) -> list[int]:
    """Count row by row: a row stays in the CPU's cache, the (N, V) of all comparisons does not."""
    ranks = []
    for row, token_id in zip(row_of, token_ids, strict=True):
        values = rows[row]  # (V,)
        own = values[token_id]
        ranks.append(np.count_nonzero(values[:token_id] >= own) + np.count_nonzero(values[token_id:] > own))
    return ranks


def _count_before_at_once(rows: Tensor, row_of: Tensor, token_ids: Tensor) -> Tensor:
    """Count all (N,) in a few launches, which is what a GPU waits for."""
    own = rows[row_of, token_ids][:, None]  # (N, 1)
    values = rows[row_of]  # (N, V)
    before = torch.arange(rows.shape[-1], device=rows.device) < token_ids[:, None]
    above = (values > own) | ((values == own) & before)
    return above.sum(dim=-1)


def late_verdicts(turn: Turn, sampler: Sampler, codec: TextCodec) -> list[LateVerdict]:
    """Return what this pass says of the unverified tokens that the last one committed.

    They are this pass's committed rows behind the first: row i - 1 predicts the token of row i.
    """
    n_late = turn.layout.n_pending - 1
    if turn.index == 0 or n_late == 0:
        return []
    rows = turn.logits[:n_late]  # (L, V)
    best = rows.topk(2, dim=-1).values
    gaps = (best[:, 0] - best[:, 1]).tolist()
    chain = DraftTree((0, *turn.prefix_ids[-n_late:]), tuple(range(-1, n_late)))
    return [
        LateVerdict(
            step=turn.index - 1,
            node=node,
            target_prob=prob,
            target_rank=rank,
            target_argmax=argmax,
            argmax_piece=piece_of(codec, argmax),
            gap=gaps[node - 1],
        )
        for node, (prob, rank, argmax) in enumerate(target_view(chain, turn.logits[: n_late + 1], sampler), start=1)
    ]
