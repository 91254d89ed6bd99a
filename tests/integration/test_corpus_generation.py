"""Batched generation gives what plain decoding gives, and an interrupted corpus what an uninterrupted one gives."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from specviz.commands.train_corpus import add_corpus, make_corpus
from specviz.decoding.sampling import Sampler
from specviz.errors import SpecVizError
from specviz.target.model import Target
from specviz.training.corpus import Answer, read_corpus
from specviz.training.corpus_making import CorpusMaker, CorpusSettings
from specviz.training.generate import BatchGenerator, Request, packed_mask
from specviz.training.self_written import PromptWriter, UserTurn
from tests.kit import EOS_ID, byte_tokenizer, plain_answer, tiny_config, tiny_target

PROMPTS = [[256, *range(10 * i, 10 * i + n)] for i, n in enumerate([3, 11, 40, 5, 1, 25, 7, 2, 18], 1)]
N_NEW = 24


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


def _requests(samplers: Sequence[Sampler], end_ids: frozenset[int] = frozenset({EOS_ID})) -> list[Request]:
    return [Request(tuple(ids), sampler, N_NEW, end_ids) for ids, sampler in zip(PROMPTS, samplers, strict=True)]


def _generate(target: Target, requests: Sequence[Request], n_places: int) -> list[tuple[int, ...]]:
    """Return the requests' tokens in the requests' order."""
    waiting = iter(requests)
    found = dict(BatchGenerator(target, n_places, 80).generate(lambda: next(waiting, None)))
    return [found[request] for request in requests]


@pytest.mark.parametrize("n_places", [1, 2, 4, 16])
def test_greedy_and_sampled_answers_are_those_of_the_plain_engine(target: Target, n_places: int) -> None:
    samplers = [Sampler((0.0, 0.7, 1.0)[i % 3], seed=i) for i in range(len(PROMPTS))]
    alone = [tuple(plain_answer(target, ids, N_NEW, sampler=s)) for ids, s in zip(PROMPTS, samplers, strict=True)]
    assert _generate(target, _requests(samplers), n_places) == alone


def test_a_place_that_is_refilled_remembers_nothing(target: Target) -> None:
    """Long texts before short ones: what the long ones left in the columns must not be seen."""
    samplers = [Sampler()] * len(PROMPTS)
    alone = _generate(target, _requests(samplers), 1)
    longest_first = sorted(zip(_requests(samplers), alone, strict=True), key=lambda pair: -len(pair[0].prompt_ids))
    assert _generate(target, [r for r, _ in longest_first], 3) == [answer for _, answer in longest_first]


def test_a_sliding_window_is_kept_in_batches() -> None:
    config = MistralConfig(**{**tiny_config().to_dict(), "sliding_window": 8, "model_type": "mistral"})
    target = tiny_target(config, MistralForCausalLM)
    alone = [tuple(plain_answer(target, ids, N_NEW)) for ids in PROMPTS]
    assert _generate(target, _requests([Sampler()] * len(PROMPTS)), 4) == alone


def test_answers_end_with_an_end_id_or_at_their_limit(target: Target) -> None:
    """The EOS trick: an id that greedy answers contain is declared to end them."""
    samplers = [Sampler()] * len(PROMPTS)
    whole = _generate(target, _requests(samplers), 4)
    end_id = whole[0][5]
    cut = [answer[: answer.index(end_id) + 1] if end_id in answer else answer for answer in whole]
    assert _generate(target, _requests(samplers, frozenset({end_id})), 4) == cut
    assert len(cut[0]) <= 6 and all(len(answer) <= N_NEW for answer in cut)


def test_a_first_token_that_ends_frees_the_place_at_once(target: Target) -> None:
    requests = [replace(request, max_new_tokens=1) for request in _requests([Sampler()] * len(PROMPTS))]
    assert [len(answer) for answer in _generate(target, requests, 2)] == [1] * len(PROMPTS)


def test_places_are_kept_full_while_there_is_work(target: Target) -> None:
    requests = [Request(tuple(PROMPTS[i % 9]), Sampler(1.0, seed=i), 4 + i % 7, frozenset()) for i in range(60)]
    waiting = iter(requests)
    generator = BatchGenerator(target, 8, 80)
    assert len(list(generator.generate(lambda: next(waiting, None)))) == 60
    assert generator.load.n_tokens == sum(request.max_new_tokens for request in requests)
    assert generator.load.n_prompts == 60
    assert generator.load.tokens_per_pass > 6.5


def test_the_last_answers_run_in_small_passes(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards against 64 rows a pass for one long answer."""
    samplers = [Sampler((0.0, 1.0)[i % 2], seed=i) for i in range(8)]
    lengths = [4, 4, 4, 4, 4, 12, 12, 20]
    requests = [
        Request(tuple(PROMPTS[i]), sampler, length, frozenset())
        for i, (sampler, length) in enumerate(zip(samplers, lengths, strict=True))
    ]
    sizes: list[int] = []
    forward = target.forward

    def listening(embeds: torch.Tensor, *rest: Any) -> Any:
        sizes.append(embeds.shape[0])
        return forward(embeds, *rest)

    monkeypatch.setattr(target, "forward", listening)
    answers = _generate(target, requests, 8)
    assert sizes == [1] + [8] * 3 + [3] * 8 + [1] * 8  # the prompts' packed pass, then fewer places by halves
    alone = [plain_answer(target, r.prompt_ids, r.max_new_tokens, sampler=r.sampler) for r in requests]
    assert answers == [tuple(answer) for answer in alone]


