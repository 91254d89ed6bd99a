"""Where an answer ends: EOS, stop text, the token budget, the end of the context.

The cut acts on the tokens of a step before cache, drafter and trace see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.text import Detokenizer, StopText, TextCodec
from specviz.trace import FinishReason


@dataclass(frozen=True)
class Cut:
    """What remains of a step's tokens: how many, their pieces, and the reason where the answer ends."""

    pieces: tuple[str, ...]
    finish_reason: FinishReason | None = None
    text_cut: int = 0

    @property
    def n_tokens(self) -> int:
        return len(self.pieces)


class Ending:
    """Watches one answer grow; the limits are checked token by token, in the order of the answer."""

    def __init__(
        self, codec: TextCodec, eos_ids: frozenset[int], stops: Sequence[str], max_new_tokens: int, n_free: int
    ) -> None:
        self._eos_ids = eos_ids
        self._n_left = max_new_tokens
        self._n_free = n_free
        self._detokenizer = Detokenizer(codec)
        self._stop_text = StopText(stops)

    @property
    def n_free(self) -> int:
        """How many more tokens the context has room for."""
        return self._n_free

    @property
    def holds_text(self) -> bool:
        """Whether the answer's end may still become a stop text and should not be shown yet."""
        return self._stop_text.pending

    def cut(self, token_ids: Sequence[int]) -> Cut:
        """Take a step's tokens in order and cut them where the answer ends."""
        pieces: list[str] = []
        for token_id in token_ids:
            piece = self._detokenizer.add(token_id)
            reason, text_cut = self._reason(token_id, piece)
            if reason is not None:
                tail = self._detokenizer.flush()
                pieces.append(piece + tail)
                return Cut(tuple(pieces), reason, text_cut + len(tail) if text_cut else 0)
            pieces.append(piece)
        return Cut(tuple(pieces))

    def _reason(self, token_id: int, piece: str) -> tuple[FinishReason | None, int]:
        self._n_left -= 1
        self._n_free -= 1
        if token_id in self._eos_ids:
            return "eos", 0
        text_cut = self._stop_text.add(piece)
        if text_cut is not None:
            return "stop_text", text_cut
        if self._n_left == 0:
            return "length", 0
        return ("context_full", 0) if self._n_free <= 0 else (None, 0)
