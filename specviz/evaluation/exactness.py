"""Is an answer the plain lane's? In float32 the same tokens; elsewhere a near-tie of the target's is told apart."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.analysis.losslessness import NEAR_TIE
from specviz.decoding.baseline import count_equal, next_logits
from specviz.evaluation.records import Exactness
from specviz.target.model import Target


def judge_answer(
    target: Target, prompt_ids: Sequence[int], own: Sequence[int], plain: Sequence[int], greedy: bool = True
) -> Exactness:
    """Compare an answer's ids with plain decoding's.

    The gap is taken teacher-forced where the two part; a sampled choice has none, so any difference is a departure.
    """
    if tuple(own) == tuple(plain):
        return Exactness(verdict="equal")
    index = count_equal(list(own), list(plain))
    if not greedy:
        return Exactness(verdict="departed", index=index)
    best = next_logits(target, [*prompt_ids, *plain[:index]]).topk(2).values
    gap = float(best[0] - best[1])
    near = target.info.dtype != "float32" and gap <= NEAR_TIE
    return Exactness(verdict="near_tie" if near else "departed", index=index, gap=gap)
