"""What kind of token a piece is, by its characters alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from specviz.trace import StepTrace

TokenKind = Literal["word", "number", "code", "white space"]
TOKEN_KINDS: tuple[TokenKind, ...] = get_args(TokenKind)

_PROSE_SIGNS = frozenset(".,;:!?'\"-()")  # of ASCII; other scripts' punctuation and emoji are prose too
_CAMEL_CASE = re.compile(r"[a-z][A-Z]")
_CALL = re.compile(r"[()][^\w\s]|[^\w\s][()]")  # a parenthesis beside another sign, as in `():`


@dataclass(frozen=True)
class KindCount:
    """Of the tokens of one kind that a draft was judged against, how many it had right."""

    n_judged: int
    n_accepted: int

    @property
    def rate(self) -> float | None:
        """Accepted over judged; None where nothing was judged."""
        return self.n_accepted / self.n_judged if self.n_judged else None


def token_kind(piece: str) -> TokenKind:
    """Return the kind of a token by its piece; its surroundings are not known.

    `white space` shows nothing: spaces, line breaks, end of text, a part of a character. `number` has digits and
    no letters. `code` has a sign that prose seldom needs (brackets, operators, an underscore), letters mixed with
    digits, or a capital inside a word. All else is a `word`, the punctuation of sentences included: a keyword such
    as `return` looks like one too.
    """
    text = piece.strip()
    if not text:
        return "white space"
    has_digit = any(character.isdecimal() for character in text)
    has_letter = any(character.isalpha() for character in text)
    is_mixed = has_digit and has_letter
    if is_mixed or _CAMEL_CASE.search(text) or _CALL.search(text) or any(map(_is_code_sign, text)):
        return "code"
    return "number" if has_digit else "word"


def count_kinds(steps: Iterable[StepTrace]) -> dict[TokenKind, KindCount]:
    """Count, for each kind of the token that the target took where drafts were judged, how often a draft had it.

    An accepted draft is a hit, a correction a miss; a bonus had no draft beside it and does not count.
    """
    hits, misses = dict.fromkeys(TOKEN_KINDS, 0), dict.fromkeys(TOKEN_KINDS, 0)
    for token in (token for step in steps if step.index > 0 for token in step.committed):
        if token.source == "draft":
            hits[token_kind(token.piece)] += 1
        elif token.source == "correction":
            misses[token_kind(token.piece)] += 1
    return {kind: KindCount(hits[kind] + misses[kind], hits[kind]) for kind in TOKEN_KINDS}


def _is_code_sign(character: str) -> bool:
    if character.isascii():
        return not (character.isalnum() or character.isspace() or character in _PROSE_SIGNS)
    return unicodedata.category(character) == "Sm"
