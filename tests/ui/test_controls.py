"""Controls become settings, and only what a method uses is sent."""

from __future__ import annotations

import gradio as gr
import pytest
from fake_engine import FakeEngine, make_run

from specviz.settings import RunSettings, make_settings
from specviz.trace import TokenTrace
from specviz.ui import build_page
from specviz.ui.controls import AUTO, build_controls, fields_of_values, is_used
from specviz.ui.opening import EXAMPLES, choose_prompt
from specviz.ui.request import VisitorLimits

ENGINE = FakeEngine(drafter_names=["mine"], methods=["plain", "lookahead", "eagle3", "confu"])


@pytest.fixture
def controls():
    with gr.Blocks():
        return build_controls(ENGINE, VisitorLimits())


def values_of(controls, **changes):
    initial = {name: component.value for name, component in controls.settings.items()}
    return {**initial, **changes}


@pytest.mark.parametrize(("model", "expected"), [("scripted", "confu"), ("another", "lookahead")])
def test_the_controls_open_on_the_run_that_is_shown_where_its_model_is_offered(model, expected):
    shown = make_run(0, EXAMPLES["list"], make_settings(model=model), ENGINE.info(model))
    shown = shown.model_copy(update={"method": "confu"})
    with gr.Blocks():
        opened = build_controls(ENGINE, VisitorLimits(), shown)
    assert opened.settings["method"].value == expected and opened.settings["nodes"].visible == (expected == "confu")
    assert choose_prompt(None) == EXAMPLES["code"]


def test_the_controls_open_on_the_prompt_of_the_run_that_is_shown():
    run = make_run(0, "x", make_settings(), ENGINE.info("scripted"))
    piece = TokenTrace(token_id=0, piece=f"user: {EXAMPLES['list']}", source="prompt")
    assert choose_prompt(run.model_copy(update={"prompt": [piece]})) == EXAMPLES["list"]


def test_every_setting_has_a_control(controls):
    missing = set(RunSettings.model_fields) - set(controls.settings)
    assert missing == {"device", "dtype", "record"}


@pytest.mark.parametrize("method", ENGINE.methods)
def test_untouched_controls_are_valid_settings(controls, method):
    settings = make_settings(**fields_of_values(values_of(controls, method=method)))
    assert settings.method == method and settings.k is None and settings.nodes is None


@pytest.mark.parametrize("method", ENGINE.methods)
def test_every_control_does_what_its_label_says(controls, method):
    """F39: settings that are hidden or foreign are never sent, the others arrive as they were set."""
    filled = {
        "k": "2", "threshold": "0.5", "candidates": "1", "rows": "30", "placeholder": "last-token",
        "slot_attention": "causal", "nodes": "20", "depth": "3", "tree_top_k": "4", "confu_f": "off",
        "experts": "fixed", "contemplate": "root", "seed": "7", "raw": True, "stop": "END", "drafter": "mine",
    }  # fmt: skip
    fields = fields_of_values(values_of(controls, method=method, **filled))
    settings = make_settings(**fields)
    for name, value in filled.items():
        if is_used(name, method, "verified"):
            assert str(getattr(settings, name)).strip("(),'") == str(value)
        else:
            assert name not in fields


def test_the_self_consistent_selection_is_greedy_and_has_a_threshold(controls):
    values = values_of(controls, selection="self-consistent", threshold="0.4", temperature="0.9", candidates="3")
    settings = make_settings(**fields_of_values(values))
    assert settings.threshold == 0.4 and settings.temperature == 0 and settings.candidates is None


def test_auto_is_not_sent(controls):
    assert "placeholder" not in fields_of_values(values_of(controls, placeholder=AUTO))


def test_prompts_of_a_batch(controls):
    values = ["first", "", "third", "", *values_of(controls).values()]
    prompts, fields = controls.read(values)
    assert prompts == ["first", "third"] and fields["method"] == "lookahead"


def test_only_controls_in_use_are_shown_at_first(controls):
    shown = {name for name, component in controls.settings.items() if component.visible}
    assert {"k", "selection"} <= shown and not {"threshold", "nodes", "experts"} & shown


@pytest.mark.parametrize("space", [None, "someone/specviz"])
def test_a_space_can_be_duplicated_where_it_is_one(monkeypatch, tmp_path, space):
    monkeypatch.delenv("SPACE_ID", raising=False)
    if space:
        monkeypatch.setenv("SPACE_ID", space)
    page = build_page(ENGINE, recordings=tmp_path)
    (button,) = [block for block in page.blocks.values() if isinstance(block, gr.DuplicateButton)]
    assert button.visible is (space is not None)
