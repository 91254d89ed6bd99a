"""The engine's facade and the command line: mistakes are sentences, streams hold back, names hide paths."""

import itertools
import json

import pytest

from specviz.__main__ import main
from specviz.decoding.engine import Engine
from specviz.decoding.events import Finished, Started, Stepped
from specviz.errors import SpecVizError
from specviz.settings import make_settings
from specviz.trace import load_trace
from tests.kit import Target, tiny_config, tiny_engine, tiny_target


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.fixture
def engine(target: Target) -> Engine:
    return tiny_engine(target)


def settings(**fields):
    return make_settings(**{"method": "lookahead", "model": "tiny", "raw": True, "max_new_tokens": 12, "k": 2} | fields)


@pytest.mark.parametrize(
    ("prompts", "fields", "words"),
    [
        ([""], {}, "prompt is empty"),
        (["  \n"], {}, "prompt is empty"),
        ([], {}, "prompt is empty"),
        (["a", ""], {}, "prompt is empty"),
        (["x" * 600], {}, "600 tokens; this model's context holds 512"),
        (["a"], {"model": "other"}, "no model 'other' here"),
        (["a"], {"drafter": "other"}, "no drafter 'other' here"),
        (["a"], {"placeholder": "learned"}, "needs a drafter with a slot table"),
    ],
)
def test_a_mistake_is_a_sentence_and_the_next_run_works(engine: Engine, prompts, fields, words):
    with pytest.raises(SpecVizError, match=words):
        list(engine.stream(prompts, settings(**fields)))
    assert engine.run("abc", settings()).finish_reason == "length"


def test_a_missing_chat_template_is_a_sentence(target: Target, monkeypatch):
    monkeypatch.setattr(target.tokenizer._hf, "chat_template", None)
    with pytest.raises(SpecVizError, match="no chat template"):
        tiny_engine(target).run("abc", settings(raw=False))


def test_events_come_in_order_and_add_up(engine: Engine):
    events = list(engine.stream(["abc"], settings()))
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    steps = [event.step for event in events if isinstance(event, Stepped)]
    assert steps == events[-1].trace.steps
    assert [step.index for step in steps] == list(range(len(steps)))
    assert events[-1].trace.text == "".join(token.piece for step in steps for token in step.committed)


def test_what_may_become_stop_text_is_not_streamed(engine: Engine):
    """Guards F11: while the answer's end may still become the stop text, its steps are held back."""
    whole = engine.run("abc", settings(max_new_tokens=30)).text
    stop = whole[6:10]
    for event in engine.stream(["abc"], settings(max_new_tokens=30, stop=stop)):
        if isinstance(event, Stepped):
            assert whole[: whole.index(stop)].startswith(event.text)
        if isinstance(event, Finished):
            assert event.trace.text == whole[: whole.index(stop)]
            assert event.trace.finish_reason == "stop_text"
            joined = "".join(token.piece for token in event.trace.answer)
            assert joined[: len(joined) - event.trace.text_cut] == event.trace.text


def test_a_false_start_of_a_stop_text_is_released(engine: Engine):
    """Nothing is lost where what looked like the stop text goes on otherwise."""
    whole = engine.run("abc", settings(max_new_tokens=30)).text
    stop = whole[6:9] + "\x00never"
    shown = [
        event.text
        for event in engine.stream(["abc"], settings(max_new_tokens=30, stop=stop))
        if isinstance(event, Stepped)
    ]
    assert shown[-1] == whole
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(shown))


def test_names_show_no_path(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two" / "one").mkdir(parents=True)
    engine = Engine(models=["bundled", str(tmp_path / "one"), str(tmp_path / "two" / "one"), "org/model"])
    assert engine.model_names == ["bundled", "one", "one'", "org/model"]


def test_the_context_s_end_is_a_finish_reason():
    engine = tiny_engine(tiny_target(tiny_config(max_position_embeddings=32)))
    for method in engine.methods:
        trace = engine.run("abcdefgh", make_settings(method=method, model="tiny", raw=True, max_new_tokens=100))
        assert trace.finish_reason == "context_full"
        assert len(trace.prompt) + len(trace.answer) == 32


def test_the_trace_says_what_was_asked_and_what_ran(engine: Engine):
    trace = engine.run("abc", make_settings(method="lookahead", model="tiny", raw=True, max_new_tokens=4))
    assert trace.settings["k"] == 2 and trace.settings["rows"] == 16
    assert trace.settings["placeholder"] == "vocab-mean"
    assert trace.drafter.trained is False
    assert set(trace.versions) >= {"specviz", "torch", "transformers", "python"}
    assert trace.model.name == "tiny"


@pytest.fixture
def folder(target: Target, tmp_path):
    target.tokenizer._hf.save_pretrained(tmp_path / "tiny")
    target.model.save_pretrained(tmp_path / "tiny")
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
