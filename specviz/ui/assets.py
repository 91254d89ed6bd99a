"""What the stage is made of: scripts, style sheets, and the constants that the scripts need once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specviz.figures import figure_constants
from specviz.figures.plotly_script import PLOTLY_SCRIPT
from specviz.metrics import METRIC_DEFINITIONS
from specviz.ui.trace_file import title_recording
from specviz.ui.words import read_tables, stage_words, translate_values

ASSETS = Path(__file__).resolve().parents[2] / "assets"
STAGE_SCRIPT = ASSETS / "stage.js"
STAGE_MODULES = ASSETS / "stage"
STAGE_STYLES = [ASSETS / "stage.css", *sorted(STAGE_MODULES.glob("*.css"))]
TEMPLATE = '<div class="stage" id="stage"><p class="loading">Loading the stage…</p></div>'
PAGE_STYLE = ASSETS / "page.css"


def read_styles() -> str:
    """Return the style sheet of the stage."""
    return "".join(path.read_text(encoding="utf-8") for path in STAGE_STYLES)


def read_page_style() -> str:
    """Return an element with the rules for what lies around the stage, where a component's own sheet does not reach."""
    return f"<style>{PAGE_STYLE.read_text(encoding='utf-8')}</style>"


def collect_constants(recordings: dict[str, Path]) -> dict[str, Any]:
    """Return what the scripts need once. As props of the component they would be compared at every message.

    `translated` holds what replaces the entries of the same name in another language.
    """
    spoken = {
        "figures": figure_constants(),
        "definitions": {name: definition._asdict() for name, definition in METRIC_DEFINITIONS.items()},
    }
    return spoken | {
        "translated": {language: translate_values(spoken, language) for language in read_tables()},
        "words": stage_words(),
        "recordings": [{"name": name, "title": title_recording(name)} for name in recordings],
    }


def locate_scripts() -> dict[str, Any]:
    """Return where this server's scripts lie; a page to take along has them inside, and names no path of a server."""
    return {
        "stage": STAGE_SCRIPT.as_posix(),
        "modules": [path.as_posix() for path in sorted(STAGE_MODULES.rglob("*.js"))],
        "plotly": PLOTLY_SCRIPT.as_posix(),
    }
