"""Questions files: read as Spec-Bench has them, chosen by category; anything else is a sentence."""

import json

import pytest

from specviz.errors import SpecVizError
from specviz.evaluation.questions import Question, first_of_categories, load_questions, spread_over_categories

GOOD = {"question_id": 81, "category": "writing", "turns": ["First turn", "Second turn"], "reference": []}


def written(tmp_path, *lines: object):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_the_first_turn_is_read(tmp_path):
    path = written(tmp_path, GOOD, "", GOOD | {"question_id": "a2", "turns": ["A line\u2028separator"]})
    assert load_questions(path) == [
        Question(81, "writing", "First turn"),
        Question("a2", "writing", "A line\u2028separator"),
    ]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["not json"], "line 1: it needs question_id, category and turns"),
        ([GOOD, "", "[]"], "No question stands in .*line 3"),
        ([{"question_id": 1, "category": "a"}], "No question stands"),
        ([GOOD | {"turns": []}], "No question stands"),
        ([GOOD | {"turns": [" "]}], "No question stands"),
        ([GOOD | {"turns": "text"}], "No question stands"),
        ([GOOD | {"category": 3}], "No question stands"),
        ([GOOD | {"question_id": True}], "No question stands"),
        ([GOOD, GOOD], "more than one question with the question_id 81"),
        ([""], "is empty"),
    ],
)
def test_a_file_of_something_else_is_one_sentence(tmp_path, lines, words):
    with pytest.raises(SpecVizError, match=words) as caught:
        load_questions(written(tmp_path, *lines))
    assert "\n" not in str(caught.value)


def test_a_missing_folder_or_binary_file_is_a_sentence(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path, words in ((tmp_path / "none", "could not be read"), (tmp_path, "read"), (tmp_path / "binary", "UTF-8")):
        with pytest.raises(SpecVizError, match=words):
            load_questions(path)


def test_questions_are_chosen_by_category():
    questions = [Question(i, category, "x") for i, category in enumerate("aaabbc")]
    assert [q.question_id for q in spread_over_categories(questions, 4)] == [0, 3, 5, 1]
    assert [q.question_id for q in first_of_categories(questions, 2)] == [0, 1, 3, 4, 5]
