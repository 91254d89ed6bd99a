"""Prompts that the target writes itself: its chat template up to the start of the user turn, continued.

A model trained on chats has seen user turns too, so what it writes there at temperature 1 is a
usable prompt (MAGPIE, Xu et al. 2024); a given first word or phrase steers the kind of use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from specviz.decoding.sampling import Sampler, uniform
from specviz.errors import SpecVizError
from specviz.target.model import Target
from specviz.training.generate import Request
from specviz.training.seeds import derive_seed

TEMPERATURE = 1.0
OPENED_SHARE = 0.75  # the rest begins with nothing given


@dataclass(frozen=True)
class PromptRequest(Request):
    """The prompt of this number, to be written by the target."""

    number: int


class UserTurn:
    """The place of the user's text in a chat template, told by rendering different texts."""

    def __init__(self, target: Target) -> None:
        encode = target.tokenizer.encode_chat
        empty = encode("")
        self._encode = encode
        self.head_ids = _common_start(encode("Hello"), encode("7"), empty)
        self.tail_ids = tuple(empty[len(self.head_ids) :])
        if not self.tail_ids:
            raise SpecVizError("This model's chat template does not close the user's turn: it cannot write prompts.")

    @property
    def closing_id(self) -> int:
        """The token that closes the user's text."""
        return self.tail_ids[0]

    def opened_ids(self, opening: str) -> tuple[int, ...]:
        """Return the template up to the user's text, and the first words of that text."""
        if not opening:
            return self.head_ids
        return tuple(self._encode(opening)[: -len(self.tail_ids)])


class PromptWriter:
    """Makes the requests in which the target writes prompts, and reads prompts out of what it wrote."""

    def __init__(self, target: Target, seed: int, max_new_tokens: int, openings: Sequence[str]) -> None:
        self._decode = target.tokenizer.decode
        self._turn = UserTurn(target)
        self._end_ids = target.eos_ids | {self._turn.closing_id}
        self._seed = seed
        self._max_new_tokens = max_new_tokens
        self._openings = tuple(openings)

    @property
    def max_tokens(self) -> int:
        """Most tokens that a request and what is written for it take together."""
        opened = (len(self._turn.opened_ids(opening)) for opening in ("", *self._openings))
        return max(opened) + self._max_new_tokens

    def request(self, number: int) -> PromptRequest:
        """Return the request for the prompt of this number; it depends on seed and number alone."""
        return PromptRequest(
            prompt_ids=self._turn.opened_ids(self._opening(number)),
            sampler=Sampler(TEMPERATURE, seed=derive_seed(self._seed, "prompt", number)),
            max_new_tokens=self._max_new_tokens,
            end_ids=self._end_ids,
            number=number,
        )

    def read_prompt(self, request: Request, written_ids: Sequence[int]) -> str | None:
        """Return the prompt, or None where it did not end in time."""
        if written_ids[-1] not in self._end_ids:
            return None
        opening_ids = request.prompt_ids[len(self._turn.head_ids) :]
        return self._decode([*opening_ids, *written_ids[:-1]]).strip()

    def _opening(self, number: int) -> str:
        seed = derive_seed(self._seed, "opening")
        place = uniform(seed, number) / OPENED_SHARE
        return self._openings[int(place * len(self._openings))] if self._openings and place < 1 else ""


def _common_start(*texts: list[int]) -> tuple[int, ...]:
    """Return the ids with which all texts begin."""
    columns = zip(*texts, strict=False)
    return tuple(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))
