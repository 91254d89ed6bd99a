"""The words of the page in English and Chinese, through Gradio's own i18n.

A key is the English text itself, so that a page which is launched without the table still reads right. The stage's
scripts read the same table (`words.js`).
"""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "words"
TRANSLATED = ("label", "info", "placeholder")


def read_words() -> dict[str, dict[str, str]]:
    """Return, by language, the words for each English text."""
    tables = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
    english = {text: text for table in tables.values() for text in table}
    return {"en": english, **tables}


def make_i18n() -> gr.I18n:
    """Return what the page's launch takes as `i18n`."""
    return gr.I18n(**read_words())


def translate_page(page: gr.Blocks) -> None:
    """Let the browser translate the labels of all components that the table knows."""
    i18n, known = make_i18n(), read_words()["en"]
    for block in page.blocks.values():
        for name in (*TRANSLATED, *(["value"] if isinstance(block, gr.Button) else [])):
            text = getattr(block, name, None)
            if isinstance(text, str) and text in known:
                setattr(block, name, i18n(text))
