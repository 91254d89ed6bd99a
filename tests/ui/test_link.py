"""What a link says of a run, and how the controls take it."""

from __future__ import annotations

import gradio as gr
from fake_engine import FakeEngine, make_run

from specviz.settings import make_settings
from specviz.ui.controls import Controls, build_controls
from specviz.ui.link import read_link, read_run, write_link
from specviz.ui.request import VisitorLimits, make_request

ENGINE = FakeEngine()


def make_controls() -> Controls:
    with gr.Blocks():
        return build_controls(ENGINE, VisitorLimits())


def values_after(controls: Controls, updates: list[dict]) -> list:
    """Return what the components hold when the updates were applied; the first belongs to the batch switch."""
    return [update.get("value", part.value) for part, update in zip(controls.components, updates[1:], strict=True)]


def test_a_link_asks_for_the_same_run():
    prompts = ["one & two\n${three}", "another"]
    asked = make_settings(k=3, max_new_tokens=20, stop=["x", "y"], seed=2**60, raw=True)
    run = make_run(0, prompts[0], asked, ENGINE.info("scripted"))
    found, texts = read_link([(name, text) for name, text in write_link(prompts, run)])
    assert found == prompts and texts["k"] == "3" and texts["seed"] == str(2**60) and texts["raw"] == "true"
    controls = make_controls()
    updates = controls.fill(found, texts)
    again = make_request(*controls.read(values_after(controls, updates)), ENGINE, VisitorLimits())
    assert updates[0]["value"] is True and again.prompts == prompts
    assert (again.settings.k, again.settings.seed, again.settings.raw) == (3, 2**60, True)


def test_what_is_not_offered_stays_as_it_is():
    controls = make_controls()
    updates = controls.fill([], {"method": "confu", "model": "../etc", "placeholder": "<b>", "unknown": "1"})
    assert values_after(controls, updates) == [part.value for part in controls.components]


def test_a_link_is_run_as_it_says_whatever_the_controls_hold():
    asked = make_settings(
        model="scripted", k=3, max_new_tokens=20, stop=["x", "y"], seed=2**60, raw=True, selection="self-consistent"
    )
    run = make_run(0, "one", asked, ENGINE.info("scripted"))
    link = [(name, text) for name, text in write_link(["one", "two"], run)] + [("trace", "x"), ("device", "cuda")]
    again = make_request(*read_run(link), ENGINE, VisitorLimits())
    assert again.prompts == ["one", "two"]
    assert again.settings.model_dump(mode="json") == run.settings
