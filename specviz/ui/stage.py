"""The stage: one always-mounted HTML component that shows a run.

Its templates are constant, since a value put into one is evaluated again as a JavaScript template literal:
model text travels through `value` alone, and the scripts put it on the page with `textContent`. History,
transport and keyboard live in the scripts, so that scrubbing needs no round trip and works after Stop.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gradio as gr
import plotly

from specviz.figures import figure_constants
from specviz.metrics import METRIC_DEFINITIONS
from specviz.ui.questions import answer_question
from specviz.ui.shelf import TraceShelf

ASSETS = Path(__file__).resolve().parents[2] / "assets"
STAGE_SCRIPT = ASSETS / "stage.js"
STAGE_STYLES = [ASSETS / "stage.css", ASSETS / "stage" / "analysis.css"]
PLOTLY_SCRIPT = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

TEMPLATE = '<div class="stage" id="stage"><p class="loading">Loading the stage…</p></div>'

# Values that come before the scripts are loaded wait in `early`. A script that cannot be loaded says so.
BOOTSTRAP = """
const early = [];
const context = { element, props, server, constants: CONSTANTS, deliver: (value) => early.push(value), early };
watch('value', () => context.deliver(props.value));
context.fileUrl = (path) =>
  `${(window.gradio_config?.root ?? '').replace(/[/]$/, '')}${window.gradio_config?.api_prefix ?? ''}/file=${path}`;
import(context.fileUrl(context.constants.assets.stage))
  .then((stage) => stage.start(context))
  .catch((error) => {
    console.error(error);
    element.textContent = 'The stage could not be loaded; please reload the page.';
  });
"""


def build_stage(value: dict[str, Any] | None, shelf: TraceShelf) -> gr.HTML:
    """Add the stage to the current page, showing `value` (a recording) from the first paint on.

    The scripts ask about the traces on the shelf.
    """

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        return answer_question(request, shelf)

    gr.set_static_paths([STAGE_SCRIPT, ASSETS / "stage", PLOTLY_SCRIPT])
    return gr.HTML(
        value,
        html_template=TEMPLATE,
        css_template="".join(path.read_text(encoding="utf-8") for path in STAGE_STYLES),
        js_on_load=BOOTSTRAP.replace("CONSTANTS", json.dumps(_collect_constants())),
        apply_default_css=False,
        elem_id="stage-block",
        server_functions=[answer],
    )


def _collect_constants() -> dict[str, Any]:
    """Return what the scripts need once. As props of the component they would be compared at every message."""
    return {
        "figures": figure_constants(),
        "definitions": {name: definition._asdict() for name, definition in METRIC_DEFINITIONS.items()},
        "assets": {"stage": STAGE_SCRIPT.as_posix(), "plotly": PLOTLY_SCRIPT.as_posix()},
    }