def test_a_request_may_follow_from_what_ended(target: Target) -> None:
    waiting = [_requests([Sampler()] * len(PROMPTS))[0]]
    n_ended = 0
    for _ in BatchGenerator(target, 4, 80).generate(lambda: waiting.pop() if waiting else None):
        n_ended += 1
        if n_ended < 5:
            waiting.append(Request(tuple(PROMPTS[n_ended]), Sampler(), 3, frozenset()))
    assert n_ended == 5


def test_packed_texts_are_causal_and_blind_to_each_other() -> None:
    expected = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert packed_mask([2, 3]).int().tolist() == expected


def test_the_users_turn_is_found_in_the_template(target: Target) -> None:
    tokenizer = byte_tokenizer()
    user, assistant = tokenizer.encode("<|user|>"), tokenizer.encode("<|assistant|>")
    turn = UserTurn(target)
    assert (list(turn.head_ids), list(turn.tail_ids)) == (user, assistant)
    assert list(turn.opened_ids("Who is")) == user + list(b"Who is")


def test_a_written_prompt_is_its_opening_and_what_follows_up_to_the_end_of_the_turn(target: Target) -> None:
    writer = PromptWriter(target, seed=0, max_new_tokens=9, openings=["Who is"])
    requests = [writer.request(number) for number in range(60)]
    opened = next(request for request in requests if len(request.prompt_ids) > 1)
    assert any(len(request.prompt_ids) == 1 for request in requests)
    (closing_id,) = UserTurn(target).tail_ids
    assert writer.read_prompt(opened, [*b" she? ", closing_id]) == "Who is she?"
    assert writer.read_prompt(opened, [*b" she?", EOS_ID]) == "Who is she?"
    assert writer.read_prompt(opened, list(b" she?")) is None
    assert writer.request(7) == writer.request(7)
    assert len({request.sampler.seed for request in requests}) == len(requests)


@pytest.fixture
def settings(tmp_path: Path) -> CorpusSettings:
    prompts = tmp_path / "prompts.jsonl"
    texts = [f"Tell me of the number {i}" for i in range(20)] + ["Which question is evaluated here?"]
    prompts.write_text("".join(json.dumps({"source": "test", "prompt": text}) + "\n" for text in texts))
    questions = tmp_path / "questions.jsonl"
    question = {"question_id": 1, "category": "qa", "turns": ["Which question is evaluated here?"]}
    questions.write_text(json.dumps(question) + "\n")
    return CorpusSettings(
        out=tmp_path / "corpus",
        n_answers=14,
        prompts=prompts,
        evaluation=(questions,),
        max_new_tokens=12,
        max_prompt_tokens=120,
        max_written_tokens=60,
        n_places=4,
        openings=("Who is", "Explain"),
    )


@pytest.fixture(scope="module")
def writer_target() -> Target:
    """A random target that ends the user's turn often enough to write prompts."""
    target = tiny_target(seed=3)
    closing_id = UserTurn(target).closing_id
    with torch.no_grad():
        bias = torch.zeros(target.vocab_size)
        bias[closing_id] = 6.0
        bias[260:] = -1e4  # ids without a text
    logits = target.logits
    target.logits = lambda last: logits(last) + bias  # type: ignore[method-assign]
    return target


def _made(target: Target, settings: CorpusSettings) -> set[Answer]:
    return set(CorpusMaker(target, settings).make())


