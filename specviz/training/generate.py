"""Many answers at once: continuous batching, where the place of an answer that ended is filled again.

A pass over 64 places costs little more than one over a single row, so places are kept full: free
ones are refilled a few at a time, their prompts packed into one pass without padding. Once there is
nothing to fill them with, they are given up by halves, so that the last long answers run in small passes.
Letters: B places, R packed prompt rows, V vocabulary, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter

import torch
from torch import Tensor

from specviz.decoding.sampling import Sampler
from specviz.target.cache import SoftRows
from specviz.target.model import Target
from specviz.target.place_cache import PlaceCache

PACKED_ROWS = 512  # prompt rows in one pass: enough to fill the machine, few enough for a mask of R x R
REFILL_SHARE = 16  # refill once a sixteenth of the places is free


@dataclass(frozen=True)
class Request:
    """A text to continue; what is generated does not depend on what else is in the batch."""

    prompt_ids: tuple[int, ...]
    sampler: Sampler
    max_new_tokens: int
    end_ids: frozenset[int]


@dataclass
class Load:
    """What the machine did: passes over the places, and the prompts run beside them, which give a token each."""

    n_passes: int = 0
    n_tokens: int = 0
    n_prompts: int = 0
    n_prompt_rows: int = 0
    began: float = field(default_factory=perf_counter)

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that a pass over the places gave, which is how full they were."""
        return (self.n_tokens - self.n_prompts) / max(self.n_passes, 1)

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second since the beginning, prompts included in the time."""
        return self.n_tokens / max(perf_counter() - self.began, 1e-9)


@dataclass
class _Growing:
    """A request in its place, with the tokens generated so far."""

    request: Request
    token_ids: list[int] = field(default_factory=list)

    @property
    def next_position(self) -> int:
        return len(self.request.prompt_ids) + len(self.token_ids)

    @property
    def ended(self) -> bool:
        return len(self.token_ids) >= self.request.max_new_tokens or self.token_ids[-1] in self.request.end_ids


class BatchGenerator:
    """Generates for a stream of requests in `n_places` places with room for `capacity` tokens each."""

    def __init__(self, target: Target, n_places: int, capacity: int) -> None:
        self._target = target
        self._cache = PlaceCache(target.n_layers, n_places, capacity)
        self._growing: dict[int, _Growing] = {}
        self._n_places = n_places
        self.load = Load()

    def generate(self, take: Callable[[], Request | None]) -> Iterator[tuple[Request, tuple[int, ...]]]:
        """Yield requests with their tokens in the order in which they end.

        `take` gives the next request, or None while there is none; generation stops when there is
        none and every place is empty. A request may follow from what was yielded before, as many as
        there are texts left: places that were given up are not taken back.
        """
        while True:
            if self._wants_refill():
                yield from self._refill(take)
            if not self._growing:
                return
            if len(self._growing) <= self._n_places // 2:
                self._give_up_free_places()
            self._step()
            yield from self._leave_ended()

    def _wants_refill(self) -> bool:
        n_free = self._n_places - len(self._growing)
        return n_free >= max(1, self._n_places // REFILL_SHARE) or not self._growing

    def _refill(self, take: Callable[[], Request | None]) -> Iterator[tuple[Request, tuple[int, ...]]]:
        """Fill the free places; an answer may end with its first token and leave at once."""
        while len(self._growing) < self._n_places:
            requests = _take_pack(take, self._n_places - len(self._growing))
            if not requests:
                return
            self._prefill(requests)
            yield from self._leave_ended()

    def _give_up_free_places(self) -> None:
        """Keep the places in use alone; what may still follow from their texts finds room where those end."""
        places = sorted(self._growing)
        self._cache.select(places)
        self._growing = {new: self._growing[old] for new, old in enumerate(places)}
        self._n_places = len(places)

    def _prefill(self, requests: list[Request]) -> None:
        """Run the packed prompts and put each into a free place, with its first token."""
        rows, last = _run_packed(self._target, [request.prompt_ids for request in requests])
        free = [place for place in range(self._n_places) if place not in self._growing]
        growing = [_Growing(request) for request in requests]
        for place, text, own_rows in zip(free, growing, rows, strict=False):
            self._cache.fill(place, own_rows)
            self._growing[place] = text
        self._choose(growing, last)
        self.load.n_prompts += len(requests)
        self.load.n_prompt_rows += sum(len(request.prompt_ids) for request in requests)

    def _step(self) -> None:
        """Run one pass over all places; an empty place runs along and is written over."""
        target, cache = self._target, self._cache
        places = sorted(self._growing)
        token_ids = [[self._growing[p].token_ids[-1] if p in self._growing else 0] for p in range(self._n_places)]
        positions, mask = cache.positions(target.device), cache.mask(target.device)
        hidden = target.forward(target.embed(token_ids), positions, mask, cache)
        cache.advance(places)
        self._choose([self._growing[place] for place in places], hidden.last[places, 0])
        self.load.n_passes += 1

    def _choose(self, growing: Sequence[_Growing], last: Tensor) -> None:
        """Append to each text the token chosen from its final state, `last` (B, H)."""
        logits = self._target.logits(last)  # (B, V)
        for text, row, greedy_id in zip(growing, logits, logits.argmax(dim=-1).tolist(), strict=True):
            sampler = text.request.sampler
            text.token_ids.append(greedy_id if sampler.greedy else sampler.choose(row, text.next_position))
        self.load.n_tokens += len(growing)

    def _leave_ended(self) -> Iterator[tuple[Request, tuple[int, ...]]]:
        for place in [place for place, text in self._growing.items() if text.ended]:
            text = self._growing.pop(place)
            self._cache.lengths[place] = 0
            yield text.request, tuple(text.token_ids)


def _take_pack(take: Callable[[], Request | None], n_most: int) -> list[Request]:
    """Take requests for one packed pass: at most `n_most`, and none after PACKED_ROWS rows are reached."""
    requests: list[Request] = []
    while len(requests) < n_most and sum(len(request.prompt_ids) for request in requests) < PACKED_ROWS:
        request = take()
        if request is None:
            break
        requests.append(request)
    return requests


def _run_packed(target: Target, prompts: Sequence[Sequence[int]]) -> tuple[list[SoftRows], Tensor]:
    """Run prompts behind each other in one row of a batch.

    Returns for each prompt its keys and values, a pair a layer, each (1, Hkv, N, D), and the final
    state of its last token, together (B, H).
    """
    lengths = [len(prompt_ids) for prompt_ids in prompts]
    cache = target.new_cache(1, sum(lengths))
    positions = torch.cat([torch.arange(n) for n in lengths])[None].to(target.device)  # (1, R)
    mask = packed_mask(lengths)[None, None].to(target.device)  # (1, 1, R, R)
    hidden = target.forward(target.embed([[*chain(*prompts)]]), positions, mask, cache)
    cache.keep([range(sum(lengths))])
    layers = [(keys.split(lengths, dim=2), values.split(lengths, dim=2)) for keys, values in cache.rows()]
    rows = [[(keys[i], values[i]) for keys, values in layers] for i in range(len(prompts))]
    ends = torch.tensor(lengths).cumsum(dim=0) - 1
    return rows, hidden.last[0, ends.to(hidden.last.device)]


def packed_mask(lengths: Sequence[int]) -> Tensor:
    """Return the (R, R) mask of texts behind each other, each causal and blind to the others.

    For lengths 2 and 3::

        1 0 . . .
        1 1 . . .
        . . 1 0 0
        . . 1 1 0
        . . 1 1 1
    """
    blocks = [torch.ones(n, n, dtype=torch.bool).tril() for n in lengths]
    return torch.block_diag(*blocks)
