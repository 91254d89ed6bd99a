"""No evaluation question stands in a corpus: exact, copied in part, nearly equal; and what is only alike stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specviz.errors import SpecVizError
from specviz.evaluation.questions import load_turns
from specviz.training.overlap import QuestionOverlap, grams, normalise_words
from specviz.training.prompts import PromptGate, read_prompts

SHORT = "Who wrote the song about the yellow submarine?"
STORY = (
    "Olga bakes 24 loaves each morning, sells them at 3 coins apiece, and spends half of what she earns on flour "
    "and wood. How many coins are left to her after seven days of baking?"
)
TEMPLATE = "Translate German to English: Der Nebel über dem Hafen hob sich erst gegen Mittag."
OVERLAP = QuestionOverlap([SHORT, STORY, TEMPLATE, "", "Now make it shorter."])


@pytest.mark.parametrize(
    "prompt",
    [
        SHORT,
        "who wrote  the song: about the “yellow submarine”",
        "ＷＨＯ wrote the song about the yellow submarine",
        "Please tell me: who wrote the song about the yellow submarine, and when?",
        "Who wrote the song about the yellow",
        STORY.replace("Olga", "Petra").replace("24", "30"),
        "Consider this. " + STORY[:90] + " Then what is the colour of her hat, and why did nobody tell the miller?",
        "now make it shorter",
    ],
)
def test_a_question_is_found_exactly_in_part_and_nearly(prompt: str) -> None:
    assert OVERLAP.covers(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "Who wrote the play about the Danish prince?",
        "Translate German to English: Die Katze schlief den ganzen Tag auf dem warmen Ofen.",
        "Paul bakes 10 cakes and sells 4 of them. How many are left?",
        "Write a poem about the sea.",
        "Hello",
    ],
)
def test_a_prompt_of_the_same_kind_is_not_a_question(prompt: str) -> None:
    assert not OVERLAP.covers(prompt)


def test_a_question_of_which_every_ninth_word_was_exchanged_is_found() -> None:
    words = STORY.split()
    assert OVERLAP.covers(" ".join("other" if i % 9 == 0 else word for i, word in enumerate(words)))


def test_thirteen_words_in_a_row_are_a_copy_and_twelve_are_not() -> None:
    words = [f"w{i}" for i in range(60)]
    overlap = QuestionOverlap([" ".join(words)])
    around = [f"other{i}" for i in range(40)]
    assert overlap.covers(" ".join(around + words[20:33] + around))
    assert not overlap.covers(" ".join(around + words[20:32] + around))


def test_words_and_grams_by_hand() -> None:
    assert normalise_words("A dog's  Bed\n№ 5!") == ("a", "dog", "s", "bed", "no", "5")
    assert grams(("a", "b", "c"), 2) == {("a", "b"), ("b", "c")}
    assert grams(("a",), 2) == set()


def _gate(max_tokens: int = 200) -> PromptGate:
    return PromptGate(lambda text: list(text.encode()), max_tokens, OVERLAP)


def test_the_gate_admits_once_and_counts_what_it_turns_away() -> None:
    gate = _gate(max_tokens=30)
    assert gate.admit("self", "Name two rivers.") == tuple(b"Name two rivers.")
    for prompt in ["name TWO rivers", SHORT, "x" * 31, "?!", None]:
        assert gate.admit("self", prompt) is None
    reasons = {reason: n for (_, reason), n in gate.dropped.items()}
    assert reasons == {
        "duplicate": 1,
        "evaluation question": 1,
        "too long": 1,
        "no words": 1,
        "not ended in time": 1,
    }


def test_every_turn_of_a_questions_file_is_kept_out(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    turns = ["First \u2028 turn", "Second turn"]
    line = json.dumps({"question_id": 1, "category": "qa", "turns": turns}, ensure_ascii=False)
    path.write_text(line + "\n", encoding="utf-8")
    assert load_turns(path) == turns


def test_a_prompts_file_is_read_and_anything_else_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"source": "a", "prompt": "One\u2028line"}\n\n{"source": "a", "prompt": "Two"}\n', "utf-8")
    assert read_prompts(path) == ["One\u2028line", "Two"]
    for content in ["hello\n", "[1]\n", '{"prompt": 3}\n', '{"text": "x"}\n']:
        path.write_text(content, "utf-8")
        with pytest.raises(SpecVizError, match="not a prompts file"):
            read_prompts(path)
    with pytest.raises(SpecVizError, match="could not be read: No such file"):
        read_prompts(tmp_path / "nowhere")