def test_a_corpus_holds_what_was_asked_for(writer_target: Target, settings: CorpusSettings) -> None:
    maker = CorpusMaker(writer_target, settings)
    answers = list(maker.make())
    assert read_corpus([settings.out]) == maker.answers() == answers
    assert [answer.source for answer in answers].count("self") == 7
    assert len({(answer.prompt, answer.temperature) for answer in answers}) == 14
    assert all(list(a.prompt_ids) == writer_target.tokenizer.encode_chat(a.prompt) for a in answers)
    assert all(0 < len(answer.answer_ids) <= 12 for answer in answers)
    assert not any("evaluated" in answer.prompt for answer in answers)
    assert maker.gate.dropped["file", "evaluation question"] == 1


def test_the_same_seed_gives_the_same_corpus_in_batches_of_any_size(
    writer_target: Target, settings: CorpusSettings
) -> None:
    first = _made(writer_target, settings)
    other = replace(settings, out=settings.out.with_name("other"), n_places=9)
    assert _made(writer_target, other) == first
    reseeded = replace(settings, out=settings.out.with_name("reseeded"), seed=5)
    assert _made(writer_target, reseeded) != first


@pytest.mark.parametrize("n_before", [0, 1, 6, 13])
@pytest.mark.parametrize("compressed", [False, True])
def test_interrupted_and_resumed_equals_uninterrupted(
    writer_target: Target, settings: CorpusSettings, n_before: int, compressed: bool
) -> None:
    whole = _made(writer_target, settings)
    parts = replace(settings, out=settings.out.with_name("parts"), compressed=compressed)
    interrupted = CorpusMaker(writer_target, parts).make()
    for _ in range(n_before):
        next(interrupted)
    interrupted.close()
    for path in parts.out.glob("*.jsonl"):
        path.write_bytes(path.read_bytes()[:-1])  # the last line of each file was cut short
    resumed = CorpusMaker(writer_target, parts)
    list(resumed.make())
    assert set(resumed.answers()) == whole and len(resumed.answers()) == len(whole)
    assert list(CorpusMaker(writer_target, parts).make()) == []


def test_more_answers_are_added_to_those_that_are_there(writer_target: Target, settings: CorpusSettings) -> None:
    first = _made(writer_target, settings)
    more = CorpusMaker(writer_target, replace(settings, n_answers=20))
    assert more.n_done == 14
    list(more.make())
    assert set(more.answers()) > first and len(more.answers()) == 20


def test_known_answers_are_not_made_again(writer_target: Target, settings: CorpusSettings) -> None:
    first = _made(writer_target, settings)
    other = replace(settings, out=settings.out.with_name("other"), known=(settings.out,))
    second = _made(writer_target, other)
    assert len(second) == 14
    assert not {(a.prompt, a.temperature) for a in first} & {(a.prompt, a.temperature) for a in second}
    assert not {a.prompt for a in first} & {a.prompt for a in second if a.source == "self"}


def test_a_folder_is_not_continued_with_other_settings(writer_target: Target, settings: CorpusSettings) -> None:
    CorpusMaker(writer_target, settings)
    with pytest.raises(SpecVizError, match="begun with another seed"):
        CorpusMaker(writer_target, replace(settings, seed=1))
    (settings.out / "corpus.json").write_text("{")
    with pytest.raises(SpecVizError, match="damaged"):
        CorpusMaker(writer_target, settings)


def test_a_model_too_short_for_the_limits_is_told(writer_target: Target, settings: CorpusSettings) -> None:
    maker = CorpusMaker(writer_target, replace(settings, max_new_tokens=600))
    with pytest.raises(SpecVizError, match="512 positions"):
        list(maker.make())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--answers", "0"], "Answers must be at least 1"),
        (["--self-written", "1.5"], "between 0 and 1"),
        (["--self-written", "0"], "give it with --prompts"),
        (["--batch", "0"], "at least 1"),
        (["--openings", "/nowhere"], "openings file /nowhere could not be read"),
    ],
)
def test_mistakes_of_the_command_line_are_sentences(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    parser = argparse.ArgumentParser()
    add_corpus(parser)
    parsed: dict[str, Any] = vars(parser.parse_args(["--out", str(tmp_path / "corpus"), *arguments]))
    with pytest.raises(SpecVizError, match=sentence):
        make_corpus(parsed)
    assert not (tmp_path / "corpus").exists()
