"""What a drafting round costs, level by level, and each level's share of a step.

A round of d levels is timed for every d in turns: the first level is the root's pass, and each further
one is what a round costs more with it. The step is the round, its tree and the verification of that tree.

Letters: H hidden, F width of the target's features.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from specviz.decoding.engine import Engine
from specviz.decoding.layout import RowLayout
from specviz.drafters.base import PassResult
from specviz.drafters.build import build_drafter, default_settings
from specviz.drafters.confu import ConfuDrafter
from specviz.drafters.eagle3 import Eagle3Drafter, HeadRun
from specviz.evaluation.timing import median_times
from specviz.evaluation.verification_cost import PREFIX, contemplate_cost, verification_pass
from specviz.settings import make_settings

METHODS = ("eagle3", "confu")


def draft_cost(engine: Engine, model: str) -> str:
    """Return the milliseconds of the root's pass and of each draft level, and ConFu's verifications."""
    target = engine.target(model)
    lines = []
    for method in METHODS:
        drafter = _build(engine, method, model)
        lines.append(_levels(drafter, method))
        if isinstance(drafter, ConfuDrafter):
            lines.append(contemplate_cost(target, drafter))
    return "\n".join(lines)


def _build(engine: Engine, method: str, model: str) -> Eagle3Drafter:
    target = engine.target(model)
    asked = make_settings(method=method, model=model)
    checkpoint = engine.find_checkpoint(asked, target)
    drafter = build_drafter(target, asked.resolved(default_settings(asked, checkpoint)), checkpoint)
    assert isinstance(drafter, Eagle3Drafter), "both methods draft with a head"
    return drafter


def _levels(drafter: Eagle3Drafter, method: str) -> str:
    shape, contemplates = drafter.shape, isinstance(drafter, ConfuDrafter)
    run = _prepared_run(drafter)
    rounds = [_round(drafter, run, depth) for depth in range(1, shape.depth + 1)]
    *drafted, verified = median_times([*rounds, verification_pass(drafter.target, drafter, shape.nodes, contemplates)])
    levels = [drafted[0], *(later - earlier for earlier, later in pairwise(drafted))]
    step = drafted[-1] + verified
    listed = ", ".join(f"{ms:.1f} ({100 * ms / step:.0f} %)" for ms in levels[1:])
    return (
        f"draft of {method}, {shape.nodes} nodes, {shape.top_k} a level: root's pass {levels[0]:.1f} ms "
        f"({100 * levels[0] / step:.0f} % of a step), further levels {listed}; "
        f"in all {drafted[-1]:.1f} of {step:.1f} ms"
    )


@torch.inference_mode()
def _prepared_run(drafter: Eagle3Drafter) -> HeadRun:
    """Return a head that has read a prefix of made-up tokens; the future token, if any, is in its column."""
    target, ids = drafter.target, list(range(100, 100 + PREFIX))
    run = HeadRun(drafter, ids)
    layout = RowLayout((-1,), n_pending=PREFIX)
    features = torch.zeros(PREFIX, drafter.head.config.feature_size, device=target.device, dtype=target.dtype)
    run.observe(PassResult(layout, features, features, (), (100,)))  # (N, F)
    run.absorb(drafter.shape.depth)
    run.write_future(run.last_state[None], run.last_state[None])  # (1, H)
    return run


def _round(drafter: Eagle3Drafter, run: HeadRun, depth: int) -> Callable[[], Any]:
    gate = drafter.parts.f_gate.float() if isinstance(drafter, ConfuDrafter) else None

    @torch.inference_mode()
    def draft() -> None:
        run.draft(depth, gate).tree(100)

    return draft
