"""Two runs of one prompt, side by side: two methods, two checkpoints, or two settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.analysis.divergence import DepthDivergence, diverge_by_depth
from specviz.metrics import acceptance_by_depth
from specviz.trace import RunTrace, StepTrace


@dataclass(frozen=True)
class TextParting:
    """The first answer token (from 0) in which two runs differ, with the step of each; None where one has ended."""

    index: int
    left_step: int | None
    right_step: int | None
    left_piece: str
    right_piece: str


@dataclass(frozen=True)
class StepPair:
    """A step of each run behind the very same text; `n_text` counts the tokens of prompt and answer before it."""

    n_text: int
    left: StepTrace
    right: StepTrace

    @property
    def parts(self) -> bool:
        """Whether the two commit a different number of tokens, so that their steps fall out of line."""
        return len(self.left.committed) != len(self.right.committed)


@dataclass(frozen=True)
class Comparison:
    """What two runs share and where they part.

    `pairs` are the steps behind the same text, the only ones whose drafts can be compared; divergences and
    acceptance by depth are of these steps alone.
    """

    same_prompt: bool
    n_equal: int
    parting: TextParting | None
    pairs: tuple[StepPair, ...]
    first_parting_step: StepPair | None
    left_divergence: list[DepthDivergence]
    right_divergence: list[DepthDivergence]
    left_acceptance: dict[str, float]
    right_acceptance: dict[str, float]


def compare_runs(left: RunTrace, right: RunTrace) -> Comparison:
    """Compare two runs; of runs with different prompts nothing more can be said."""
    same_prompt = _ids(left.prompt) == _ids(right.prompt)
    n_equal = count_equal(_ids(left.answer), _ids(right.answer)) if same_prompt else 0
    pairs = _pair_steps(left, right, len(left.prompt) + n_equal) if same_prompt else ()
    lefts, rights = [pair.left for pair in pairs], [pair.right for pair in pairs]
    return Comparison(
        same_prompt=same_prompt,
        n_equal=n_equal,
        parting=_find_parting(left, right, n_equal) if same_prompt else None,
        pairs=pairs,
        first_parting_step=next((pair for pair in pairs if pair.parts), None),
        left_divergence=diverge_by_depth(lefts),
        right_divergence=diverge_by_depth(rights),
        left_acceptance=acceptance_by_depth(lefts),
        right_acceptance=acceptance_by_depth(rights),
    )


def count_equal(left: Sequence[int], right: Sequence[int]) -> int:
    """Return how many leading ids two sequences share."""
    shortest = min(len(left), len(right))
    return next((i for i in range(shortest) if left[i] != right[i]), shortest)


def _pair_steps(left: RunTrace, right: RunTrace, n_shared: int) -> tuple[StepPair, ...]:
    """Pair the speculative steps that start behind the same text; `n_shared` tokens of the texts are equal."""
    rights = {step.prefix_len: step for step in right.steps if step.index > 0}
    return tuple(
        StepPair(step.prefix_len, step, rights[step.prefix_len])
        for step in left.steps
        if step.index > 0 and step.prefix_len <= n_shared and step.prefix_len in rights
    )


def _find_parting(left: RunTrace, right: RunTrace, n_equal: int) -> TextParting | None:
    one, other = left.answer[n_equal : n_equal + 1], right.answer[n_equal : n_equal + 1]
    if not one and not other:
        return None
    return TextParting(
        index=n_equal,
        left_step=one[0].step if one else None,
        right_step=other[0].step if other else None,
        left_piece=one[0].piece if one else "",
        right_piece=other[0].piece if other else "",
    )


def _ids(tokens: Sequence) -> list[int]:
    return [token.token_id for token in tokens]
