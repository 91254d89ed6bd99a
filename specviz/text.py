"""Token ids -> display pieces, byte-safe, and the search for stop text.

The pieces of an answer joined are exactly its decoded text, whatever the tokenizer: a piece is held
back while a character is incomplete and handed out with the token that completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class TextCodec(Protocol):
    """What this module needs of a tokenizer."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """Decode ids to text, special tokens left out."""

    def token_bytes(self, token_id: int) -> bytes | None:
        """Return the bytes a token stands for, or None where the tokenizer does not tell."""

    def is_known(self, token_id: int) -> bool:
        """Return whether the tokenizer has an entry for this id (embeddings are often padded)."""


def placeholder(token_id: int) -> str:
    """Return the visible stand-in for an id without a tokenizer entry."""
    return f"⟨id {token_id}⟩"


def partial_bytes(codec: TextCodec, token_id: int) -> str | None:
    """Return the token's bytes in hex where they are not valid UTF-8 alone, else None."""
    raw = codec.token_bytes(token_id)
    if raw is None:
        return None
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.hex()
    return None


def piece_of(codec: TextCodec, token_id: int) -> str:
    """Return the display text of one token alone; empty where its bytes are only part of a character."""
    if not codec.is_known(token_id):
        return placeholder(token_id)
    raw = codec.token_bytes(token_id)
    if raw is None:
        return codec.decode([token_id])
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return ""


class Detokenizer:
    """Turns a growing list of ids into pieces, one call a token.

    Decodes a short window that starts one emitted piece back, so that rules which join tokens
    (leading spaces, byte fallback) see their neighbour and the cost stays constant.
    """

    def __init__(self, codec: TextCodec) -> None:
        self._codec = codec
        self._window: list[int] = []
        self._n_emitted = 0

    def add(self, token_id: int) -> str:
        """Add a token and return its piece; empty while a character is incomplete."""
        if not self._codec.is_known(token_id):
            piece = self.flush() + placeholder(token_id)
            self._window, self._n_emitted = [], 0
            return piece
        self._window.append(token_id)
        text = self._pending_text()
        if text.endswith(REPLACEMENT) and len(self._window) - self._n_emitted < 4:
            return ""
        self._advance()
        return text

    def flush(self) -> str:
        """Return what was held back, an incomplete character as U+FFFD."""
        text = self._pending_text()
        self._advance()
        return text

    def _pending_text(self) -> str:
        emitted = self._codec.decode(self._window[: self._n_emitted])
        return self._codec.decode(self._window)[len(emitted) :]

    def _advance(self) -> None:
        self._window = self._window[self._n_emitted :]
        self._n_emitted = len(self._window)


class StopText:
    """Finds the first completion of any stop text in a growing answer."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._reach = max((len(stop) for stop in stops), default=0)
        self._tail = ""

    def add(self, piece: str) -> int | None:
        """Add a piece; return how many trailing characters of the answer to cut, or None to go on."""
        if not self._stops:
            return None
        text = self._tail + piece
        starts = [start for stop in self._stops if (start := text.find(stop)) >= 0]
        if starts:
            return len(text) - min(starts)
        self._tail = text[-(self._reach - 1) :] if self._reach > 1 else ""
        return None

    @property
    def pending(self) -> bool:
        """Whether the answer ends with something that may still become a stop text."""
        return any(self._tail.endswith(stop[:length]) for stop in self._stops for length in range(1, len(stop)))
