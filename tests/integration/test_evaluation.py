"""The scripts of `specviz.evaluation`: a user's mistake is one sentence and exit status 2; near-ties are told apart."""

import re
import runpy
import sys

import pytest
import torch

from specviz.analysis.losslessness import NEAR_TIE
from specviz.evaluation import lossless
from specviz.evaluation.exactness import judge_answer
from specviz.evaluation.rounding import Answer, measure, teacher_forced
from tests.kit import plain_answer, save_target, tiny_target


@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
        ("lookahead", ["--out", "x", "--questions", "/no/such/file"], "could not be read"),
        ("lookahead", ["--out", "x", "--trees", "2by16"], "KxROWS"),
        ("lossless", ["--questions", "/no/such/file"], "could not be read"),
        ("publish", ["--bench", "/no/such", "--drafters", "/no/such", "--out", "x"], "holds no report of a bench"),
        ("perplexity", ["--questions", "/no/such/file"], "could not be read"),
        ("seeds", ["lookahead", "--out", "x", "--n", "0"], "At least 1 question is needed, not 0."),
        ("lookahead", ["--out", "x", "--n", "-1"], "At least 1 question is needed, not -1."),
        ("seeds", ["lookahead", "--out", "x", "--questions", "/no/such/file"], "could not be read"),
        ("speed", ["--questions", "/no/such/file"], "could not be read"),
        ("rounding", ["--questions", "/no/such/file"], "could not be read"),
        ("slots", ["--corpus", "/no/such/file", "--drafter", "x"], "could not be read"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_a_mistake_is_a_sentence(script, arguments, words, tmp_path, monkeypatch, capsys):
    """Guards against tracebacks where a file is missing or a shape misspelt."""
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question_id": 1, "category": "a", "turns": ["b"]}\n', encoding="utf-8")
    given = (
        arguments
        if {"--questions", "--bench", "--corpus"} & {*arguments}
        else [*arguments, "--questions", str(questions)]
    )
    monkeypatch.setattr(sys, "argv", [script, *given])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module(f"specviz.evaluation.{script}", run_name="__main__")
    error = capsys.readouterr().err
    assert caught.value.code == 2 and words in error
    assert error.startswith("specviz: ") and error.count("\n") == 1


def test_a_difference_is_a_near_tie_only_in_16_bits_and_where_logits_are_close():
    target = tiny_target()
    prompt = list(b"abc")
    plain = plain_answer(target, prompt, 6)
    assert judge_answer(target, prompt, plain, plain).verdict == "equal"
    other = [*plain[:3], (plain[3] + 1) % 512, *plain[4:]]
    judged = judge_answer(target, prompt, other, plain)
    assert (judged.verdict, judged.index) == ("departed", 3) and judged.gap >= 0
    target.info = target.info.model_copy(update={"dtype": "bfloat16"})
    assert judge_answer(target, prompt, other, plain).verdict == ("near_tie" if judged.gap <= NEAR_TIE else "departed")
    assert judge_answer(target, prompt, other, plain, greedy=False).gap is None
    assert judge_answer(target, prompt, plain[:4], plain).index == 4


def test_lossless_counts_untrained_heads_too(tmp_path, monkeypatch, capsys):
    target = tiny_target()
    save_target(target, tmp_path / "tiny")
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question_id": 1, "category": "a", "turns": ["b"]}\n', encoding="utf-8")
    paths = ["--questions", str(questions), "--model", str(tmp_path / "tiny"), "--out", str(tmp_path / "out")]
    sizes = ["--k", "1", "--nodes", "8", "--untrained", "--tokens", "12"]
    monkeypatch.setattr(sys, "argv", ["lossless", *paths, *sizes])
    lossless.main()
    printed = capsys.readouterr().out
    lanes = ("lookahead k=1", "eagle3 nodes=8", "confu nodes=8", "eagle3 untrained nodes=8", "confu untrained nodes=8")
    for lane in lanes:
        assert re.search(rf"^{lane} +1 of 1 equal to plain$", printed, re.MULTILINE), printed
    assert "5 of 5" in printed


def test_an_answer_read_again_gives_the_model_s_logits_whatever_the_rows_of_a_pass():
    target = tiny_target()
    prompt = list(b"abc")
    answer = Answer(prompt, plain_answer(target, prompt, 9))
    alone = target.model(input_ids=torch.tensor([prompt + answer.answer_ids])).logits[0, len(prompt) - 1 : -1]
    for n_rows in (1, 4, 9):
        assert torch.allclose(teacher_forced(target, answer, n_rows), alone, atol=1e-4)
    first, *lines = measure(target, target, [answer], (1, 4)).splitlines()
    assert first == "tiny, float32 against float32 on cpu"
    assert [line.split(" rows")[0].strip() for line in lines] == ["1", "4"]
    assert all("moves by 0.000" in line and "best at 0 of 9 places" in line for line in lines)


def test_rounding_is_measured_against_the_exact_model():
    """Another model in the place of the rounded one: its best tokens differ, and their gaps are told."""
    target, other = tiny_target(), tiny_target(seed=1)
    prompt = list(b"abc")
    answer = Answer(prompt, plain_answer(target, prompt, 9))
    logits = {each: teacher_forced(each, answer, 9) for each in (target, other)}
    turned = logits[target].argmax(-1) != logits[other].argmax(-1)
    best = logits[other].topk(2).values
    widest = float((best[:, 0] - best[:, 1])[turned].max())
    line = measure(other, target, [answer], (9,)).splitlines()[1]
    assert f"at {int(turned.sum())} of 9 places, the widest gap there {widest:.3f}" in line
