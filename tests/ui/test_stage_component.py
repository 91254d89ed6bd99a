"""The stage component: constant templates, and a style sheet and scripts that hold the house rules."""

from __future__ import annotations

import re

import pytest
from fake_engine import FakeEngine, make_run

from specviz.settings import make_settings
from specviz.ui.stage import ASSETS, BOOTSTRAP, STAGE_STYLE, TEMPLATE, explain

SCRIPTS = [ASSETS / "stage.js", *sorted((ASSETS / "stage").glob("*.js"))]


def test_templates_are_constant():
    """Gradio evaluates a template as a JavaScript template literal: a value in it would run."""
    assert "${" not in TEMPLATE and "{{" not in TEMPLATE


def test_style_sheet_survives_gradios_template():
    style = STAGE_STYLE.read_text(encoding="utf-8")
    for poison in ("\\", "`", "${", "{{", "@keyframes"):
        assert poison not in style


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_never_parse_text_as_markup(path):
    text = path.read_text(encoding="utf-8")
    for poison in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert poison not in text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_load_nothing_from_elsewhere(path):
    urls = re.findall(r"https?://[^'\"`\s]+", path.read_text(encoding="utf-8"))
    assert set(urls) <= {"http://www.w3.org/2000/svg"}


def test_bootstrap_listens_before_the_scripts_are_loaded():
    assert BOOTSTRAP.index("watch('value'") < BOOTSTRAP.index("import(")


def test_explain_needs_nothing_but_the_request():
    run = make_run(0, "hello", make_settings(max_new_tokens=20), FakeEngine().info("scripted"))
    step = next(step for step in run.steps if step.accepted)
    request = {"step": step.model_dump(mode="json"), "node": step.accepted[0]}
    assert explain(request).startswith("Accepted")
    extra = [token for token in step.committed if token.source in ("bonus", "correction")]
    assert not extra or "step" in explain({**request, "node": -1})


@pytest.mark.parametrize("request_", [None, {}, {"step": {}, "node": 0}, {"step": 3, "node": "x"}, []])
def test_explain_answers_nonsense_with_nothing(request_):
    assert explain(request_) == ""


def test_explain_refuses_a_node_that_is_not_there():
    run = make_run(0, "hello", make_settings(max_new_tokens=20), FakeEngine().info("scripted"))
    assert explain({"step": run.steps[1].model_dump(mode="json"), "node": 999}) == ""
