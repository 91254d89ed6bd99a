"""The words of the page in its visitor's language: English, or a table of `assets/words`.

A key is the English text itself, so that a page without a table still reads right. A table has a section for each of
those who speak: `page` (Gradio's components, through Gradio's own i18n), `stage` (the scripts), `sentences`
(`specviz.sentence`, said by Python where an answer leaves the server) and `notices` (what traces say of themselves
and mistakes that the page shows: texts whose template is not at hand).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from specviz.sentence import Sentence, say, translate

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "words"
ENGLISH = "en"
TRANSLATED = ("label", "info", "placeholder")

Table = Mapping[str, Mapping[str, str]]


@functools.cache
def read_tables() -> dict[str, Table]:
    """Return the sections of each language but English."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def translate_values(value: Any, language: str) -> Any:
    """Return plain values with every sentence in them said in a language; an unknown one is English."""
    table = read_tables().get(language)
    return value if table is None else translate(value, table["sentences"])


def translate_error(error: Exception, language: str) -> str:
    """Return what an error says, in a language where its words are known."""
    table, text = read_tables().get(language), error.args[0] if error.args else str(error)
    if table is None:
        return str(text)
    if isinstance(text, Sentence):
        return str(translate(text, table["sentences"]))
    return _recognise(str(text), table["notices"])


def choose_language(wanted: str | None) -> str:
    """Return the first language of an `Accept-Language` header that the page has, as its scripts choose."""
    names = [name.strip()[:2].lower() for name in (wanted or "").split(",")]
    return next((name for name in names if name == ENGLISH or name in read_tables()), ENGLISH)


def language_of(request: gr.Request | None) -> str:
    """Return the language of the browser that asks."""
    headers = request.headers if request is not None else {}
    return choose_language(headers.get("accept-language"))


def stage_words() -> dict[str, Table]:
    """Return what the scripts need of each table."""
    return {
        language: {"stage": table["stage"], "notices": table["notices"]} for language, table in read_tables().items()
    }


def make_i18n() -> gr.I18n:
    """Return what the page's launch takes as `i18n`."""
    tables = {language: dict(table["page"]) for language, table in read_tables().items()}
    return gr.I18n(**{ENGLISH: {text: text for table in tables.values() for text in table}}, **tables)


def translate_page(page: gr.Blocks) -> None:
    """Let the browser translate the labels and choices of all components that a table knows."""
    i18n = make_i18n()
    known = {text for table in read_tables().values() for text in table["page"]}
    for block in page.blocks.values():
        for name in translated_names(block):
            text = getattr(block, name, None)
            if isinstance(text, str) and text in known:
                setattr(block, name, i18n(text))
        if isinstance(block, gr.Dropdown):
            block.choices = [(i18n(text) if text in known else text, value) for text, value in block.choices]


def translated_names(block: Any) -> tuple[str, ...]:
    """Return the attributes of a component that hold words of the page."""
    return (*TRANSLATED, "value") if isinstance(block, gr.Button | gr.Markdown) else TRANSLATED


def _recognise(text: str, notices: Mapping[str, str]) -> str:
    """Translate a text whose template is one of the notices, as `tellNotice` of the scripts does."""
    for template, other in notices.items():
        found = _pattern_of(template).fullmatch(text)
        if found:
            return say(other, **found.groupdict())
    return text


@functools.cache
def _pattern_of(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    pattern = "".join(f"(?P<{part}>.+)" if place % 2 else re.escape(part) for place, part in enumerate(parts))
    return re.compile(pattern, re.DOTALL)
