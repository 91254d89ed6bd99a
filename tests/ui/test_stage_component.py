"""The stage component: constant templates, and a style sheet and scripts that hold the house rules."""

from __future__ import annotations

import re

import pytest

from specviz.ui.assets import ASSETS, TEMPLATE, read_styles
from specviz.ui.stage import BOOTSTRAP

SCRIPTS = [ASSETS / "stage.js", *sorted((ASSETS / "stage").rglob("*.js"))]


def test_templates_are_constant():
    """Gradio evaluates a template as a JavaScript template literal: a value in it would run."""
    assert "${" not in TEMPLATE and "{{" not in TEMPLATE


def test_style_sheet_survives_gradios_template():
    style = read_styles()
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
