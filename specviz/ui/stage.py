"""The stage: one always-mounted HTML component that shows a run.

Its templates are constant, since a value put into one is evaluated again as a JavaScript template literal:
model text travels through `value` alone, and the scripts put it on the page with `textContent`. History,
transport and keyboard live in the scripts, so that scrubbing needs no round trip and works after Stop.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from specviz.figures.plotly_script import PLOTLY_SCRIPT
from specviz.ui.assets import (
    STAGE_MODULES,
    STAGE_SCRIPT,
    TEMPLATE,
    collect_constants,
    locate_scripts,
    read_page_style,
    read_styles,
)
from specviz.ui.questions import answer_question
from specviz.ui.shelf import TraceShelf

# Values that come before the scripts are loaded wait in `early`. A script that cannot be loaded says so.
# A module is known only when the one that imports it has come: fetched at once, they save three round trips. plotly.js
# is fetched behind them, and runs when the tokens are painted.
BOOTSTRAP = """
const early = [];
const context = { element, props, server, constants: CONSTANTS, deliver: (value) => early.push(value), early };
context.runAgain = (link) => trigger('again', { link });
watch('value', () => context.deliver(props.value));
context.fileUrl = (path) =>
  `${(window.gradio_config?.root ?? '').replace(/[/]$/, '')}${window.gradio_config?.api_prefix ?? ''}/file=${path}`;
const { stage, modules, plotly } = context.constants.assets;
const fetchEarly = (path, how) => document.head.append(
  Object.assign(document.createElement('link'), { href: context.fileUrl(path), ...how }));
modules.forEach((path) => fetchEarly(path, { rel: 'modulepreload' }));
import(context.fileUrl(stage))
  .then((scripts) => {
    fetchEarly(plotly, { rel: 'preload', as: 'script' });
    scripts.start(context);
  })
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

    constants = collect_constants(shelf.recordings) | {"assets": locate_scripts()}
    gr.set_static_paths([STAGE_SCRIPT, STAGE_MODULES, PLOTLY_SCRIPT])
    return gr.HTML(
        value,
        html_template=read_page_style() + TEMPLATE,
        css_template=read_styles(),
        js_on_load=BOOTSTRAP.replace("CONSTANTS", json.dumps(constants)),
        apply_default_css=False,
        elem_id="stage-block",
        server_functions=[answer],
    )
