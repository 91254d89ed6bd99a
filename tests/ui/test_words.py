"""The words of the page: a table for every language that says all that is said, and nothing else."""

from __future__ import annotations

import re
from typing import get_args

import gradio as gr
import pytest
from fake_engine import FakeEngine
from spoken_words import python_templates, python_texts, script_templates, slots_of

from specviz.errors import SpecVizError
from specviz.sentence import join_parts, say, say_both, say_count, translate
from specviz.settings import Placeholder, SlotAttention
from specviz.ui import build_page
from specviz.ui.assets import ASSETS
from specviz.ui.controls import METHOD_LABELS
from specviz.ui.trace_file import list_recordings, title_recording
from specviz.ui.words import choose_language, read_tables, translate_error, translated_names

ZH = read_tables()["zh"]
TITLES = {title_recording(name) for name in list_recordings(ASSETS / "traces")}
NUMBER = re.compile(r"\d+")


@pytest.fixture(scope="module")
def page_texts(tmp_path_factory) -> set[str]:
    """Return what Gradio's components say, the marks of translated ones undone."""
    page = build_page(FakeEngine(), recordings=tmp_path_factory.mktemp("no"))
    blocks = [block for block in page.blocks.values() if type(block).__name__ != "Api"]
    found = [getattr(block, name, None) for block in blocks for name in translated_names(block)]
    found += [text for block in blocks if isinstance(block, gr.Dropdown) for text, _ in block.choices]
    return {getattr(text, "key", text) for text in found if text}


def test_components_are_translated(page_texts):
    names = {
        *(set(METHOD_LABELS.values()) - {"Plain decoding"}),
        *get_args(Placeholder),
        *get_args(SlotAttention),
        *FakeEngine().model_names,
    }
    said = {text for text in page_texts - names if not NUMBER.fullmatch(text)}
    assert said - set(ZH["page"]) == set()
    assert set(ZH["page"]) - page_texts == set()


def test_scripts_are_translated():
    spoken = script_templates() | TITLES
    assert (spoken - set(ZH["stage"]), set(ZH["stage"]) - spoken) == (set(), set())


def test_sentences_are_translated():
    spoken = python_templates()
    assert (spoken - set(ZH["sentences"]), set(ZH["sentences"]) - spoken) == (set(), set())


def test_notices_are_said_somewhere():
    def bare(text: str) -> str:
        return re.sub(r"\{\w*\}", "{}", text).rstrip(".").casefold()

    said = " ".join(bare(text) for text in python_texts())
    assert [text for text in ZH["notices"] if not all(part in said for part in re.split(r"\{\}|; ", bare(text)))] == []


@pytest.mark.parametrize("section", ZH)
def test_slots_match(section):
    wrong = {text for text, other in ZH[section].items() if slots_of(text) != slots_of(other)}
    assert wrong == set()
    assert all(other.strip() for other in ZH[section].values() if other != "{one}{other}")


def test_a_sentence_is_english_until_it_is_translated():
    sentence = say(
        "Step {step}: {draft}, and {commit}", step=2, draft=say_count(1, "{n} token", "{n} tokens"), commit="x"
    )
    assert sentence == "Step 2: 1 token, and x"
    assert translate({"a": [sentence, 3]}, ZH["sentences"]) == {"a": ["第 2 步：1 个词元；x", 3]}


def test_sentences_keep_their_template_when_they_are_joined():
    both = say_both(say("Stopped."), "") + join_parts("<br>", [say("root"), "{n}"])
    assert (both, translate(both, ZH["sentences"])) == ("Stopped.root<br>{n}", "已停止。根<br>{n}")


@pytest.mark.parametrize(
    ("wanted", "language"),
    [("zh-CN,zh;q=0.9,en;q=0.8", "zh"), ("en-GB,zh;q=0.5", "en"), ("de,zh-TW", "zh"), ("fr", "en"), (None, "en")],
)
def test_the_browser_chooses_the_language(wanted, language):
    assert choose_language(wanted) == language


def test_mistakes_are_said_in_the_language_of_the_page():
    error = SpecVizError("This page decodes at most 512 new tokens a run.")
    assert translate_error(error, "zh") == "本页每次运行最多解码 512 个新词元。"
    assert translate_error(error, "en") == str(error)
    assert translate_error(SpecVizError("Something else."), "zh") == "Something else."
