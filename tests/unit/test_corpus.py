"""The corpus as a file: what is read, what is left out, and what is refused with a sentence."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from specviz.errors import SpecVizError
from specviz.training.corpus import Answer, read_corpus

FIRST = Answer("file", 0.0, "How many?", (1, 2), (3, 257))
SECOND = Answer("self", 0.7, "Größe \u2028 of 🙂", (1, 4), (5, 6))
LINES = "".join(answer.to_json() + "\n" for answer in (FIRST, SECOND))


def _plain(folder: Path, text: str = LINES, name: str = "answers.jsonl") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _zipped(folder: Path, text: str = LINES, name: str = "answers.jsonl.gz") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_plain_and_gzip_files_give_the_answers_that_were_written(tmp_path: Path) -> None:
    assert read_corpus([_plain(tmp_path)]) == [FIRST, SECOND]
    assert read_corpus([_zipped(tmp_path)]) == [FIRST, SECOND]


def test_a_folder_gives_its_answer_files_in_order_of_name_and_nothing_else(tmp_path: Path) -> None:
    _plain(tmp_path, FIRST.to_json() + "\n", "answers-000.jsonl")
    _zipped(tmp_path, SECOND.to_json() + "\n", "answers-001.jsonl.gz")
    _plain(tmp_path, '{"number": 0}\n', "written.jsonl")
    assert read_corpus([tmp_path]) == [FIRST, SECOND]


def test_the_fields_are_those_of_the_shared_corpus() -> None:
    line = '{"src": "file", "T": 0, "prompt": "How many?", "ids": [1, 2], "out": [3, 257]}'
    assert Answer.from_json(line) == FIRST


@pytest.mark.parametrize("n_missing", [1, 5, 40])
def test_a_last_line_that_is_half_written_is_left_out(tmp_path: Path, n_missing: int) -> None:
    assert read_corpus([_plain(tmp_path, LINES[:-n_missing])]) == [FIRST]


def test_a_gzip_file_whose_writing_was_interrupted_gives_what_was_flushed(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl.gz"
    with gzip.open(path, "ab") as file:
        file.write(f"{FIRST.to_json()}\n".encode())
        file.flush()
        assert read_corpus([path]) == [FIRST]
        n_flushed = path.stat().st_size
        file.write(f"{SECOND.to_json()}\n".encode())
    path.write_bytes(path.read_bytes()[: n_flushed + 5])
    assert read_corpus([path]) == [FIRST]


def test_gzip_members_behind_each_other_are_all_read(tmp_path: Path) -> None:
    path = _zipped(tmp_path)
    path.write_bytes(path.read_bytes() * 3)
    assert len(read_corpus([path])) == 6


@pytest.mark.parametrize("line", ["[]", "{}", "hello", '{"src": "file", "T": 0, "prompt": "", "ids": 1, "out": []}'])
def test_a_line_that_is_no_answer_is_named(tmp_path: Path, line: str) -> None:
    path = _plain(tmp_path, f"{FIRST.to_json()}\n{line}\n")
    with pytest.raises(SpecVizError, match=r"Line 2 of .*answers.jsonl is not an answer"):
        read_corpus([path])


def test_what_is_not_there_or_empty_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpecVizError, match="could not be read: No such file"):
        read_corpus([tmp_path / "nowhere.jsonl"])
    with pytest.raises(SpecVizError, match="holds no answer"):
        read_corpus([tmp_path])
    with pytest.raises(SpecVizError, match="holds no answer"):
        read_corpus([_plain(tmp_path, "not gzip\n", "answers.jsonl.gz")])
