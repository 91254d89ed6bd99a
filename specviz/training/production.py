"""What is generated next: answers to a file's prompts and to the target's own, each a pure function of the seed.

Nothing depends on the order in which texts end: a corpus that was interrupted and resumed holds the
same answers as one that was not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from specviz.decoding.sampling import Sampler
from specviz.errors import SpecVizError
from specviz.training.corpus import Answer
from specviz.training.generate import Request
from specviz.training.overlap import Gram, normalise_words
from specviz.training.prompts import PromptGate
from specviz.training.seeds import derive_seed
from specviz.training.self_written import PromptWriter

TEMPERATURES = (0.0, 0.0, 0.7, 1.0)  # of a prompt's first answer: half of them are greedy
MOST_BARREN = 500  # prompts turned away in a row, after which the target is taken to write none

AnswerKey = tuple[Gram, float]


@dataclass(frozen=True)
class AnswerRequest(Request):
    """A prompt to be answered; `source` is `file` or `self`."""

    source: str
    prompt: str

    @property
    def key(self) -> AnswerKey:
        return normalise_words(self.prompt), self.sampler.temperature

    def answer(self, answer_ids: Sequence[int]) -> Answer:
        return Answer(self.source, self.sampler.temperature, self.prompt, self.prompt_ids, tuple(answer_ids))


class AnswerMaker:
    """Makes the requests for a prompt's answers, whose seeds depend on prompt and temperature alone."""

    def __init__(self, seed: int, max_new_tokens: int, end_ids: frozenset[int]) -> None:
        self._seed = seed
        self._max_new_tokens = max_new_tokens
        self._end_ids = end_ids

    def requests(self, source: str, prompt: str, prompt_ids: tuple[int, ...]) -> list[AnswerRequest]:
        """Return a request for each temperature, that of the first answer first."""
        first = TEMPERATURES[derive_seed(self._seed, "temperature", prompt) % len(TEMPERATURES)]
        others = sorted({*TEMPERATURES} - {first})
        return [self._request(source, prompt, prompt_ids, temperature) for temperature in (first, *others)]

    def _request(self, source: str, prompt: str, prompt_ids: tuple[int, ...], temperature: float) -> AnswerRequest:
        sampler = Sampler(temperature, seed=derive_seed(self._seed, "answer", prompt, temperature))
        return AnswerRequest(prompt_ids, sampler, self._max_new_tokens, self._end_ids, source, prompt)


class Supply(Protocol):
    """A source of requests that knows how far it has come."""

    @property
    def progress(self) -> float:
        """The share of the wanted answers that were handed out or are under way."""

    def next_request(self) -> Request | None:
        """Return the next request, or None where there is none now."""


class FileSupply:
    """Answers to the prompts of a file, as requests in a fixed order."""

    def __init__(self, requests: Sequence[AnswerRequest], answered: Collection[AnswerKey]) -> None:
        self.n_wanted = len(requests)
        self._waiting = deque(request for request in requests if request.key not in answered)

    @property
    def progress(self) -> float:
        return 1 - len(self._waiting) / self.n_wanted if self.n_wanted else 1.0

    def next_request(self) -> Request | None:
        return self._waiting.popleft() if self._waiting else None


class WrittenSupply:
    """Prompts that the target writes, and their answers.

    Written prompts are judged in the order of their numbers, whichever ended first, so that the same
    ones are kept in every run.
    """

    def __init__(
        self, writer: PromptWriter, maker: AnswerMaker, gate: PromptGate, n_wanted: int, answered: Collection[AnswerKey]
    ) -> None:
        self._writer, self._maker, self._gate = writer, maker, gate
        self.n_wanted = n_wanted
        self._answered = answered
        self._waiting: deque[AnswerRequest] = deque()
        self._unjudged: dict[int, str | None] = {}
        self._n_judged = self._n_kept = self._n_begun = self._n_barren = 0

    @property
    def progress(self) -> float:
        return (self._n_under_way - len(self._waiting)) / self.n_wanted if self.n_wanted else 1.0

    def next_request(self) -> Request | None:
        if self._waiting:
            return self._waiting.popleft()
        if self._n_under_way >= self.n_wanted:
            return None
        self._n_begun += 1
        return self._writer.request(self._n_begun - 1)

    def recall(self, written: Mapping[int, str | None]) -> None:
        """Take over the prompts of an earlier run, as far as they follow each other without a gap."""
        while self._n_begun in written and self._n_kept < self.n_wanted:
            self._n_begun += 1
            self.add(self._n_begun - 1, written[self._n_begun - 1])

    def add(self, number: int, prompt: str | None) -> None:
        """Take what was written under this number; None where it did not end in time."""
        self._unjudged[number] = prompt
        while self._n_judged in self._unjudged:
            self._judge(self._unjudged.pop(self._n_judged))
            self._n_judged += 1

    @property
    def _n_under_way(self) -> int:
        return self._n_kept + self._n_begun - self._n_judged

    def _judge(self, prompt: str | None) -> None:
        if self._n_kept >= self.n_wanted:
            return
        prompt_ids = self._gate.admit("self", prompt)
        if prompt is None or prompt_ids is None:
            self._count_barren()
            return
        self._n_kept, self._n_barren = self._n_kept + 1, 0
        request = self._maker.requests("self", prompt, prompt_ids)[0]
        if request.key not in self._answered:
            self._waiting.append(request)

    def _count_barren(self) -> None:
        self._n_barren += 1
        if self._n_barren >= MOST_BARREN:
            raise SpecVizError(f"None of the last {MOST_BARREN} prompts that this model wrote could be used.")


def file_requests(
    prompts: Iterable[str], gate: PromptGate, maker: AnswerMaker, answered: Collection[AnswerKey], seed: int
) -> list[AnswerRequest]:
    """Return the requests for a file's prompts in order: unanswered prompts first, then other temperatures.

    `answered` are the answers of other corpora, which are not generated again.
    """
    admitted = [(prompt, ids) for prompt in dict.fromkeys(prompts) if (ids := gate.admit("file", prompt)) is not None]
    admitted.sort(key=lambda entry: derive_seed(seed, "order", entry[0]))
    seen = {words for words, _ in answered}
    ranked: list[tuple[int, AnswerRequest]] = []
    for prompt, prompt_ids in admitted:
        n_before = int(normalise_words(prompt) in seen)
        ranked += enumerate(maker.requests("file", prompt, prompt_ids), start=n_before)
    return [request for _, request in sorted(ranked, key=lambda entry: entry[0]) if request.key not in answered]


def take_from(supplies: Sequence[Supply]) -> Request | None:
    """Take the next request from the supply that is furthest behind, or from one that has any."""
    for supply in sorted(supplies, key=lambda supply: supply.progress):
        if (request := supply.next_request()) is not None:
            return request
    return None
