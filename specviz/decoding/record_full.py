"""The part of the record that only the level `full` holds: what draft and target said at reached nodes,
why the target's token was not in the tree, and what was drafted but not sent.

Letters: R rows, V vocabulary, G contemplate rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from specviz.decoding.largest import largest
from specviz.decoding.record_attention import record_attention
from specviz.decoding.record_shadow import shadow_nodes
from specviz.decoding.sampling import Sampler
from specviz.decoding.turn import Turn
from specviz.target.model import Target
from specviz.text import TextCodec, piece_of
from specviz.trace import (
    N_CANDIDATES,
    CandidateTrace,
    MissReason,
    MissTrace,
    NextTrace,
    RoutingTrace,
    StepTrace,
    TopToken,
)


def fill_full_record(step: StepTrace, turn: Turn, target: Target, sampler: Sampler) -> None:
    """Add the full level's fields to a step after the prefill."""
    codec: TextCodec = target.tokenizer
    step.candidates = _unsent(turn, codec)
    reached = [0, *turn.accepted]
    distributions = sampler.probabilities(turn.node_logits[torch.tensor(reached, device=turn.logits.device)])
    for node, distribution, top5 in zip(reached, distributions, top_tokens(distributions, codec), strict=True):
        step.nodes[node].next = _next(turn.proposal.evidence.log_probs.get(node), distribution, top5, codec)
    last = turn.verdict.last_node
    extra_committed = turn.cut.n_tokens > len(turn.verdict.accepted)
    if extra_committed and not turn.unverified and turn.proposal.evidence.log_probs:
        step.nodes[last].miss = _miss(turn, last)
    step.routing.extend(target_routing(turn, reached))
    step.attention = record_attention(turn)
    if turn.proposal.evidence.shadow is not None:
        step.shadow = shadow_nodes(turn, turn.proposal.evidence.shadow(), codec)
    if turn.layout.kind == "contemplate":
        rows = turn.last[turn.layout.n_real : turn.layout.n_rows]
        _fill_contemplate(step, target.logits(rows), turn, codec)


def top_tokens(probabilities: Tensor, codec: TextCodec, n: int = 5) -> list[list[TopToken]]:
    """Return the most probable tokens of distributions (R, V); tokens without probability are left out."""
    best = largest(probabilities, n)
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [_listed(token_ids, probs, codec) for token_ids, probs in rows]


def _listed(token_ids: list[int], probs: list[float], codec: TextCodec) -> list[TopToken]:
    pairs = zip(token_ids, probs, strict=True)
    return [TopToken(token_id=i, piece=piece_of(codec, i), prob=prob) for i, prob in pairs if prob > 0]


def divergence(target: Tensor, draft_log_probs: Tensor) -> tuple[float, float]:
    """Return (KL(target || draft) in nats, the target's mass outside the draft vocabulary).

    Both distributions (V,); the target is renormalised over the tokens that the draft can say.
    """
    sayable = draft_log_probs.isfinite()
    inside, log_q = target, draft_log_probs
    if not bool(sayable.all()):
        inside, log_q = target[sayable], draft_log_probs[sayable]  # a draft vocabulary is a part of the target's
    mass = inside.sum()
    if mass <= 0:
        return 0.0, 1.0
    p = inside / mass
    kl = (torch.special.xlogy(p, p) - p * log_q).sum()
    return max(0.0, float(kl)), max(0.0, 1.0 - float(mass))


def _next(draft_log_probs: Tensor | None, target: Tensor, target_top5: list[TopToken], codec: TextCodec) -> NextTrace:
    if draft_log_probs is None:
        return NextTrace(target_top5=target_top5)
    kl, outside = divergence(target, draft_log_probs.to(target.device))
    best = largest(draft_log_probs[None], 5)
    return NextTrace(
        draft_top5=_listed(best.indices[0].tolist(), best.values[0].exp().tolist(), codec),
        target_top5=target_top5,
        kl=kl,
        outside_mass=outside,
    )


def _miss(turn: Turn, node: int) -> MissTrace:
    """Say why the extra token was not among the children of the last reached node."""
    token_id = turn.verdict.extra_id
    evidence = turn.proposal.evidence
    log_probs = evidence.log_probs.get(node)
    if log_probs is None:
        beam_ended = evidence.depth_limit is not None and turn.proposal.tree.depths[node] < evidence.depth_limit
        return MissTrace(token_id=token_id, reason="pruned" if beam_ended else "depth_limit")
    if not bool(log_probs[token_id].isfinite()):
        return MissTrace(token_id=token_id, reason="out_of_draft_vocab")
    own = log_probs[token_id]
    rank = int((log_probs > own).count_nonzero() + (log_probs[:token_id] == own).count_nonzero())
    drafted = any(token.parent == node and token.token_id == token_id for token in evidence.unsent)
    reason: MissReason = "pruned" if drafted else "below_top_k"
    return MissTrace(token_id=token_id, reason=reason, draft_rank=rank, draft_prob=float(own.exp()))


def _unsent(turn: Turn, codec: TextCodec) -> list[CandidateTrace]:
    """List the best unsent drafts; a parent scores no less than its children, so it is listed before them."""
    unsent = turn.proposal.evidence.unsent
    best = sorted(range(len(unsent)), key=lambda place: -unsent[place].score)[:N_CANDIDATES]
    listed = {place: i for i, place in enumerate(best)}
    return [
        CandidateTrace(
            parent=token.parent,
            behind=None if token.behind is None else listed.get(token.behind),
            depth=token.depth,
            token_id=token.token_id,
            piece=piece_of(codec, token.token_id),
            draft_prob=token.draft_prob,
            score=token.score,
        )
        for token in map(unsent.__getitem__, best)
    ]


def target_routing(turn: Turn, reached: list[int]) -> list[RoutingTrace]:
    """Return what the target's own routers decided at the reached nodes, layer by layer."""
    traces = []
    for routing in turn.routing:
        rows = [turn.layout.node_row(node) for node in reached]
        columns = (routing.logits[rows].float().softmax(dim=-1), routing.selected[rows], routing.weights[rows])
        for node, *values in zip(reached, *(column.tolist() for column in columns), strict=True):
            probabilities, selected, weights = values
            traces.append(
                RoutingTrace(
                    site=f"target.{routing.layer}",
                    node=node,
                    probabilities=probabilities,
                    selected=selected,
                    weights=weights,
                )
            )
    return traces


def _fill_contemplate(step: StepTrace, logits: Tensor, turn: Turn, codec: TextCodec) -> None:
    """Write what each contemplate row would say through the target's head, (G, V), as BiTA would emit it."""
    for node, top5 in zip(turn.layout.groups, top_tokens(logits.softmax(dim=-1), codec), strict=True):
        step.nodes[node].contemplate_top5 = top5
