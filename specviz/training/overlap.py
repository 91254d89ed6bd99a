"""Which prompts say the same as each other, and which overlap with an evaluation question.

Texts are compared as words: Unicode compatibility forms, case, punctuation and space do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

LONG_GRAM = 13  # words in a row that two texts share only where one was copied (GPT-3, appendix C)
SHORT_GRAM = 3
NEAR_SHARE = 0.6  # finds a question of which every ninth word was exchanged, and nothing else in 8,600 prompts
WORD = re.compile(r"\w+")

Gram = tuple[str, ...]


def normalise_words(text: str) -> Gram:
    """Return a text's words as they are compared."""
    return tuple(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


class QuestionOverlap:
    """Tells whether a prompt is, contains, lies in, or nearly equals one of the given questions.

    A prompt overlaps with a question where both have the same words, or share 13 words in a row, or
    share 60 % of the sequences of three words of the shorter one: so short questions are found too,
    and those in which a name or a number was exchanged.
    """

    def __init__(self, questions: Iterable[str]) -> None:
        self._n_short: list[int] = []
        self._exact: set[Gram] = set()
        self._long: set[Gram] = set()
        self._having: dict[Gram, list[int]] = defaultdict(list)
        for words in filter(None, map(normalise_words, questions)):
            self._add(words)

    def __len__(self) -> int:
        return len(self._n_short)

    def covers(self, prompt: str) -> bool:
        """Return whether the prompt overlaps with a question."""
        words = normalise_words(prompt)
        return words in self._exact or not self._long.isdisjoint(grams(words, LONG_GRAM)) or self._is_near(words)

    def _add(self, words: Gram) -> None:
        short = grams(words, SHORT_GRAM)
        for gram in short:
            self._having[gram].append(len(self._n_short))
        self._n_short.append(len(short))
        self._exact.add(words)
        self._long |= grams(words, LONG_GRAM)

    def _is_near(self, words: Gram) -> bool:
        short = grams(words, SHORT_GRAM)
        shared = Counter(question for gram in short for question in self._having.get(gram, ()))
        return any(n >= NEAR_SHARE * min(len(short), self._n_short[question]) for question, n in shared.items())


def grams(words: Sequence[str], n: int) -> set[Gram]:
    """Return all sequences of `n` words in a row; none where there are fewer words."""
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
