"""What is generated next does not depend on what ended first; lines survive an interruption."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from specviz.errors import SpecVizError
from specviz.training.corpus import Answer
from specviz.training.corpus_summary import summarise_corpus, summarise_dropped
from specviz.training.line_file import LineFile, read_lines
from specviz.training.overlap import QuestionOverlap
from specviz.training.production import AnswerMaker, AnswerRequest, FileSupply, WrittenSupply, file_requests, take_from
from specviz.training.prompts import PromptGate
from specviz.training.self_written import PromptWriter
from tests.kit import ScriptTarget

EOS = frozenset({257})
PROMPTS = [f"Prompt number {i}" for i in range(40)]


def _gate() -> PromptGate:
    return PromptGate(lambda text: list(text.encode()), 200, QuestionOverlap(["Where is the evaluation question?"]))


def _maker(seed: int = 0) -> AnswerMaker:
    return AnswerMaker(seed, 20, EOS)


def _files(prompts: list[str] = PROMPTS, answered: frozenset = frozenset(), seed: int = 0) -> list[AnswerRequest]:
    return file_requests(prompts, _gate(), _maker(seed), answered, seed)


def _written(n_wanted: int, answered: frozenset = frozenset()) -> WrittenSupply:
    writer = PromptWriter(ScriptTarget([0]), 0, 20, ("Who is", "Explain"))
    return WrittenSupply(writer, _maker(), _gate(), n_wanted, answered)


def _all_prompts(supply: WrittenSupply) -> list[str]:
    """Take what waits without writing more."""
    return [request.prompt for request in supply._waiting]


def test_each_prompt_is_answered_at_each_temperature_once_first_answers_first() -> None:
    requests = _files()
    keys = [request.key for request in requests]
    assert len(keys) == len(set(keys)) == 3 * len(PROMPTS)
    assert {request.prompt for request in requests[: len(PROMPTS)]} == set(PROMPTS)


def test_about_half_of_the_first_answers_are_greedy() -> None:
    first = _files([f"Question {i} of many" for i in range(2000)])[:2000]
    shares = Counter(request.sampler.temperature for request in first)
    assert abs(shares[0.0] - 1000) < 100 and abs(shares[0.7] - 500) < 100 and abs(shares[1.0] - 500) < 100


def test_order_and_seeds_depend_on_the_prompt_and_the_seed_alone() -> None:
    assert _files(list(reversed(PROMPTS))) == _files()
    few = {request.key: request.sampler.seed for request in _files(PROMPTS[:5])}
    many = {request.key: request.sampler.seed for request in _files()}
    assert all(many[key] == seed for key, seed in few.items())
    assert len(set(many.values())) == len(many)
    assert [request.prompt for request in _files(seed=1)] != [request.prompt for request in _files()]


def test_answers_of_other_corpora_are_not_made_again_and_their_prompts_come_last() -> None:
    known = _files(PROMPTS[:10])[:10]
    requests = _files(answered=frozenset(request.key for request in known))
    assert not {request.key for request in requests} & {request.key for request in known}
    assert {request.prompt for request in requests[:30]} == set(PROMPTS[10:])


def test_evaluation_questions_and_repetitions_of_a_file_are_not_answered() -> None:
    requests = _files(["Where is the evaluation question?", "A good prompt", "a GOOD prompt!", "A good prompt"])
    assert {request.prompt for request in requests} == {"A good prompt"}


def test_written_prompts_are_kept_in_the_order_of_their_numbers() -> None:
    texts = ["Name a river", None, "name a river", "Name a lake", "Name a hill", "Name a town"]
    ended = [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 5, 3, 1, 4]]
    for order in ended:
        supply = _written(n_wanted=3)
        for number in order:
            supply.add(number, texts[number])
        assert _all_prompts(supply) == ["Name a river", "Name a lake", "Name a hill"]


def test_recalled_prompts_are_not_written_again_and_answered_ones_not_answered_again() -> None:
    first = _written(2)
    first.recall({0: "Name a river", 1: "Name a lake", 3: "Name a hill"})
    answered = frozenset({first._waiting[0].key})
    again = _written(3, answered)
    again.recall({0: "Name a river", 1: "Name a lake", 3: "Name a hill"})
    assert _all_prompts(again) == ["Name a lake"]
    again.next_request()
    assert again.next_request().number == 2  # the gap is written anew, and nothing behind it was taken


def test_a_model_that_writes_nothing_usable_is_told_and_not_tried_for_ever() -> None:
    supply = _written(5)
    with pytest.raises(SpecVizError, match="could be used"):
        for number in range(1000):
            supply.add(number, None)


def test_requests_are_taken_from_the_supply_that_is_behind() -> None:
    files, written = FileSupply(_files()[:4], frozenset()), _written(n_wanted=8)
    kinds = [type(take_from([files, written])).__name__ for _ in range(12)]
    assert kinds.count("AnswerRequest") == 4 and kinds.count("PromptRequest") == 8
    assert kinds[:6].count("AnswerRequest") == 2
    assert take_from([files, written]) is None


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.jsonl.gz"])
@pytest.mark.parametrize("n_lost", [0, 3, 9])
def test_lines_are_appended_behind_the_whole_ones(tmp_path: Path, name: str, n_lost: int) -> None:
    path = tmp_path / "new folder" / name
    with LineFile(path) as file:
        file.append("first")
        n_first = path.stat().st_size
        file.append("second, which an interruption may cut")
        assert read_lines(path)[0] == "first"
    if n_lost:
        path.write_bytes(path.read_bytes()[: n_first + n_lost])
    with LineFile(path) as file:
        file.append("third")
    assert read_lines(path) == ["first", *([] if n_lost else ["second, which an interruption may cut"]), "third"]
    assert [file.name for file in path.parent.iterdir()] == [name]


def test_the_summary_counts_by_source_and_temperature() -> None:
    answers = [
        Answer("file", 0.0, "a", (1,), (5, 6, 257)),
        Answer("file", 0.0, "b", (1,), (5,)),
        Answer("self", 0.7, "c", (1,), (257,)),
    ]
    rows = [line.split() for line in summarise_corpus(answers, EOS).splitlines()]
    assert rows[1] == ["file", "0", "2", "4", "2.0", "50.0%"]
    assert rows[2] == ["self", "0.7", "1", "1", "1.0", "100.0%"]
    assert rows[3] == ["all", "3", "5", "1.7", "66.7%"]
    assert summarise_corpus([], EOS)
    assert summarise_dropped(Counter({("self", "duplicate"): 2})) == "Prompts dropped: 2 duplicate (self)."
