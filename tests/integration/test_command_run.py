"""`python -m specviz run`: it decodes and saves; a user's mistake is a sentence and exit status 2."""

import json

import pytest

from specviz.__main__ import main
from specviz.trace import load_trace
from tests.kit import Target, save_target, tiny_target


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.fixture
def folder(target: Target, tmp_path):
    save_target(target, tmp_path / "tiny")
    return tmp_path


def test_the_command_line_runs_and_saves(folder, capsys):
    out = folder / "trace.json"
    arguments = ["run", "--model", str(folder / "tiny"), "--dtype", "float32", "--raw", "--max-new-tokens", "9"]
    status = main([*arguments, "--method", "lookahead", "--prompt", "abc", "--compare-plain", "--out", str(out)])
    printed = capsys.readouterr().out
    trace = load_trace(out)
    assert status == 0 and "equal to plain decoding (9 of 9 tokens)" in printed
    assert trace.settings["model"] == "tiny" and trace.model.source == "folder"
    assert str(folder) not in json.dumps(trace.settings)


def test_the_command_line_decodes_a_batch(folder, capsys):
    out = folder / "batch.json"
    arguments = ["run", "--model", str(folder / "tiny"), "--dtype", "float32", "--raw", "--max-new-tokens", "5"]
    assert main([*arguments, "--method", "lookahead", "--prompt", "abc", "--prompt", "de", "--out", str(out)]) == 0
    assert [len(run.answer) for run in load_trace(out).batch] == [5, 5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "lookahead"], "--prompt or with --prompt-file"),
        (["--method", "lookahead", "--prompt", "a", "--prompt-file", "b"], "one of the two"),
        (["--method", "lookahead", "--prompt-file", "/no/such/file"], "could not be read"),
        (["--method", "lookahead", "--prompt", "a", "--k", "0"], "K should be"),
        (["--method", "plain", "--prompt", "a", "--k", "2"], "does not use it"),
        (["--method", "plain", "--prompt", "a", "--model", "/no/such/folder"], "no model folder"),
        (["--method", "plain", "--prompt", "a", "--max-new-tokens", "0"], "Max-new-tokens should be"),
        (["--method", "plain", "--prompt", "a", "--model", "/none", "--out", "/no/such/x.json"], "no folder /no/such"),
        (["--method", "plain", "--prompt", "a", "--model", "/none", "--out", "/"], "it is a folder"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence_and_status_2(arguments, words, capsys):
    assert main(["run", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and "Traceback" not in error


def test_an_unknown_method_is_refused_with_status_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["run", "--method", "medusa", "--prompt", "a"])
    assert caught.value.code == 2
