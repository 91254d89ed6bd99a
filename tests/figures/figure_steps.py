"""Steps and runs made by hand or from a seed, for the tests of the figures."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from specviz.trace import (
    KvTrace,
    MaskRule,
    MaskTrace,
    NodeTrace,
    RoutingTrace,
    StepTimes,
    StepTrace,
    TokenTrace,
    expand_rule,
)

WORDS = [
    "",
    "the",
    "a",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "with",
    "as",
    "was",
    "on",
    "be",
    "by",
    "at",
    "this",
    "have",
    "from",
    "or",
    "had",
    "not",
    "are",
    "but",
    "what",
    "all",
    "were",
    "when",
    "we",
    "there",
    "can",
    "an",
    "your",
    "which",
    "their",
    "said",
    "if",
    "do",
    "will",
    "each",
    "about",
    "how",
    "up",
    "out",
    "them",
    "then",
    "she",
    "many",
    "some",
    "so",
    "these",
    "would",
]


def make_node(idx: int, parent: int, depth: int, piece: str, status: str, **fields: Any) -> NodeTrace:
    """Make a judged node with plausible numbers; the root has none."""
    numbers: dict[str, Any] = {}
    if status != "root":
        numbers = {
            "draft_prob": 0.5,
            "target_prob": 0.25,
            "target_rank": 1,
            "target_argmax": 7,
            "score": -0.69,
        }
    return NodeTrace(
        idx=idx, parent=parent, depth=depth, token_id=100 + idx, piece=piece, status=status, **(numbers | fields)
    )


def make_token(piece: str, source: str, **fields: Any) -> TokenTrace:
    return TokenTrace(**({"token_id": 50, "piece": piece, "source": source, "step": 3} | fields))


def make_step(
    nodes: list[NodeTrace],
    accepted: list[int],
    committed: list[TokenTrace],
    mask: MaskTrace | None = None,
    **fields: Any,
) -> StepTrace:
    rule = MaskRule(name="tree", prefix=4, parents=[node.parent for node in nodes])
    values: dict[str, Any] = {
        "index": 3,
        "prefix_len": 5,
        "n_rows": len(nodes),
        "kv": KvTrace(prefix=4, speculative=len(nodes), kept=1 + len(accepted)),
        "times_ms": StepTimes(draft=3.0, verify=20.0, commit=1.0, record=0.5),
    }
    return StepTrace(
        nodes=nodes, accepted=accepted, committed=committed, mask=mask or expand_rule(rule), **(values | fields)
    )


def make_small_tree(**fields: Any) -> StepTrace:
    """The -> cat (accepted), dog (rejected); cat -> sat, ran (rejected); dog -> ate (unreached); slept corrects."""
    nodes = [
        make_node(0, -1, 0, " the", "root"),
        make_node(1, 0, 1, " cat", "accepted", draft_prob=0.41, target_prob=0.62, target_rank=0, target_argmax=101),
        make_node(2, 0, 1, " dog", "rejected", draft_prob=0.3, target_prob=0.2),
        make_node(3, 1, 2, " sat", "rejected"),
        make_node(4, 1, 2, " ran", "rejected"),
        make_node(5, 2, 2, " ate", "unreached"),
    ]
    committed = [make_token(" cat", "draft", node=1), make_token(" slept", "correction", node=1)]
    return make_step(nodes, [1], committed, **fields)


def make_random_tree(n_nodes: int, seed: int, *, prefix: int = 200, contemplate: bool = True) -> StepTrace:
    """Make a step with a random tree, a random accepted path and, if asked for, ConFu's mask over it."""
    rng = random.Random(seed)
    parents, depths = [-1], [0]
    for _ in range(1, n_nodes):
        parent = rng.choice([i for i, depth in enumerate(depths) if depth < 8])
        parents.append(parent)
        depths.append(depths[parent] + 1)
    accepted = _walk(parents, rng)
    reached = {0, *accepted}
    nodes = [_draw_node(i, parents, depths, accepted, reached, rng) for i in range(n_nodes)]
    rule = MaskRule(
        name="contemplate" if contemplate else "tree",
        prefix=prefix,
        parents=parents,
        k=1 if contemplate else 0,
        s=16 if contemplate else 0,
    )
    committed = [make_token(nodes[i].piece, "draft", node=i) for i in accepted] + [make_token(" next", "correction")]
    return make_step(nodes, accepted, committed, expand_rule(rule, max(0, prefix - 48)), prefix_len=prefix + 1)


def make_routing(site: str, node: int | None, logits: Sequence[float], k: int = 2) -> RoutingTrace:
    total = sum(math.exp(value) for value in logits)
    probabilities = [math.exp(value) / total for value in logits]
    selected = sorted(range(len(logits)), key=lambda i: -probabilities[i])[:k]
    mass = sum(probabilities[i] for i in selected)
    return RoutingTrace(
        site=site,
        node=node,
        probabilities=probabilities,
        selected=selected,
        weights=[probabilities[i] / mass for i in selected],
    )


def _walk(parents: list[int], rng: random.Random) -> list[int]:
    path, here = [], 0
    while len(path) < 3 and (children := [i for i, parent in enumerate(parents) if parent == here]):
        here = rng.choice(children)
        path.append(here)
    return path


def _draw_node(
    i: int, parents: list[int], depths: list[int], accepted: list[int], reached: set[int], rng: random.Random
) -> NodeTrace:
    status = "root" if i == 0 else "accepted" if i in accepted else "rejected" if parents[i] in reached else "unreached"
    piece = " " + rng.choice(WORDS)
    if i == 0:
        return make_node(i, -1, 0, piece, "root")
    prob = rng.random() ** 2
    numbers = {"draft_prob": prob, "target_prob": rng.random() ** 3, "target_rank": rng.randrange(50)}
    return make_node(i, parents[i], depths[i], piece, status, score=math.log(max(prob, 1e-6)), **numbers)
