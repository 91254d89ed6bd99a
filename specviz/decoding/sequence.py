"""One sequence on its way through the loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from specviz.decoding.limits import Ending
from specviz.decoding.record import StepRecorder
from specviz.decoding.sampling import Sampler
from specviz.drafters.base import DraftSession
from specviz.trace import FinishReason


@dataclass
class Sequence:
    """A prompt, what was committed behind it, and everything that belongs to this sequence alone.

    The last `n_pending` of `token_ids` are committed but not in the cache yet; the last of them is
    the root of the next pass.
    """

    row: int
    token_ids: list[int]
    session: DraftSession
    sampler: Sampler
    ending: Ending
    recorder: StepRecorder
    n_prompt: int = field(init=False)
    n_pending: int = field(init=False)
    finish_reason: FinishReason | None = None
    text_cut: int = 0
    padding: int = 0

    def __post_init__(self) -> None:
        self.n_prompt = self.n_pending = len(self.token_ids)

    @property
    def n_cached(self) -> int:
        return len(self.token_ids) - self.n_pending

    @property
    def max_depth(self) -> int:
        """How deep a tree may be before its nodes would leave the context."""
        return self.ending.n_free - 1

    @property
    def pending_ids(self) -> list[int]:
        return self.token_ids[self.n_cached :]
