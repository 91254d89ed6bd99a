"""transformers' own `generate` beside our lanes: plain, with prompt lookup, with an assistant model.

It runs the same loaded target with the same attention code. What each pass committed comes through its streamer, the
rows of each pass from a hook on the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from transformers.generation.streamers import BaseStreamer

from specviz.errors import SpecVizError
from specviz.evaluation.counts import PassCounts
from specviz.evaluation.lanes import WARM_UP_TOKENS, Answer
from specviz.evaluation.questions import Question
from specviz.settings import RunSettings
from specviz.target.model import Target

LOOKUP_TOKENS = 10
GENERATE, PROMPT_LOOKUP, ASSISTED = "generate", "generate, prompt lookup", "generate, assisted"


@dataclass(frozen=True)
class GenerateLane:
    """`generate` on the target; `options` choose how it drafts, `assistant` is the smaller model, if any."""

    target: Target
    settings: RunSettings
    options: dict[str, Any] = field(default_factory=dict)
    assistant: Target | None = None

    def warm_up(self, questions: Sequence[Question]) -> None:
        for question in questions:
            self._generate(self._encode(question), min(WARM_UP_TOKENS, self.settings.max_new_tokens))

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        return [self._generate(self._encode(question), self.settings.max_new_tokens) for question in questions]

    def _encode(self, question: Question) -> list[int]:
        tokenizer = self.target.tokenizer
        return (tokenizer.encode if self.settings.raw else tokenizer.encode_chat)(question.prompt)

    def _generate(self, prompt_ids: list[int], n_tokens: int) -> Answer:
        row = torch.tensor([prompt_ids], device=self.target.device)
        torch.manual_seed(self.settings.seed)
        chunks = _Chunks()
        with torch.inference_mode(), _counted_rows(self.target) as rows, self._fresh_assistant() as drafting:
            _wait(self.target)
            started = perf_counter()
            output = self.target.model.generate(
                row,
                attention_mask=torch.ones_like(row),
                max_new_tokens=n_tokens,
                streamer=chunks,
                **_sampling(self.settings),
                **self.options,
                **drafting,
            )
            _wait(self.target)
            seconds = perf_counter() - started
        token_ids = _through_eos(output[0, len(prompt_ids) :].tolist(), self.target.eos_ids)
        return Answer(tuple(prompt_ids), tuple(token_ids), seconds, count_chunks(chunks.sizes, rows, len(token_ids)))

    @contextmanager
    def _fresh_assistant(self) -> Iterator[dict[str, Any]]:
        """Give the assistant, and undo what `generate` learns of it: an answer depends on no earlier question."""
        if self.assistant is None:
            yield {}
            return
        model = self.assistant.model
        before = deepcopy(model.generation_config)
        try:
            yield {"assistant_model": model}
        finally:
            model.generation_config = before


def build_peers(target: Target, settings: RunSettings, assistant: Target | None) -> dict[str, GenerateLane]:
    """Return the peers by name; the assisted one where there is an assistant."""
    peers = {
        GENERATE: GenerateLane(target, settings),
        PROMPT_LOOKUP: GenerateLane(target, settings, {"prompt_lookup_num_tokens": LOOKUP_TOKENS}),
    }
    if assistant is not None:
        if not target.tokenizer.shares_ids_with(assistant.tokenizer):
            raise SpecVizError(f"The assistant {assistant.info.name} has another vocabulary than {target.info.name}.")
        peers[ASSISTED] = GenerateLane(target, settings, assistant=assistant)
    return peers


def count_chunks(sizes: Sequence[int], rows: Sequence[int], n_tokens: int) -> PassCounts:
    """Count passes that committed `sizes` tokens and ran `rows`, of an answer that was cut to `n_tokens`.

    The first pass counts as the prefill, though prompt lookup and an assistant draft in it too. The last token of a
    chunk is the target's own. Which drafts were judged is not told.
    """
    n_left = n_tokens - sum(sizes[:1])
    n_passes = n_committed = n_drafted = 0
    for size in sizes[1:]:
        n_kept = min(size, n_left - n_committed)
        if n_kept <= 0:
            break
        n_passes += 1
        n_committed += n_kept
        n_drafted += min(n_kept, size - 1)
    return PassCounts(
        n_passes=n_passes,
        n_committed=n_committed,
        n_drafted=n_drafted,
        n_rows=sum(rows[1 : n_passes + 1]),
        draft_ms=None,
        verify_ms=None,
    )


class _Chunks(BaseStreamer):
    """Notes how many tokens each pass committed; the first thing that `generate` puts is the prompt."""

    def __init__(self) -> None:
        self._has_prompt = False
        self.sizes: list[int] = []

    def put(self, value: Tensor) -> None:
        if self._has_prompt:
            self.sizes.append(value.numel())
        self._has_prompt = True

    def end(self) -> None:
        """Nothing is left to do: chunks were noted as they came."""


@contextmanager
def _counted_rows(target: Target) -> Iterator[list[int]]:
    """Collect how many rows each pass of the target runs."""
    rows: list[int] = []

    def note(_module: Any, _args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        rows.append(kwargs["input_ids"].shape[1])

    handle = target.model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield rows
    finally:
        handle.remove()


def _sampling(settings: RunSettings) -> dict[str, Any]:
    """Return the arguments for the settings; every default of a model's own generation config is overruled."""
    if settings.temperature == 0:
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None, "repetition_penalty": 1.0}
    return {
        "do_sample": True,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": 0,
        "repetition_penalty": 1.0,
    }


def _through_eos(token_ids: list[int], eos_ids: frozenset[int]) -> list[int]:
    """Cut an answer behind its first end of text."""
    end = next((place for place, token_id in enumerate(token_ids) if token_id in eos_ids), len(token_ids) - 1)
    return token_ids[: end + 1]


def _wait(target: Target) -> None:
    if target.device.type == "cuda":
        torch.cuda.synchronize(target.device)
