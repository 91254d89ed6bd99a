"""Steps and runs written by hand, for the tests of the analyses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.trace import (
    KvTrace,
    MaskRule,
    MaskTrace,
    ModelInfo,
    NodeTrace,
    RunTrace,
    StepTimes,
    StepTrace,
    TokenTrace,
)


def make_token(piece: str, source: str, token_id: int = 50, **fields: Any) -> TokenTrace:
    return TokenTrace(**({"token_id": token_id, "piece": piece, "source": source, "step": 1} | fields))


def make_node(idx: int, parent: int, depth: int, status: str, token_id: int = -1, **fields: Any) -> NodeTrace:
    token_id = 100 + idx if token_id < 0 else token_id
    return NodeTrace(
        idx=idx, parent=parent, depth=depth, token_id=token_id, piece=f" {token_id}", status=status, **fields
    )


def make_step(
    committed: Sequence[TokenTrace] = (),
    nodes: Sequence[NodeTrace] | None = None,
    accepted: Sequence[int] | None = None,
    index: int = 1,
    **fields: Any,
) -> StepTrace:
    nodes = [make_node(0, -1, 0, "root")] if nodes is None else list(nodes)
    if accepted is None:
        accepted = [node.idx for node in nodes if node.status == "accepted"]
    values: dict[str, Any] = {
        "prefix_len": 5,
        "mask": MaskTrace(rule=MaskRule(name="tree", prefix=4, parents=[node.parent for node in nodes])),
        "n_rows": len(nodes),
        "kv": KvTrace(prefix=4, speculative=len(nodes), kept=1 + len(accepted)),
        "times_ms": StepTimes(draft=2, verify=20, commit=1, record=3),
    }
    return StepTrace(index=index, nodes=nodes, accepted=list(accepted), committed=list(committed), **(values | fields))


def make_run(steps: Sequence[StepTrace], method: str = "eagle3", **fields: Any) -> RunTrace:
    values: dict[str, Any] = {
        "run_id": "r",
        "created": "2026-01-01T00:00:00Z",
        "exact": True,
        "settings": {},
        "model": ModelInfo(name="bundled", source="wheel", dtype="float32", device="cpu"),
        "versions": {},
        "prompt": [make_token("hello", "prompt", token_id=1, step=None)],
        "text": "".join(token.piece for step in steps for token in step.committed),
        "finish_reason": "length",
    }
    return RunTrace(method=method, steps=list(steps), **(values | fields))
