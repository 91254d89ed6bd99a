"""The controls on the left: what a visitor can ask for, and how it becomes settings.

An empty control means "the best measured value": it is not sent. A control that the chosen method or
selection does not use is hidden and not sent either, since settings refuse what they would ignore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import gradio as gr
from gradio.components import Component

from specviz.settings import FIELDS_OF_METHOD, Placeholder, RunSettings, SlotAttention
from specviz.trace import RunTrace
from specviz.ui.backend import Backend
from specviz.ui.opening import EXAMPLES, choose_method, choose_prompt
from specviz.ui.request import VisitorLimits

AUTO = "auto"

METHOD_LABELS = {
    "plain": "Plain decoding",
    "lookahead": "Lookahead Attention",
    "eagle3": "EAGLE-3",
    "confu": "ConFu",
}

ALWAYS_SHOWN = ("method", "max_new_tokens", "seed", "model", "stop", "raw", "attention_row", "compare_plain")

# The self-consistent selection alone has a threshold; it has one candidate for a slot, and is greedy.
UNUSED_BY_SELECTION = {
    "verified": ("threshold",),
    "self-consistent": ("candidates", "rows", "temperature", "top_p"),
}


@dataclass
class Controls:
    """All input components, by the name of the setting that they give."""

    prompts: list[gr.Textbox] = field(default_factory=list)
    settings: dict[str, Component] = field(default_factory=dict)
    several: gr.Checkbox = field(init=False)
    run: gr.Button = field(init=False)
    race: gr.Button = field(init=False)
    stop: gr.Button = field(init=False)
    lines: list[tuple[gr.Row, tuple[str, ...]]] = field(default_factory=list)

    def add_line(self, line: gr.Row, **components: Component) -> None:
        """Add the settings of a line, which is hidden when all of them are."""
        self.settings.update(components)
        self.lines.append((line, tuple(components)))

    @property
    def components(self) -> list[Component]:
        """Every component whose value a run needs, prompts first."""
        return [*self.prompts, *self.settings.values()]

    def read(self, values: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
        """Split the components' values into prompts and the fields of the settings."""
        n_prompts = len(self.prompts)
        prompts = [text for text in values[:n_prompts] if text]
        return prompts, fields_of_values(dict(zip(self.settings, values[n_prompts:], strict=True)))

    def fill(self, prompts: Sequence[str], texts: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return what shows these prompts and settings, for `several` and then `components`.

        Settings that are not named, and choices that are not offered here, stay as they are.
        """
        boxes = [gr.update(value=text, visible=True) for text in prompts[: len(self.prompts)]]
        boxes += [gr.update() for _ in self.prompts[len(boxes) :]]
        several = gr.update(value=True) if len(prompts) > 1 else gr.update()
        return [several, *boxes, *(_fill_control(part, texts.get(name)) for name, part in self.settings.items())]


def _fill_control(component: Component, text: str | None) -> dict[str, Any]:
    if text is None:
        return gr.update()
    if isinstance(component, gr.Checkbox):
        return gr.update(value=text == "true")
    if isinstance(component, gr.Dropdown) and text not in [value for _, value in component.choices or []]:
        return gr.update()
    return gr.update(value=text)


def fields_of_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings' fields that the chosen method uses and the visitor has set."""
    method, selection = values["method"], values["selection"]
    return {
        name: value
        for name, value in values.items()
        if is_used(name, method, selection) and value not in (None, "", AUTO)
    }


def is_used(name: str, method: str, selection: str) -> bool:
    """Return whether a run with this method and selection reads the setting `name`."""
    if name == "drafter":
        return method != "plain"
    if any(name in fields for fields in FIELDS_OF_METHOD.values()) and name not in FIELDS_OF_METHOD[method]:
        return False
    return method != "lookahead" or name not in UNUSED_BY_SELECTION[selection]


def build_controls(backend: Backend, limits: VisitorLimits, shown: RunTrace | None = None) -> Controls:
    """Lay the controls out in the current column and connect what shows and hides them.

    They open on the prompt and method of the run that the page shows first, where the same can be run here.
    """
    controls = Controls()
    _build_prompts(controls, limits, choose_prompt(shown))
    _build_method(controls, backend, choose_method(backend, shown))
    _build_sampling(controls)
    _build_more(controls, backend)
    _connect_visibility(controls, backend)
    return controls


def _build_prompts(controls: Controls, limits: VisitorLimits, prompt: str) -> None:
    for row in range(limits.prompts):
        box = gr.Textbox(
            label="Prompt" if row == 0 else f"Prompt {row + 1}",
            value=prompt if row == 0 else "",
            lines=3,
            max_lines=8,
            visible=row == 0,
            elem_id=f"prompt-{row}",
        )
        controls.prompts.append(box)
    with gr.Row():
        controls.run = gr.Button("Run", variant="primary", min_width=100, elem_id="run")
        controls.stop = gr.Button("Stop", variant="stop", interactive=False, min_width=100, elem_id="stop-run")
    controls.race = gr.Button("Race against plain decoding", size="sm", elem_id="race")
    gr.Examples(
        [[text] for text in EXAMPLES.values()],
        inputs=[controls.prompts[0]],
        label="Examples",
        example_labels=list(EXAMPLES),
        api_visibility="private",
        elem_id="examples",
    )
    _build_batch_switch(controls)


def _build_batch_switch(controls: Controls) -> None:
    """More prompts are decoded together; the page switches between the rows."""
    several = controls.several = gr.Checkbox(label="Several prompts, decoded together", value=False, elem_id="several")
    extra = controls.prompts[1:]
    several.change(
        lambda shown: [gr.update(visible=shown) if shown else gr.update(visible=False, value="") for _ in extra],
        several,
        extra,
        show_progress="hidden",
        api_visibility="private",
    )


def _build_method(controls: Controls, backend: Backend, method: str) -> None:
    methods = [(METHOD_LABELS[name], name) for name in backend.methods]
    add = controls.settings
    add["method"] = gr.Dropdown(methods, value=method, label="Method", elem_id="method")
    add["drafter"] = _choice("drafter", "Drafter", list(backend.drafter_names))
    add["selection"] = gr.Dropdown(
        [("verified (lossless)", "verified"), ("self-consistent (lossy)", "self-consistent")],
        value="verified",
        label="Selection",
        elem_id="selection",
    )
    with gr.Row() as line:
        controls.add_line(
            line,
            k=_number("k", "k, slots"),
            candidates=_number("candidates", "Candidates"),
            threshold=_number("threshold", "Threshold"),
        )
    with gr.Row() as line:
        controls.add_line(
            line,
            nodes=_number("nodes", "Tree nodes"),
            depth=_number("depth", "Tree depth"),
        )


def _build_sampling(controls: Controls) -> None:
    with gr.Row() as line:
        controls.add_line(
            line,
            max_new_tokens=_number("max_new_tokens", "New tokens", "128", value="96"),
            seed=_number("seed", "Seed", "0", value="0"),
        )
    with gr.Row() as line:
        controls.add_line(
            line,
            temperature=_number("temperature", "Temperature", "0 is greedy", value="0"),
            top_p=_number("top_p", "Top-p", "1 is off", value="1"),
        )


def _build_more(controls: Controls, backend: Backend) -> None:
    add = controls.settings
    with gr.Accordion("More settings", open=False):
        names = list(backend.model_names)
        add["model"] = gr.Dropdown(names, value=names[0], label="Model", visible=len(names) > 1, elem_id="model")
        with gr.Row() as line:
            controls.add_line(
                line,
                placeholder=_choice("placeholder", "Slot holds", get_args(Placeholder)),
                slot_attention=_choice("slot_attention", "Slots see", get_args(SlotAttention)),
            )
        with gr.Row() as line:
            controls.add_line(
                line,
                rows=_number("rows", "Rows in a pass"),
                groups=_number("groups", "Nodes with slots"),
            )
        add["tree_top_k"] = _number("tree_top_k", "Top k of a node")
        with gr.Row() as line:
            controls.add_line(
                line,
                confu_f=_choice("confu_f", "Future token f", ["on", "off"]),
                experts=_choice("experts", "Experts", ["routed", "fixed"]),
            )
        add["contemplate"] = _choice("contemplate", "Contemplate tokens", ["all", "root"])
        add["stop"] = gr.Textbox(label="Stop text", info="The answer ends before it.", lines=1, elem_id="stop")
        add["raw"] = gr.Checkbox(label="Raw prompt, without the chat template", value=False, elem_id="raw")
        add["attention_row"] = _number(
            "attention_row", "Attention of row", "off; a row of each pass, for the mask proof"
        )
        add["compare_plain"] = gr.Checkbox(
            label="Decode plainly too, to measure the speed-up", value=False, elem_id="compare_plain"
        )
        gr.Markdown("*auto* is the best setting measured for the loaded model.")


def _connect_visibility(controls: Controls, backend: Backend) -> None:
    """Show what the method and the selection use; a line without anything shown leaves no gap."""
    settings, lines = controls.settings, controls.lines
    names = [name for name in settings if name not in ALWAYS_SHOWN]

    def shown_now(method: str, selection: str) -> list[bool]:
        used = [is_used(name, method, selection) for name in names]
        return used + [any(is_used(name, method, selection) for name in own) for _, own in lines]

    def show(method: str, selection: str) -> list[dict[str, Any]]:
        return [gr.update(visible=visible) for visible in shown_now(method, selection)]

    if not backend.drafter_names:
        names.remove("drafter")
        settings["drafter"].visible = False
    hidden: list[Any] = [*(settings[name] for name in names), *(line for line, _ in lines)]
    for block, visible in zip(hidden, shown_now(settings["method"].value, settings["selection"].value), strict=True):
        block.visible = visible
    choices = [settings["method"], settings["selection"]]
    gr.on(
        [choice.change for choice in choices if isinstance(choice, gr.Dropdown)],
        show,
        choices,
        hidden,
        show_progress="hidden",
        api_visibility="private",
    )


def _number(name: str, label: str, hint: str = "", value: str = "") -> gr.Textbox:
    """A text field, since gradio's number field shows an empty value as 0; the settings read and check the number."""
    return gr.Textbox(
        label=label,
        value=value,
        placeholder=hint or f"{AUTO}; {_span_of(name)}",
        min_width=90,
        max_lines=1,
        elem_id=name,
    )


def _choice(name: str, label: str, choices: Sequence[str]) -> gr.Dropdown:
    return gr.Dropdown([AUTO, *choices], value=AUTO, label=label, min_width=130, elem_id=name)


def _span_of(name: str) -> str:
    """Return the range that the settings allow."""
    bounds = RunSettings.model_fields[name].metadata
    lowest = next(bound.ge for bound in bounds if hasattr(bound, "ge"))
    highest = next(bound.le for bound in bounds if hasattr(bound, "le"))
    return f"{lowest:g} to {highest:g}"
