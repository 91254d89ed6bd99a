"""Prompts over long passages: of the right length, in order where a file has one, the same for the same seed."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from specviz.errors import SpecVizError
from specviz.training.corpus import Answer
from specviz.training.passages import QUESTIONS, make_prompts, own_pieces, pieces_of, save_prompts

OWN = ["An answer about rivers that goes on for a while. " * 8, "Another one, about bread and how it is baked. " * 8]
FILE = [f"Piece {i} of the file has a few words in it, and then it ends." for i in range(400)]


def test_summaries_and_questions_have_their_lengths():
    prompts = list(make_prompts(OWN, [FILE], 120, seed=1))
    summaries = [prompt for source, prompt in prompts if source == "passage-summary"]
    questions = [prompt for source, prompt in prompts if source == "passage-question"]
    assert 20 < len(questions) < 60 and len(summaries) + len(questions) == 120
    assert all("ummar" in prompt and len(prompt) < 4300 for prompt in summaries)
    assert sorted(map(len, summaries))[60] > 1500
    assert {prompt.rsplit("\n", 1)[1] for prompt in questions} <= set(QUESTIONS)
    assert prompts == list(make_prompts(OWN, [FILE], 120, seed=1)) != list(make_prompts(OWN, [FILE], 120, seed=2))


def test_a_file_is_read_in_its_order_and_either_source_suffices():
    for _, prompt in make_prompts([], [FILE], 20, seed=0):
        numbers = [
            int(word) for word, before in zip(prompt.split()[1:], prompt.split(), strict=False) if before == "Piece"
        ]
        steps = {b - a for a, b in itertools.pairwise(numbers)}
        assert numbers and len(steps - {1}) <= 2  # one to three passages
    assert len(list(make_prompts(OWN, [], 5, seed=0))) == 5


def test_sums_code_short_and_wild_answers_are_no_passages():
    def answer(words: str, temperature: float = 0.0, n: int = 130) -> Answer:
        return Answer("file", temperature, words, (1,), (len(words), *[0] * (n - 1)))

    texts = {len(words): words for words in ("plain words", "12 + 34 = 46", "```code```")}
    answers = [*map(answer, texts.values()), answer("plain words", temperature=1.0), answer("plain words", n=50)]
    assert own_pieces(answers, lambda ids: texts[ids[0]]) == ["plain words"]


def test_a_text_is_cut_after_its_sentences():
    assert pieces_of("One. Two!\nThree? Four. Five e.g. six.") == ["One. Two! Three? Four.", "Five e.g. six."]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--corpus", "/no/such", "could not be read"),
        ("--texts", "/no/such", "could not be read"),
        ("--texts", "/dev/null", "is empty"),
        ("--prompts", "0", "At least 1 prompt is needed"),
    ],
)
def test_a_mistake_is_a_sentence(option, value, words, tmp_path, monkeypatch, capsys):
    from specviz.training import passages

    corpus = tmp_path / "answers.jsonl"
    corpus.write_text(
        json.dumps({"src": "file", "T": 0, "prompt": "a", "ids": [1], "out": [2]}) + "\n", encoding="utf-8"
    )
    given = {"--corpus": str(corpus), "--texts": str(corpus), "--out": str(tmp_path / "out")} | {option: value}
    monkeypatch.setattr("sys.argv", ["passages", *[word for pair in given.items() for word in pair]])
    assert passages.main() == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_place_that_cannot_be_written_to_is_a_sentence():
    with pytest.raises(SpecVizError, match="could not be written to /dev/null"):
        save_prompts(Path("/dev/null/prompts.jsonl"), [("passage-summary", "Summarize: a")])
