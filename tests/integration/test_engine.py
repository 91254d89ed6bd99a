"""The engine's facade: mistakes are sentences, streams hold back, names hide paths."""

import itertools

import pytest

from specviz.decoding.engine import Engine
from specviz.decoding.events import Finished, Passing, Started, Stepped
from specviz.errors import SpecVizError
from specviz.settings import make_settings
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


@pytest.mark.parametrize("n_passes", [1, 6, 20, 40])
def test_a_run_can_be_closed_before_any_pass(engine: Engine, n_passes: int):
    """F20: between draft and verification too, while it warms up, and in the plain lane behind a run."""
    asked = settings(max_new_tokens=30, compare_plain=True)
    events = engine.stream(["abc"], asked)
    passes = (event for event in events if isinstance(event, Passing))
    for _ in range(n_passes):
        next(passes)
    events.close()
    assert engine.run("abc", asked).text == engine.run("abc", settings(max_new_tokens=30)).text


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
