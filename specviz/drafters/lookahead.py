"""Lookahead Attention: the target proposes for itself, through added rows that only it never sees.

Behind every place where the acceptance can end ride K slots. Slot i sits at the place of the i-th token
after its node and predicts the token after that one; the slots behind the last accepted node
become the next pass's tree (seed sections 2 and 3; `verified` re-feeds the proposals as real tokens,
`self-consistent` takes them as they are).

Letters: K slots a group, T tree nodes, V vocabulary, H hidden.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor

from specviz.decoding.tree import DraftTree
from specviz.drafters.base import AddedRows, DraftedToken, DraftEvidence, PassResult, Proposal, UnverifiedToken
from specviz.settings import Placeholder, RunSettings, Selection
from specviz.target.cache import SoftRows
from specviz.target.model import Target
from specviz.trace import DrafterInfo

Value = TypeVar("Value")
ROWS_OF_A_TREE = 16
CANDIDATES = 32
MEAN_RATE = 0.1  # ESP (arXiv 2603.17942): the placeholder moves a tenth of the way to each new token


@dataclass(frozen=True)
class LookaheadConfig:
    """The settings of a run that concern lookahead, all of them known."""

    k: int
    selection: Selection
    threshold: float
    placeholder: Placeholder
    causal_slots: bool
    candidates: int
    rows: int
    groups: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> LookaheadConfig:
        """Take the lookahead settings of a resolved RunSettings."""
        return cls(
            k=_known(settings.k),
            selection=_known(settings.selection),
            threshold=_known(settings.threshold),
            placeholder=_known(settings.placeholder),
            causal_slots=settings.slot_attention == "causal",
            candidates=_known(settings.candidates),
            rows=_known(settings.rows),
            groups=_known(settings.groups),
        )

    @property
    def n_nodes(self) -> int:
        """Tree nodes, root included, that the row budget pays for beside the slots."""
        beside_groups = self.rows - self.k * self.groups
        return max(1, beside_groups if beside_groups > self.groups else self.rows // (self.k + 1))


def default_lookahead(settings: RunSettings, has_table: bool) -> dict[str, Any]:
    """Return the value of each lookahead setting that was left open.

    Without training a tree under a budget of rows is best (README, lookahead's figures); one candidate
    for a slot gives the seed's chain, with slots behind every node.
    """
    literal = settings.selection == "self-consistent"
    k = settings.k or (4 if literal else 2)
    candidates = settings.candidates or (1 if literal else CANDIDATES)
    rows = settings.rows or ((k + 1) ** 2 if candidates == 1 else max(ROWS_OF_A_TREE, 2 * (k + 1)))
    return {
        "k": k,
        "selection": "verified",
        "threshold": 0.5 if literal else 0.0,
        "placeholder": "learned" if has_table else "vocab-mean",
        "slot_attention": "causal" if has_table else "diagonal",
        "candidates": candidates,
        "rows": rows,
        "groups": k + 1 if candidates == 1 else rows // 2 if k == 1 else max(2, rows // 10),
    }


def _known(value: Value | None) -> Value:
    assert value is not None, "the engine resolves every setting before a run"
    return value


@dataclass(frozen=True)
class SlotTable:
    """Learned slots: input embeddings (K_max, H), and keys and values that slots alone see, where there are any."""

    slots: Tensor
    prefix: SoftRows | None = None

    @property
    def n_prefix(self) -> int:
        return self.prefix[0][0].shape[2] if self.prefix else 0


class LookaheadDrafter:
    """Slots of the target itself; `table` holds the learned ones, if any."""

    feature_layers: tuple[int, ...] | None = None
    max_batch: int | None = None

    def __init__(
        self, target: Target, config: LookaheadConfig, table: SlotTable | None = None, info: DrafterInfo | None = None
    ) -> None:
        self.target = target
        self.config = config
        self.table = table
        self.soft_rows = table.prefix if table else None
        self.info = info or DrafterInfo(
            name=f"slots of the target ({config.placeholder})",
            source="training-free",
            trained=False,
            notes=["Nothing was trained: the slots' placeholder is computed from the text."],
        )

    def begin(self, prompt_ids: Sequence[int]) -> LookaheadSession:
        return LookaheadSession(self, prompt_ids)


class LookaheadSession:
    """One sequence: the moving placeholder and what the last slots said."""

    def __init__(self, drafter: LookaheadDrafter, prompt_ids: Sequence[int]) -> None:
        self._drafter = drafter
        self._config = drafter.config
        self._target = drafter.target
        by_prompt = drafter.config.placeholder == "prompt-mean"
        self._mean = self._target.embed(prompt_ids).mean(dim=0) if by_prompt else self._target.mean_embedding  # (H,)
        self._slot_log_probs: Tensor | None = None  # (K, V)

    def propose(self, root_id: int, max_depth: int) -> Proposal:
        tree, evidence = DraftTree((root_id,)), DraftEvidence()
        if self._slot_log_probs is not None and self._config.selection == "verified":
            tree, evidence = self._draft(root_id, self._slot_log_probs, max_depth)
        carriers = None if self._config.groups >= len(tree) else tuple(range(self._config.groups))
        added = AddedRows("lookahead", self._embeds(tree, carriers), self._config.causal_slots, carriers)
        return Proposal(tree, added, evidence)

    def take_unverified(self, result: PassResult) -> Sequence[UnverifiedToken]:
        if self._config.selection == "verified":
            return ()
        slots = result.group(result.last, result.last_node)  # (K, H)
        if slots is None:
            return ()
        probs, token_ids = self._target.logits(slots).softmax(dim=-1).max(dim=-1)
        taken: list[UnverifiedToken] = []
        for prob, token_id in zip(probs.tolist(), token_ids.tolist(), strict=True):
            if prob < self._config.threshold:
                break
            taken.append(UnverifiedToken(token_id, prob))
        return taken

    def observe(self, result: PassResult) -> None:
        if self._config.placeholder == "prompt-mean":
            for embed in self._target.embed(list(result.committed)):
                self._mean = self._mean + MEAN_RATE * (embed - self._mean)
        if self._config.selection == "verified":
            slots = nearest_slots(result)
            self._slot_log_probs = None if slots is None else self._target.logits(slots).log_softmax(dim=-1)

    def _embeds(self, tree: DraftTree, carriers: tuple[int, ...] | None) -> Tensor:
        """Return the slots' inputs, (1, K, H) for the same behind every node, or (G, K, H)."""
        k = self._config.k
        if self._drafter.table is not None:
            return self._drafter.table.slots[None, :k].to(self._target.dtype)
        if self._config.placeholder == "last-token":
            carrying = range(len(tree)) if carriers is None else carriers
            return self._target.embed([tree.token_ids[node] for node in carrying])[:, None].expand(-1, k, -1)
        return self._mean.expand(1, k, -1)

    def _draft(self, root_id: int, slot_log_probs: Tensor, max_depth: int) -> tuple[DraftTree, DraftEvidence]:
        config = self._config
        slots = slot_log_probs[: max(0, max_depth)]
        best = slots.topk(min(config.candidates, slots.shape[-1]), dim=-1)
        choices = [
            list(zip(ids, scores, strict=True))
            for ids, scores in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        tree, unsent = slot_tree(root_id, choices, config.n_nodes, config.threshold)
        log_probs = {node: slots[depth] for node, depth in enumerate(tree.depths) if depth < len(slots)}
        return tree, DraftEvidence(log_probs, unsent)


SlotChoices = Sequence[Sequence[tuple[int, float]]]  # for each slot, (token id, log-probability), best first


def slot_tree(
    root_id: int, choices: SlotChoices, n_nodes: int, threshold: float = 0.0
) -> tuple[DraftTree, tuple[DraftedToken, ...]]:
    """Build the tree of the `n_nodes` most probable paths, root included, and list what was left out.

    A node of depth d continues with the candidates of slot d + 1, whatever its own token, because slots
    do not see each other's choices; so a path's score is the sum of its slots' log-probabilities.
    A token whose slot gives it less than `threshold` is never sent.
    """
    token_ids, parents, scores, probs = [root_id], [-1], [0.0], [1.0]
    depths = [0]
    frontier: list[tuple[float, int, DraftedToken]] = []
    order = itertools.count()
    below: list[DraftedToken] = []

    def expand(node: int) -> None:
        if depths[node] >= len(choices):
            return
        for token_id, log_prob in choices[depths[node]]:
            score = scores[node] + log_prob
            drafted = DraftedToken(node, depths[node] + 1, token_id, math.exp(log_prob), score)
            if drafted.draft_prob < threshold:
                below.append(drafted)
            else:
                heapq.heappush(frontier, (-score, next(order), drafted))

    expand(0)
    while frontier and len(token_ids) < n_nodes:
        drafted = heapq.heappop(frontier)[2]
        token_ids.append(drafted.token_id)
        parents.append(drafted.parent)
        depths.append(drafted.depth)
        scores.append(drafted.score)
        probs.append(drafted.draft_prob)
        expand(len(token_ids) - 1)
    tree = DraftTree(tuple(token_ids), tuple(parents), tuple(probs), tuple(scores))
    return tree, (*(drafted for _, _, drafted in sorted(frontier)), *below)


def nearest_slots(result: PassResult) -> Tensor | None:
    """Return the final states (K', H) of the slots that predict what follows the last accepted node, or None.

    Where that node carries no slots, those of its nearest accepted ancestor serve: o steps further up, the
    first o of them point at tokens that are known by now, and the others keep their places.
    """
    path = (0, *result.accepted)
    for distance, node in enumerate(reversed(path)):
        slots = result.group(result.last, node)
        if slots is not None:
            return slots[distance:] if distance < len(slots) else None
    return None
