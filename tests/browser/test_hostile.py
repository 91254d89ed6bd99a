"""Text that wants to be something else stays text, wherever the page shows or writes it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest
from fake_engine import HOSTILE, FakeEngine, make_run
from stage_driver import Visitor, serve

from specviz.lessons import parse_lesson
from specviz.metrics import complete_run
from specviz.settings import make_settings
from specviz.trace import NextTrace, RunTrace, TokenTrace, TopToken, save_trace
from specviz.ui import build_page

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=2", '=HYPERLINK("http://x")', "\r=3", "%0A=4"]
MARKUP = "</script><img src=x onerror=window.hacked=1>${alert(1)}\u202e{{value}}"
TEXTS = [*HOSTILE, *FORMULAS, MARKUP, "a\nb\tc"]
FOREIGN = "document.querySelectorAll('.stage img, .stage script, .stage iframe, .lesson-card img').length"


def make_hostile_run(prompt: str) -> RunTrace:
    """Return a run in which every text of the model is hostile: prompt, answer, nodes, top fives, names."""
    run = make_run(0, prompt, make_settings(max_new_tokens=60, k=3), FakeEngine().info("scripted"))
    place = 0
    steps = []
    for step in run.steps:
        committed = []
        for token in step.committed:
            committed.append(token.model_copy(update={"piece": TEXTS[place % len(TEXTS)]}))
            place += 1
        tops = [TopToken(token_id=i, piece=TEXTS[(place + i) % len(TEXTS)], prob=0.1) for i in range(5)]
        told = NextTrace(draft_top5=tops, target_top5=tops, kl=0.1, outside_mass=0.0)
        nodes = [
            node.model_copy(update={"piece": TEXTS[(place + node.idx) % len(TEXTS)], "next": told})
            for node in step.nodes
        ]
        steps.append(step.model_copy(update={"committed": committed, "nodes": nodes}))
    asked = [TokenTrace(token_id=i, piece=text, source="prompt") for i, text in enumerate(TEXTS)]
    named = {"prompt": asked, "notices": [MARKUP], "model": run.model.model_copy(update={"name": MARKUP})}
    return complete_run(run.model_copy(update=named), steps, "length")


@pytest.fixture(scope="module")
def run() -> RunTrace:
    return make_hostile_run("hostile experts")


@pytest.fixture(scope="module")
def page_url(run, tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("traces")
    save_trace(run, folder / "hostile.json")
    save_trace(make_hostile_run("hostile too"), folder / "other.json")
    yield from serve(build_page(FakeEngine(), recordings=folder))


@pytest.fixture(scope="module")
def visitor(open_shared, page_url) -> Visitor:
    return Visitor(open_shared(page_url)).wait_for_end().wait_for_charts()


@pytest.fixture(autouse=True)
def nothing_ran(visitor) -> Iterator[None]:
    """A dialog, an error or a request to another host is noted by every tab."""
    yield
    assert visitor.tab.evaluate("window.hacked") is None
    assert visitor.tab.evaluate(FOREIGN) == 0


def test_ribbon_prompt_and_names_are_literal(visitor, run):
    assert visitor.answer() == run.text
    prompt = "[...document.querySelectorAll('.stage .prompt .token')].map((chip) => chip.textContent)"
    assert visitor.tab.evaluate(prompt) == TEXTS
    visitor.expect_text("{{value}}", ".source")
    assert visitor.tab.eval_on_selector(".stage .notices li", "line => line.textContent") == MARKUP


def test_tree_mask_and_inspector_are_literal_at_every_step(visitor, run):
    visitor.tab.locator(".stage .answer").focus()
    visitor.tab.keyboard.press("Home")
    for summary in reversed(visitor.tab.locator(".stage .twins details:not([open]) summary").all()):
        summary.click()
    for step in run.steps[:8]:
        visitor.expect("document.querySelector('.stage .transport input').valueAsNumber", step.index)
        visitor.tab.locator(".stage .levels button").last.click()
        for node in step.nodes[-2:]:
            visitor.tab.locator(f".stage .levels button[data-node='{node.idx}']").click()
            visitor.expect("document.querySelector('.inspector .title .token').textContent", node.piece)
            visitor.tab.wait_for_selector(".inspector .top li")
            shown = (
                "[...document.querySelectorAll('.inspector .top:last-child .token')].map((chip) => chip.textContent)"
            )
            visitor.expect(shown, [entry.piece for entry in node.next.target_top5])
        visitor.tab.wait_for_timeout(250)  # the charts of this step
        assert visitor.tab.locator(".stage svg a, .stage svg image[href^='x']").count() == 0
        visitor.tab.locator(".stage .answer").focus()
        visitor.tab.keyboard.press("ArrowRight")


def test_run_and_comparison_are_literal(visitor):
    visitor.tab.click("#tab-run")
    visitor.wait_for_analyses()
    visitor.tab.click("#tab-compare")
    visitor.tab.select_option(".compare select", "recorded/other")
    visitor.tab.wait_for_selector(".compare table")
    assert visitor.tab.locator(".compare .lane").count() == 2
    visitor.tab.click("#tab-step")


def test_no_cell_of_the_table_is_a_formula(visitor, run, tmp_path):
    with visitor.tab.expect_download() as download:
        visitor.tab.click("text=Save steps")
    path = tmp_path / "steps.csv"
    download.value.save_as(path)
    table = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert "".join(json.loads(line["text"]) for line in table) == run.text
    assert any(json.loads(line["text"]).startswith("=") for line in table)
    cells = [cell for line in table for cell in line.values()]
    assert not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@"))]


def test_a_lesson_on_it_is_literal(visitor, tmp_path):
    visitor.tab.click("#tab-lessons")
    visitor.tab.click("text=Write a lesson of your own")
    visitor.tab.fill(".author input >> nth=0", MARKUP)
    visitor.tab.click("text=Mark the step that is shown")
    fields = visitor.tab.locator(".scenes textarea")
    hostile = f"{MARKUP}\n\n`<b>` </details> *a* <script>window.hacked=1</script>"
    for place in range(4):
        fields.nth(place).fill(hostile)
    visitor.tab.click("text=Try the lesson")
    visitor.tab.wait_for_selector(".lesson-card .question")
    visitor.tab.click("text=Show the answer")
    visitor.expect_text("<img src=x onerror", ".lesson-card .told")
    visitor.tab.click("text=Close the lesson")
    visitor.tab.click("#tab-lessons")
    with visitor.tab.expect_download() as download:
        visitor.tab.click("text=Save the lesson")
    path = tmp_path / "lesson.md"
    download.value.save_as(path)
    (scene,) = parse_lesson(path.read_text(encoding="utf-8")).scenes
    assert "${alert(1)}" in scene.text and "<img src=x onerror=window.hacked=1>" in scene.text
    assert "</details>" not in scene.text and scene.question and scene.answer
    visitor.tab.set_input_files(".lessons input[type=file]", str(path))
    visitor.tab.wait_for_selector(".lesson-card .question")
    visitor.tab.click("text=Close the lesson")


def test_a_page_to_take_along_is_literal(visitor, run, tmp_path, problems):
    with visitor.tab.expect_download() as download:
        visitor.tab.click("text=Save page")
    path = tmp_path / "page.html"
    download.value.save_as(path)
    tab = visitor.tab.context.new_page()
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    tab.goto(path.as_uri())
    offline = Visitor(tab).wait_for_end().wait_for_charts()
    assert offline.answer() == run.text
    tab.locator(".stage .levels button[data-node='1']").click()
    offline.expect("document.querySelector('.inspector .title .token').textContent", run.steps[1].nodes[1].piece)
    assert tab.evaluate("window.hacked") is None and tab.evaluate(FOREIGN) == 0
    tab.close()
